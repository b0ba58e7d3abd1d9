"""Labels by which a stack's series are found in Managed Service for Prometheus, and the names around its collector.

Each series is of the resource `prometheus_target`. Google's collector for Cloud Run sets `cluster` to `__run__`,
`namespace` to the service, `location` to the region, `job` to the name of its configuration and `instance` to the
instance's id with the port, and adds `revision_name` to each series (GoogleCloudPlatform/run-gmp-sidecar, read
2026-11-29). Machines have no such rules: here `cluster` says that it is a lease, `namespace` is the gateway, by whose
name the stack is served, `location` the zone and `instance` the lease's name with the port.
"""

from __future__ import annotations

CLUSTER_OF_SERVICES, CLUSTER_OF_LEASES = "__run__", "__lease__"
JOB = "vllm"
COLLECTOR = "collector"
"""Name of the collector's container beside a server on Cloud Run."""
SECRETS_OF_STACKS = "bezel-stack-"
"""How the names of secrets begin that stacks make for themselves: nothing in them is secret, and no value of a user's
is among them. The account that deploys may make, read and delete these alone."""


def collector_secret(service: str) -> str:
    """Id of the secret that holds the collector's configuration."""
    return f"{SECRETS_OF_STACKS}{service}-collector"


def series_matchers(namespace: str, *, leased: bool, location: str = "", fallback: str = "") -> str:
    """Matchers of PromQL for the series of a service or a stack of leases; "" as location for those of all places.

    Args:
        namespace: Name of the service, or of the leases' gateway.
        leased: Whether machines write them.
        location: Region of the service, or zone of the machine.
        fallback: Name of the service that serves while no lease does, whose series count too; "" without one.
    """
    if fallback:
        return f'cluster=~"{CLUSTER_OF_LEASES}|{CLUSTER_OF_SERVICES}",namespace=~"{namespace}|{fallback}"'
    place = f',location="{location}"' if location else ""
    return f'cluster="{CLUSTER_OF_LEASES if leased else CLUSTER_OF_SERVICES}",namespace="{namespace}"{place}'
