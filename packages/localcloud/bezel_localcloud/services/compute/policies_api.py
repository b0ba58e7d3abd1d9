"""Compute v1 and beta: IAM policies of instances and subnetworks, and the firewall that takes effect in a network.

Leaves out firewall policies: of those that take effect there are only the network's own rules.
"""

from collections.abc import Callable
from functools import partial

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.routing.iam_policies import check_limit, held_permissions, read_policy, write_policy
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.compute.instances_api import instance_of
from bezel_localcloud.services.compute.links import with_links
from bezel_localcloud.services.compute.operations import root
from bezel_localcloud.services.compute.vpc_api import row_of, serves

api = Api("compute.googleapis.com", "Compute Engine API", legacy=True)
_VERSION = "optionsRequestedPolicyVersion"
_serves = partial(serves, api)


def _subnetwork(call: Call) -> str:
    name = f"projects/{PROJECT}/regions/{call.param('region')}/subnetworks/{call.param('subnetwork')}"
    return row_of(call, "subnetwork", name)[0]


def _serve_policy(path: str, kind: str, name_of: Callable[[Call], str]) -> None:
    """Register the three methods of a policy: get, set, and test of the caller's permissions."""
    needs, on = f"compute.{kind}", f"projects/{{project}}{path.replace(':id', '')}"

    @_serves("GET", f"{path}/getIamPolicy", f"{needs}.getIamPolicy", _VERSION, on=on)
    def get_policy(call: Call) -> Json:
        return read_policy(call.cloud.store, name_of(call), call.query(_VERSION))

    @_serves("POST", f"{path}/setIamPolicy", f"{needs}.setIamPolicy", on=on)
    def set_policy(call: Call) -> Json:
        name = name_of(call)
        # Older clients send the parts of the policy beside it.
        policy = call.body.get("policy") or {key: call.body[key] for key in ("bindings", "etag") if key in call.body}
        check_limit(call, f"{needs}.setIamPolicy", name, name, {"policy": policy})
        return write_policy(call.cloud.store, name, {"policy": policy})

    @_serves("POST", f"{path}/testIamPermissions")
    async def test_permissions(call: Call) -> Json:
        return await held_permissions(call, name_of(call), call.body.get("permissions") or [])


_serve_policy("/zones/{zone:id}/instances/{instance:id}", "instances", lambda call: instance_of(call)[0])
_serve_policy("/regions/{region:id}/subnetworks/{subnetwork:id}", "subnetworks", _subnetwork)


@_serves("GET", "/global/networks/{network:id}/getEffectiveFirewalls", "compute.networks.getEffectiveFirewalls")
def get_effective_firewalls(call: Call) -> Json:
    """Rules of the firewall that take effect in a network."""
    name, _ = row_of(call, "network", f"projects/{PROJECT}/global/networks/{call.param('network')}")
    rules = [
        {"kind": "compute#firewall", "selfLink": rule} | body
        for rule, body in call.cloud.store.rows("firewall")
        if body["network"] == name
    ]
    return {"firewalls": [with_links(rule, root(call)) for rule in rules]} if rules else {}
