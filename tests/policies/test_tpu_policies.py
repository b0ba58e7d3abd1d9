"""A TPU ends by itself, costs what its chips cost, and is recognised on each type of resource that can hold one."""

from __future__ import annotations

import json

import pytest
from policy_trial import INSTANCE, LABELS, LEASE, QUEUE, TPU_VM, UNKNOWN, asked, changed, instance, queue

NODE = "tpu.nodeSpec.0.node"
HOLDERS = {
    "instance": (INSTANCE, instance()),
    "lease": (LEASE, {"lease_id": "l", "body": queue()}),
    "lease at the top": (LEASE, queue()),
    "lease as text": (LEASE, {"body": json.dumps(queue())}),
    "by topology": (
        LEASE,
        queue({f"{NODE}.acceleratorType": None, f"{NODE}.acceleratorConfig": {"type": "V6E", "topology": "2x2"}}),
    ),
}
COST = ["hourly-ceiling", "monthly-ceiling", "most-instances", "allowed-accelerators", "always-on", "run-duration"]


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("policy", COST)
def test_four_chips_for_four_hours_pass_in_dev(holder: str, policy: str) -> None:
    assert asked(policy, *HOLDERS[holder]) == []


@pytest.mark.parametrize("holder", HOLDERS)
def test_an_hour_costs_5_40_and_the_lease_21_60(holder: str) -> None:
    for policy, usd in (("hourly-ceiling", 5.40), ("monthly-ceiling", 21.60)):
        assert asked(policy, *HOLDERS[holder], {"limits": {"dev": usd}}) == []
        (message,) = asked(policy, *HOLDERS[holder], {"limits": {"dev": usd - 0.01}})
        assert f"{usd:.4f} USD" in message


@pytest.mark.parametrize(
    ("token", "inputs", "words"),
    [
        (INSTANCE, instance({"scheduling.maxRunDuration": None}), ["maxRunDuration.seconds = (not set)", "4 h"]),
        (INSTANCE, instance({"scheduling.maxRunDuration.seconds": 0.0}), ["(not set)", "Nothing would end this one"]),
        (INSTANCE, instance({"scheduling.maxRunDuration.seconds": 86400.0}), ["= 86400 s", "at most 14400 s"]),
        (INSTANCE, instance({"scheduling.maxRunDuration.seconds": UNKNOWN}), ["not known before the deploy"]),
        (LEASE, {"body": queue({"runDuration": None})}, ["body.runDuration.maxRunDuration = (not set)"]),
        (LEASE, queue({"runDuration.maxRunDuration": "604800s"}), ["= 604800 s"]),
        (LEASE, queue({"runDuration.maxRunDuration": "0s"}), ["(not set)"]),
        (LEASE, queue({"runDuration.maxRunDuration": "7 days"}), ["no duration"]),
        (LEASE, queue({"tpu.nodeSpec.0.multisliceParams": {"nodeCount": 1e30}}), ["nodeCount = 1"]),
        (LEASE, {"body": '{"tpu": {"nodeSpec": [cut off'}, ["body = (text)", "no JSON"]),
        (LEASE, {"body": UNKNOWN}, ["body = (not known before the deploy)"]),
        (
            TPU_VM,
            {"zone": "us-east5-b", "acceleratorType": "v6e-4", "labels": LABELS},
            ["maxRunDuration = (not set)", "take a queued resource"],
        ),
        (
            QUEUE,
            {
                "tpu": {
                    "nodeSpecs": [{"parent": "projects/p/locations/us-east5-b", "node": {"acceleratorType": "v6e-1"}}]
                }
            },
            ["maxRunDuration = (not set)", "take a queued resource"],
        ),
    ],
)
def test_a_tpu_that_runs_too_long_or_for_ever_is_refused(token: str, inputs, words) -> None:
    (message,) = asked("run-duration", token, inputs)
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"zone": "us-central1-b"}, "tpu, v6e chip, us-central1, flex-start"),
        ({"machineType": "ct6e-standard-16t"}, "v6e-16"),
        ({"scheduling.provisioningModel": "RESERVATION_BOUND"}, "RESERVATION_BOUND"),
        ({"machineType": "ct5lp-hightpu-4t"}, "no price"),
    ],
)
def test_an_instance_without_a_price_is_refused(changes, words: str) -> None:
    (message,) = asked("hourly-ceiling", INSTANCE, instance(changes))
    assert words in message


