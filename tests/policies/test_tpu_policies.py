"""A TPU ends by itself, costs what its chips cost, and is recognised on each type of resource that can hold one."""

from __future__ import annotations

import json

import pytest

from tests.support.policies.harness import (
    INSTANCE,
    LABELS,
    LEASE,
    QUEUE,
    TPU_VM,
    UNKNOWN,
    change,
    instance,
    queue,
    request,
    stack_violations,
    violations,
)

NODE = "tpu.nodeSpec.0.node"
HOLDERS = {
    "instance": (INSTANCE, instance()),
    "lease": (LEASE, {"lease_id": "l", "body": queue()}),
    "queued request": (LEASE, request("queued_resource")),
    "request for a machine": (LEASE, request("flex_start_vm")),
    "lease at the top": (LEASE, queue()),
    "lease as text": (LEASE, {"body": json.dumps(queue())}),
    "by topology": (
        LEASE,
        queue({f"{NODE}.acceleratorType": None, f"{NODE}.acceleratorConfig": {"type": "V6E", "topology": "2x2"}}),
    ),
}
COST = [
    "hourly-ceiling",
    "monthly-ceiling",
    "most-instances",
    "allowed-accelerators",
    "always-on",
    "run-duration",
    "lease-ceiling",
    "provisioning-models",
]


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("policy", COST)
def test_four_chips_for_four_hours_pass_in_dev(holder: str, policy: str) -> None:
    assert violations(policy, *HOLDERS[holder]) == []


@pytest.mark.parametrize("holder", HOLDERS)
def test_an_hour_costs_5_40_and_the_lease_21_60(holder: str) -> None:
    for policy, usd in (("hourly-ceiling", 5.40), ("monthly-ceiling", 21.60), ("lease-ceiling", 21.60)):
        assert violations(policy, *HOLDERS[holder], {"limits": {"dev": usd}}) == []
        (message,) = violations(policy, *HOLDERS[holder], {"limits": {"dev": usd - 0.01}})
        assert f"{usd:.4f} USD" in message


@pytest.mark.parametrize(
    ("token", "inputs", "text"),
    [
        (INSTANCE, instance({"scheduling.maxRunDuration": None}), ["maxRunDuration.seconds = (not set)", "4 h"]),
        (INSTANCE, instance({"scheduling.maxRunDuration.seconds": 0.0}), ["(not set)", "This one would never end"]),
        (
            INSTANCE,
            instance({"scheduling.maxRunDuration.seconds": 86400.0}),
            ["= 86400 s", "lease.duration` to 14400s"],
        ),
        (INSTANCE, instance({"scheduling.maxRunDuration.seconds": UNKNOWN}), ["not known before the deploy"]),
        (LEASE, {"body": queue({"runDuration": None})}, ["body.runDuration.maxRunDuration = (not set)"]),
        (LEASE, queue({"runDuration.maxRunDuration": "604800s"}), ["= 604800 s"]),
        (LEASE, queue({"runDuration.maxRunDuration": "0s"}), ["(not set)"]),
        (LEASE, queue({"runDuration.maxRunDuration": "7 days"}), ["expected a duration"]),
        (LEASE, queue({"tpu.nodeSpec.0.multisliceParams": {"nodeCount": 1e30}}), ["nodeCount = 1"]),
        (LEASE, {"body": '{"tpu": {"nodeSpec": [cut off'}, ["body = (text)", "expected JSON"]),
        (LEASE, {"body": UNKNOWN}, ["body = (not known before the deploy)"]),
        (
            TPU_VM,
            {"zone": "us-east5-b", "acceleratorType": "v6e-4", "labels": LABELS},
            ["maxRunDuration = (not set)", "use a queued resource"],
        ),
        (
            QUEUE,
            {
                "tpu": {
                    "nodeSpecs": [{"parent": "projects/p/locations/us-east5-b", "node": {"acceleratorType": "v6e-1"}}]
                }
            },
            ["maxRunDuration = (not set)", "use a queued resource"],
        ),
    ],
)
def test_a_tpu_that_runs_too_long_or_for_ever_is_refused(token: str, inputs, text) -> None:
    (message,) = violations("run-duration", token, inputs)
    for word in text:
        assert word in message


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"zone": "us-central1-b"}, "tpu, v6e chip, us-central1, flex-start"),
        ({"machineType": "ct6e-standard-16t"}, "v6e-16"),
        ({"scheduling.provisioningModel": "RESERVATION_BOUND"}, "RESERVATION_BOUND"),
        ({"machineType": "ct5lp-hightpu-4t"}, "no price"),
    ],
)
def test_an_instance_without_a_price_is_refused(changes, text: str) -> None:
    (message,) = violations("hourly-ceiling", INSTANCE, instance(changes))
    assert text in message


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
    (message,) = violations("hourly-ceiling", token, inputs, {"limits": {"dev": 1}})
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
    (message,) = violations("run-duration", token, inputs)
    assert "has no maximum run duration that this policy knows" in message


def test_a_gpu_needs_no_end() -> None:
    assert violations("run-duration", INSTANCE, {"machineType": "g2-standard-8"}) == []


def test_nodes_count_as_instances() -> None:
    three = queue({"tpu.nodeSpec.0.multisliceParams": {"nodeCount": 3.0}})
    (message,) = violations("most-instances", LEASE, three)
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
    (message,) = violations("hourly-ceiling", token, inputs)
    assert "provisioning model reserved" in message


