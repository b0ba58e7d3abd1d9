"""Inventory route of localcloud: all resources that users created and that still exist, to check a clean teardown."""

from bezel.localcloud.access.permissions import PROJECT_NAME
from bezel.localcloud.core.json_types import Json
from bezel.localcloud.core.new_project import BUILT_IN_ACCOUNTS, BUILT_IN_BINDINGS, ENABLED_FROM_THE_START
from bezel.localcloud.routing.router import Api, Call

api = Api("", "localcloud")
_KINDS = {
    "services": "service",
    "revisions": "revision",
    "jobs": "job",
    "executions": "execution",
    "tasks": "task",
    "buckets": "bucket",
    "objects": "object",
    "secrets": "secret",
    "secretVersions": "secretVersion",
    "repositories": "repository",
    "networks": "network",
    "subnetworks": "subnetwork",
    "firewalls": "firewall",
    "routers": "router",
    "queuedResources": "queuedResource",
    "nodes": "node",
    "instances": "instance",
}


@api.route("GET", "/localcloud/resources", needs="resourcemanager.projects.get", on=PROJECT_NAME)
def resources(call: Call) -> Json:
    """Names of all created resources by kind; kinds without resources are left out.

    `enabledApis`, `accounts` and `projectRoles` hold only what a new project does not have.
    """
    store = call.cloud.store
    found = {plural: [name for name, _ in store.rows(kind)] for plural, kind in _KINDS.items()}
    found["accounts"] = [name for name, _ in store.rows("account") if name not in BUILT_IN_ACCOUNTS]
    enabled = [name for name, body in store.rows("api") if body["state"] == "ENABLED"]
    found["enabledApis"] = [name for name in enabled if name not in ENABLED_FROM_THE_START]
    bindings = (store.policy(PROJECT_NAME) or {}).get("bindings", [])
    grants = {(binding["role"], member) for binding in bindings for member in binding["members"]}
    found["projectRoles"] = [f"{role} {member}" for role, member in sorted(grants - BUILT_IN_BINDINGS)]
    return {kind: names for kind, names in found.items() if names}
