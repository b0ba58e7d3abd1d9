"""What figures over time and keys cannot go with: refused with value, consequence and repair, each by itself."""

from __future__ import annotations

import pytest

from bezel.planner import make_plan
from tests.support.planner.l4_stack import check_refused, with_changes
from tests.support.planner.v6e_stack import V6E4_MOE, lease_problems, with_lease_changes

KEYS, KEPT, WIDE = {"keys": True}, {"metrics": True}, {"max_hourly_usd": 9}
ADDRESS = {"domain": "llm.acme.example"}
# changes of the L4 stack; the key that is named; what the consequence says; what the repair says
REFUSED = {
    "a misspelled setting of figures": (
        {"observability": {"metric": True}}, "bezel:observability.metric", "no effect", "bezel:observability.metrics",
    ),
    "figures in the wrong place": ({"metrics": True}, "bezel:metrics", "no effect", "observability: {metrics"),
    "an interval for a switch": (
        {"observability": {"metrics": "30s"}}, "bezel:observability.metrics", "true or false", "true or false",
    ),
    "a map for a switch": (
        {"observability": {"metrics": {"interval": 30}}}, "bezel:observability.metrics", "true or false", "",
    ),
    "no value for a switch": ({"observability": {"metrics": None}}, "bezel:observability.metrics", "true or false", ""),
    "figures of a server that counts nothing": (
        {"observability": KEPT, "vllm": {"disable-log-stats": True}, "cost": WIDE},
        "bezel:vllm.disable-log-stats", "none of the figures", "remove one of the two",
    ),
    "a collector without a vCPU": (
        {"observability": KEPT, "resources": {"cpu": 8}, "cost": WIDE},
        "bezel:resources.cpu", "8 at most", "set it to 6 or less",
    ),
    "a collector above the limit": (
        {"observability": KEPT, "cost": {"max_hourly_usd": 1.1}}, "bezel:cost.max_hourly_usd", "1.1185", "1.12",
    ),
    "instances with a collector above the idle limit": (
        {"observability": KEPT, "scaling": {"min_instances": 1}, "environment": "prod",
         "cost": {"max_hourly_usd": 2, "max_idle_hourly_usd": 1.05}},
        "bezel:scaling.min_instances", "1.1185", "1.12",
    ),
    "a misspelled setting of keys": ({"access": {"key": True}}, "bezel:access.key", "no effect", "bezel:access.keys"),
    "keys in the wrong place": ({"keys": True}, "bezel:keys", "no effect", "access: {keys"),
    "a list of keys": ({"access": {"keys": ["bezel-a-b"]}}, "bezel:access.keys", "true or false", "true or false"),
    "a number for a switch": ({"access": {"keys": 3}}, "bezel:access.keys", "true or false", ""),
    "keys of a public service": (
        {"access": KEYS | {"public": True}, "cost": WIDE}, "bezel:access.public", "past the door", "remove it",
    ),
    "keys beside everyone": (
        {"access": KEYS | {"invokers": ["allUsers"]}, "cost": WIDE},
        "bezel:access.invokers.0", "open the service to everyone", "name the callers.",
    ),
    "keys of an internal service": (
        {"access": KEYS | {"ingress": "internal"}, "smoke": {"inside": True}, "cost": WIDE},
        "bezel:access.ingress", "get 404", "write all",
    ),
    "keys of a service behind no balancer": (
        {"access": KEYS | {"ingress": "internal-and-cloud-load-balancing"}, "smoke": {"inside": True}, "cost": WIDE},
        "bezel:access.ingress", "get 404", "give the stack an address",
    ),
    "a name without room for the door": (
        {"access": KEYS, "service_name": "c" * 45, "cost": WIDE}, "bezel:service_name", "49 characters", "to 44",
    ),
    "weights in the bucket of the keys": (
        {"access": KEYS, "weights": {"bucket": "bezel-local-bezel-l4-qat-door"}, "cost": WIDE},
        "bezel:weights.bucket", "the keys' hashes", "another bucket",
    ),
    "a door above the limit": (
        {"access": KEYS, "cost": {"max_hourly_usd": 1.2}}, "bezel:cost.max_hourly_usd", "and the door cost", "raise",
    ),
    "vLLM's own key beside the door": (
        {"access": KEYS, "vllm": {"api-key": "sk-1"}, "cost": WIDE}, "bezel:vllm.api-key", "401", "remove it",
    ),
    "vLLM's own key from a secret": (
        {"access": KEYS, "secrets": {"VLLM_API_KEY": "key"}, "cost": WIDE},
        "bezel:secrets.VLLM_API_KEY", "401", "access: {keys: true}",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "key", "consequence", "repair"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_go_together_is_refused(changes, key, consequence, repair) -> None:
    check_refused(changes, key, consequence, repair)


@pytest.mark.parametrize(
    "changes",
    [
        {"access": {"public": True}},
        {"access": {"ingress": "internal"}, "smoke": {"inside": True}},
        {
            "access": KEYS | {"ingress": "internal-and-cloud-load-balancing"},
            "smoke": {"inside": True}, "address": ADDRESS,
        },
        {"access": KEYS, "service_name": "c" * 44},
        {"observability": KEPT, "resources": {"cpu": 6}},
        {"resources": {"cpu": 8}},
        {"vllm": {"disable-log-stats": True}},
        {"observability": KEPT, "access": KEYS, "environment": "prod", "scaling": {"min_instances": 1}},
        {
            "observability": KEPT, "accelerator": "nvidia-rtx-pro-6000", "region": "us-central1",
            "resources": {"cpu": 30, "memory": "96Gi"},
        },
    ],
)  # fmt: skip
def test_what_goes_together_is_planned(changes) -> None:
    assert make_plan(with_changes({"cost": WIDE} | changes), project="acme-llm", stack="l4-qat")


@pytest.mark.parametrize(
    ("changes", "key", "why"),
    [
        ({"observability": KEPT, "vllm": {"disable-log-stats": True}}, "bezel:vllm.disable-log-stats", "none of the"),
        ({"access": KEYS | {"public": True}}, "bezel:access.public", "past the door"),
        ({"access": KEYS, "service_name": "c" * 45}, "bezel:service_name", "49 characters"),
        ({"access": KEYS, "cost": {"max_hourly_usd": 5.9}}, "bezel:cost.max_hourly_usd", "gateway and door cost"),
    ],
)
def test_leases_refuse_the_same(changes, key, why) -> None:
    (problem,) = lease_problems(with_lease_changes(V6E4_MOE, **changes))
    assert (problem.key, why in problem.consequence) == (key, True), problem


def test_all_faults_of_both_settings_are_reported_at_once() -> None:
    changes = {"observability": KEPT, "access": KEYS | {"public": True}, "vllm": {"disable-log-stats": True}}
    keys = {problem.key for problem in lease_problems(with_lease_changes(V6E4_MOE, **changes))}
    assert keys == {"bezel:vllm.disable-log-stats", "bezel:access.public"}