def test_a_kind_that_is_not_on_the_list_is_refused() -> None:
    (message,) = violations("allowed-accelerators", INSTANCE, instance({"machineType": "ct6e-standard-8t"}))
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
        ("no-plain-secret", INSTANCE, instance({"metadata.store": "Name=a;AccountKey=abc"}), "metadata.store"),
        (
            "no-plain-secret",
            INSTANCE,
            instance({"metadata.bezel-secrets-by-name": f'{{"HF_TOKEN": "hf_{"a" * 20}"}}'}),
            "metadata.bezel-secrets-by-name",
        ),
    ],
)
def test_what_is_unsafe_on_an_accelerator_is_refused(policy: str, token: str, inputs, key: str) -> None:
    (message,) = violations(policy, token, inputs)
    assert key in message


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("policy", ["no-external-address", "own-service-account", "labels", "no-plain-secret"])
def test_what_is_safe_passes(holder: str, policy: str) -> None:
    assert violations(policy, *HOLDERS[holder]) == []


def test_an_instance_without_an_accelerator_may_have_an_address() -> None:
    open_one = change(instance({"machineType": "e2-small"}), {"networkInterfaces.0.accessConfigs": [{}]})
    assert violations("no-external-address", INSTANCE, open_one) == []


BACK_ENDS = ("queued_resource", "flex_start_vm")
MODELS = {"queued_resource": "provisioningModel", "flex_start_vm": "scheduling.provisioningModel"}


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_a_lease_is_held_to_its_dearest_zone(back_end: str) -> None:
    """A lease is held to its dearest zone and refused where one has no price."""
    on_demand = request(back_end, {MODELS[back_end]: "STANDARD"})
    for usd, passes in ((11.88, True), (11.87, False)):  # 10.80 in the second zone
        assert (violations("hourly-ceiling", LEASE, on_demand, {"limits": {"dev": usd}}) == []) is passes
    somewhere = {**on_demand, "zones": [*on_demand["zones"], {"zone": "southamerica-west1-a", "patience_seconds": 1.0}]}
    (message,) = violations("hourly-ceiling", LEASE, somewhere, {"limits": {"dev": 1000}})
    assert "tpu, v6e chip, southamerica-west1, on-demand" in message


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_only_what_the_environment_may_buy_is_leased(back_end: str) -> None:
    on_demand = request(back_end, {MODELS[back_end]: "STANDARD"})
    (message,) = violations("provisioning-models", LEASE, on_demand)
    assert "dev may lease flex-start, spot only, and this is on-demand" in message
    assert violations("provisioning-models", LEASE, on_demand, {"limits": {"dev": ["on-demand"]}}) == []


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_a_lease_of_ours_without_an_end_is_refused(back_end: str) -> None:
    key = {"queued_resource": "runDuration", "flex_start_vm": "scheduling.maxRunDuration"}[back_end]
    (message,) = violations("run-duration", LEASE, request(back_end, {key: None}))
    assert "This one would never end" in message


def test_eight_gpus_have_no_price_until_somebody_adds_the_row() -> None:
    machine = request("flex_start_vm", {"machineType": "g2-standard-96"})
    (message,) = violations("hourly-ceiling", LEASE, machine, {"limits": {"dev": 100}})
    assert "compute, g2-standard-96, europe-west4, flex-start" in message


def test_what_asks_for_a_lease_and_what_waits_for_it_are_paid_for_once() -> None:
    one, other = request("queued_resource"), {**request("queued_resource"), "name": "m"}
    both = [(LEASE, one), (f"{LEASE}Node", {**one, "renew": False})]
    assert stack_violations("stack-hourly-ceiling", both, {"limits": {"dev": 5.40}}) == []
    (message,) = stack_violations("stack-hourly-ceiling", [*both, (LEASE, other)], {"limits": {"dev": 5.40}})
    assert "10.8000 USD" in message


@pytest.mark.parametrize("back_end", BACK_ENDS)
@pytest.mark.parametrize("policy", ["image-by-digest", "no-plain-secret", "own-service-account", "no-external-address"])
def test_our_own_requests_keep_the_rules_of_security(policy: str, back_end: str) -> None:
    assert violations(policy, LEASE, request(back_end)) == []


@pytest.mark.parametrize("back_end", BACK_ENDS)
def test_a_tag_a_secret_and_a_shared_account_are_seen_in_a_request(back_end: str) -> None:
    """An image by tag, a secret and a shared account are found in a request."""
    queued = back_end == "queued_resource"
    place = "tpu.nodeSpec.0.node.metadata.bezel-image" if queued else "metadata.items.0.value"
    assert violations("image-by-digest", LEASE, request(back_end, {place: "docker.io/vllm/vllm-tpu:latest"}))
    assert violations("no-plain-secret", LEASE, request(back_end, {place: "hf_" + "a" * 30}))
    named = "tpu.nodeSpec.0.node.metadata.bezel-collector-image" if queued else "metadata.items.0"
    item = "gke.gcr.io/prometheus-engine/prometheus:v3.13.0-gmp.1-gke.0"
    collector = item if queued else {"key": "bezel-collector-image", "value": item}
    assert violations("image-by-digest", LEASE, request(back_end, {named: collector}))
    account = "tpu.nodeSpec.0.node.serviceAccount.email" if queued else "serviceAccounts.0.email"
    assert violations("own-service-account", LEASE, request(back_end, {account: "default"}))
