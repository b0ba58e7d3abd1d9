"""What a project has before anything is made in it: enabled APIs, accounts, bindings."""

from __future__ import annotations

from bezel.localcloud.core.paths import DEFAULT_COMPUTE_ACCOUNT, DEPLOYER, RUN_AGENT

# What a project can do before anything is enabled: enabling itself, and what every new project has.
ENABLED_FROM_THE_START = frozenset(
    f"{name}.googleapis.com"
    for name in ("serviceusage", "cloudresourcemanager", "compute", "storage", "storage-api", "logging", "monitoring")
)


BUILT_IN_ACCOUNTS = frozenset({DEPLOYER, DEFAULT_COMPUTE_ACCOUNT})


BUILT_IN_BINDINGS = frozenset(
    {("roles/owner", f"serviceAccount:{DEPLOYER}"), ("roles/run.serviceAgent", f"serviceAccount:{RUN_AGENT}")}
)