@pytest.mark.parametrize(
    ("token", "inputs", "usd"),
    [
        (INSTANCE, instance({"scheduling.provisioningModel": None}), "10.8000"),
        (INSTANCE, instance({"scheduling.provisioningModel": "STANDARD", "zone": "europe-west4-a"}), "11.8800"),
        (INSTANCE, instance({"scheduling.provisioningModel": None, "scheduling.preemptible": True}), "5.6132"),
        (TPU_VM, {"zone": "us-east5-b", "acceleratorType": "v6e-4", "labels": LABELS}, "10.8000"),
        (
            TPU_VM,
            {"zone": "us-east5-b", "acceleratorType": "v6e-8", "schedulingConfig": {"spot": True}, "labels": LABELS},
            "11.2264",
        ),
        (LEASE, queue({"provisioningModel": None, "spot": {}}), "5.6132"),
        (LEASE, queue({"tpu.nodeSpec.0.multisliceParams": {"nodeCount": 2.0}}), "10.8000"),
    ],
)
def test_each_way_to_buy_has_its_own_price(token: str, inputs, usd: str) -> None:
    (message,) = asked("hourly-ceiling", token, inputs, {"limits": {"dev": 1}})
    assert f"{usd} USD" in message


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        ("gcp:tpu/node:Node", {"acceleratorType": "v3-8"}),
        ("gcp:container/nodePool:NodePool", {"nodeConfig": {"machineType": "ct6e-standard-4t"}}),
        ("kubernetes:core/v1:Pod", {"spec": {"containers": [{"resources": {"limits": {"google.com/tpu": "4"}}}]}}),
        ("pulumi-python:dynamic/other:Lease", {"accelerator_type": "v6e-4"}),
    ],
)
def test_a_tpu_on_a_type_that_is_not_known_has_no_end_that_is(token: str, inputs) -> None:
    (message,) = asked("run-duration", token, inputs)
    assert "has no maximum run duration that this policy knows" in message


def test_a_gpu_needs_no_end() -> None:
    assert asked("run-duration", INSTANCE, {"machineType": "g2-standard-8"}) == []


def test_nodes_count_as_instances() -> None:
    three = queue({"tpu.nodeSpec.0.multisliceParams": {"nodeCount": 3.0}})
    (message,) = asked("most-instances", LEASE, three)
    assert "= 3" in message


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        (LEASE, queue({"provisioningModel": None, "guaranteed": {"reserved": True}})),
        (
            TPU_VM,
            {
                "zone": "us-east5-b",
                "acceleratorType": "v6e-4",
                "schedulingConfig": {"reserved": True},
                "labels": LABELS,
            },
        ),
    ],
)
def test_what_is_reserved_has_no_price_here(token: str, inputs) -> None:
    (message,) = asked("hourly-ceiling", token, inputs)
    assert "provisioning model reserved" in message


def test_a_kind_that_is_not_on_the_list_is_refused() -> None:
    (message,) = asked("allowed-accelerators", INSTANCE, instance({"machineType": "ct6e-standard-8t"}))
    assert "machineType = v6e-8" in message


@pytest.mark.parametrize(
    ("policy", "token", "inputs", "key"),
    [
        (
            "no-external-address",
            INSTANCE,
            instance({"networkInterfaces.0.accessConfigs": [{}]}),
            "networkInterfaces.0.accessConfigs",
        ),
        (
            "no-external-address",
            INSTANCE,
            instance({"networkInterfaces.0.ipv6AccessConfigs": [{"networkTier": "PREMIUM"}]}),
            "ipv6AccessConfigs",
        ),
        ("no-external-address", LEASE, queue({f"{NODE}.networkConfig.enableExternalIps": True}), "enableExternalIps"),
        (
            "no-external-address",
            TPU_VM,
            {"zone": "z-a", "acceleratorType": "v6e-1", "networkConfig": {"enableExternalIps": True}},
            "networkConfig.enableExternalIps",
        ),
        (
            "no-external-address",
            TPU_VM,
            {"zone": "z-a", "acceleratorType": "v6e-1", "networkConfigs": [{"enableExternalIps": True}]},
            "networkConfigs.0.enableExternalIps",
        ),
        ("no-external-address", INSTANCE, instance({"networkInterfaces": UNKNOWN}), "networkInterfaces = (not known"),
        ("own-service-account", INSTANCE, instance({"serviceAccount": None}), "serviceAccount.email = (not set)"),
        ("own-service-account", LEASE, queue({f"{NODE}.serviceAccount": None}), "node.serviceAccount.email"),
        (
            "own-service-account",
            INSTANCE,
            instance({"serviceAccount.email": "1234-compute@developer.gserviceaccount.com"}),
            "1234-compute@",
        ),
        ("labels", LEASE, {"body": queue({f"{NODE}.labels.owner": None})}, "node.labels.owner = (not set)"),
        ("no-plain-secret", INSTANCE, instance({"metadata.hf_token": "abc"}), "metadata.hf_token"),
        ("no-plain-secret", INSTANCE, instance({"metadata.startup": f"x hf_{'a' * 20} y"}), "metadata.startup"),
        ("no-plain-secret", INSTANCE, instance({"metadataStartupScript": f"T=hf_{'a' * 20}"}), "metadataStartupScript"),
        ("no-plain-secret", LEASE, {"body": queue({f"{NODE}.metadata.password": "x"})}, "node.metadata.password"),
    ],
)
def test_what_is_unsafe_on_an_accelerator_is_refused(policy: str, token: str, inputs, key: str) -> None:
    (message,) = asked(policy, token, inputs)
    assert key in message


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("policy", ["no-external-address", "own-service-account", "labels", "no-plain-secret"])
def test_what_is_safe_passes(holder: str, policy: str) -> None:
    assert asked(policy, *HOLDERS[holder]) == []


def test_an_instance_without_an_accelerator_may_have_an_address() -> None:
    open_one = changed(instance({"machineType": "e2-small"}), {"networkInterfaces.0.accessConfigs": [{}]})
    assert asked("no-external-address", INSTANCE, open_one) == []
