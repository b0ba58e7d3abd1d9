"""Compute v1 and beta: rules of security policies."""

from functools import partial

from bezel_localcloud.core.json_types import Json
from bezel_localcloud.http.messages import camel
from bezel_localcloud.http.update_mask import merge
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.compute.errors import wrong
from bezel_localcloud.services.compute.operations import begin_timed, operation_json
from bezel_localcloud.services.compute.vpc_api import serves
from bezel_localcloud.services.load_balancing.api import SECONDS, find_row, put_row
from bezel_localcloud.services.load_balancing.checks import LAST_PRIORITY, security_rule
from bezel_localcloud.services.load_balancing.kinds import SECURITY_POLICY

api = Api("compute.googleapis.com", "Compute Engine API", legacy=True)
_serves = partial(serves, api)
_POLICY = "/global/securityPolicies/{resource:id}"
_UPDATE = "compute.securityPolicies.update"


@_serves("POST", _POLICY + "/addRule", _UPDATE)
def add_rule(call: Call) -> Json:
    """Add a rule with a priority of its own."""
    rule = security_rule(merge({}, call.body))
    _, policy = find_row(SECURITY_POLICY, call)
    if any(other["priority"] == rule["priority"] for other in policy["rules"]):
        raise wrong("resource.priority", rule["priority"], "Cannot have rules with the same priorities.")
    return _write(call, "addRule", [*policy["rules"], rule])


@_serves("POST", _POLICY + "/patchRule", _UPDATE, "priority updateMask")
def patch_rule(call: Call) -> Json:
    """Change the rule of a priority: what the body holds, and what the mask names and the body lacks."""
    old = _rule(call)
    named = [camel(path.partition(".")[0]) for path in call.mask()]
    kept = {key: value for key, value in old.items() if key not in named}
    new = security_rule(merge(kept, {key: value for key, value in call.body.items() if key != "kind"}))
    others = [rule for rule in _rules(call) if rule != old]
    if any(other["priority"] == new["priority"] for other in others):
        raise wrong("resource.priority", new["priority"], "Cannot have rules with the same priorities.")
    return _write(call, "patchRule", [*others, new])


@_serves("POST", _POLICY + "/removeRule", _UPDATE, "priority")
def remove_rule(call: Call) -> Json:
    """Remove the rule of a priority; the default rule stays."""
    old = _rule(call)
    if old["priority"] == LAST_PRIORITY:
        raise wrong("priority", LAST_PRIORITY, "The default rule cannot be removed.")
    return _write(call, "removeRule", [rule for rule in _rules(call) if rule != old])


@_serves("GET", _POLICY + "/getRule", "compute.securityPolicies.get", "priority")
def get_rule(call: Call) -> Json:
    """The rule of a priority."""
    return {"kind": "compute#securityPolicyRule"} | _rule(call)


def _rules(call: Call) -> list[Json]:
    return list(find_row(SECURITY_POLICY, call)[1]["rules"])


def _rule(call: Call) -> Json:
    priority = int(call.query("priority") or 0)
    rules = [rule for rule in _rules(call) if rule["priority"] == priority]
    if not rules:
        raise wrong("priority", priority, "The security policy does not contain a rule at this priority.")
    return rules[0]


def _write(call: Call, verb: str, rules: list[Json]) -> Json:
    name, policy = find_row(SECURITY_POLICY, call)
    ordered = sorted(rules, key=lambda rule: int(rule["priority"]))
    put_row(call, SECURITY_POLICY, name, policy | {"rules": ordered})
    return operation_json(call, begin_timed(call, verb, name, policy["id"], SECONDS))
