"""Initial state of a new project: enabled APIs, accounts, bindings."""

from bezel.localcloud.core.paths import DEFAULT_COMPUTE_ACCOUNT, DEPLOYER, RUN_AGENT

# APIs that a new project has enabled from the start, the one that enables others among them.
ENABLED_FROM_THE_START = frozenset(
    f"{name}.googleapis.com"
    for name in ("serviceusage", "cloudresourcemanager", "compute", "storage", "storage-api", "logging", "monitoring")
)


BUILT_IN_ACCOUNTS = frozenset({DEPLOYER, DEFAULT_COMPUTE_ACCOUNT})


BUILT_IN_BINDINGS = frozenset(
    {("roles/owner", f"serviceAccount:{DEPLOYER}"), ("roles/run.serviceAgent", f"serviceAccount:{RUN_AGENT}")}
)
