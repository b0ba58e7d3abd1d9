"""The bodies of both back ends: what a zone adds, what makes another lease, and what the real provider sends."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from bezel.leases.names import differing_paths, labels, request_id, spec_hash
from bezel.leases.requests import LeaseSpec, ZoneChoice, instance_body, queued_body
from localcloud_support.discovery_check import method_of, request_problems
from tests.support.leases.harness import ACCOUNT, NAME, STACK, body_of

TRAFFIC = os.environ.get("BEZEL_TRAFFIC")
KINDS = ("queued_resource", "flex_start_vm")
SUBNETWORK = "projects/acme/regions/us-east5/subnetworks/s"


def whole(kind: str, zone: str = "us-east5-a", patience: float = 7200.0, **more: Any) -> dict[str, Any]:
    spec = LeaseSpec("acme", NAME, STACK, kind, (), {"us-east5": SUBNETWORK}, body_of(kind, **more))  # type: ignore[arg-type]
    return spec.body_in(ZoneChoice(zone, patience))


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_carries_our_labels_its_hash_and_no_external_address(kind: str) -> None:
    """A body in a zone carries our labels, no external address and its own hash."""
    made = whole(kind)
    node = made["tpu"]["nodeSpec"][0]["node"] if "tpu" in made else made
    hashed = spec_hash(body_of(kind))
    ours = {"managed-by": "bezel", "stack": STACK, "bezel-lease": NAME, "bezel-spec": hashed, "app": "vllm"}
    assert node["labels"] == ours
    assert "accessConfigs" not in json.dumps(made)
    if kind == "queued_resource":
        assert node["networkConfig"] == {"enableExternalIps": False, "subnetwork": SUBNETWORK}
        assert made["queueingPolicy"] == {"validUntilDuration": "7200s"}
    else:
        assert made["networkInterfaces"] == [{"subnetwork": SUBNETWORK}]
        assert made["params"] == {"requestValidForDuration": {"seconds": "7200"}}


@pytest.mark.parametrize("kind", KINDS)
def test_zone_and_patience_do_not_change_the_hash_and_everything_else_does(kind: str) -> None:
    def hash_of(made: dict[str, Any]) -> str:
        node = made["tpu"]["nodeSpec"][0]["node"] if "tpu" in made else made
        return str(node["labels"]["bezel-spec"])

    assert hash_of(whole(kind)) == hash_of(whole(kind, "europe-west4-a", 60.0))
    assert hash_of(whole(kind)) != hash_of(whole(kind, image="vllm@sha256:2"))


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_that_the_engine_made_floats_are_the_same_body(kind: str) -> None:
    body = {**body_of(kind), "more": {"seconds": 14400, "none": None}}
    through = {**body_of(kind), "more": {"seconds": 14400.0}}
    assert spec_hash(body) == spec_hash(through)
    assert differing_paths(body, through) == []
    assert differing_paths(body, {**through, "more": {"seconds": 1.0}}) == ["body.more.seconds"]


@pytest.mark.slow
def test_both_bodies_are_what_googles_own_documents_allow() -> None:
    for kind, path in (
        ("queued_resource", "/tpu/v2alpha1/projects/acme/locations/us-east5-a/queuedResources"),
        ("flex_start_vm", "/compute/v1/projects/acme/zones/us-east5-a/instances"),
    ):
        method = method_of("POST", path)
        if method is None:
            pytest.skip("the discovery check does not know this API")
        assert request_problems(method, [("requestId", "x")], whole(kind)) == []
        assert request_problems(method, [], {**whole(kind), "nonsense": 1}) != []


def test_a_topology_takes_the_place_of_the_type_and_spot_has_no_duration() -> None:
    made = queued_body(
        "l", runtime_version="v", labels={}, metadata={}, service_account=ACCOUNT, topology=("V6E", "2x2"),
        provisioning_model="SPOT",
    )  # fmt: skip
    node = made["tpu"]["nodeSpec"][0]["node"]
    assert node["acceleratorConfig"] == {"type": "V6E", "topology": "2x2"}
    assert "acceleratorType" not in node
    assert "runDuration" not in made


def test_only_a_flex_start_machine_waits_for_capacity() -> None:
    for model, waits in (("FLEX_START", True), ("SPOT", False), ("STANDARD", False)):
        body = instance_body(
            machine_type="g2-standard-96", source_image="i", labels={}, metadata={}, service_account=ACCOUNT,
            provisioning_model=model, disk_type="pd-balanced",  # type: ignore[arg-type]
        )  # fmt: skip
        spec = LeaseSpec("acme", NAME, STACK, "flex_start_vm", (), {}, body)
        assert ("params" in spec.body_in(ZoneChoice("us-east4-a", 600.0))) is waits


def test_a_request_asked_for_again_later_is_another_request() -> None:
    first = request_id(NAME, "us-east5-a", "0" * 12, 1.0)
    assert first == request_id(NAME, "us-east5-a", "0" * 12, 1.0)
    assert first != request_id(NAME, "us-east5-a", "0" * 12, 2.0)


@pytest.mark.skipif(not TRAFFIC, reason="BEZEL_TRAFFIC does not name a folder with recordings")
def test_the_insert_is_what_the_published_provider_sends() -> None:
    """The insert is what the published provider sends but for what is reported."""
    recorded = Path(str(TRAFFIC)) / "http" / "compute.Instance.create.lro-done.json"
    sent = json.loads(recorded.read_text())["exchanges"][0]["body"]
    image = sent["disks"][0]["initializeParams"]["sourceImage"]
    account = sent["serviceAccounts"][0]["email"]
    metadata = {item["key"]: item["value"] for item in sent["metadata"]["items"]}
    body = instance_body(
        machine_type="ct6e-standard-1t", source_image=image, labels=labels("llm-tpu", "s"), metadata=metadata,
        service_account=account, run_seconds=14400, tags=("llm",),
    )  # fmt: skip
    subnetwork = sent["networkInterfaces"][0]["subnetwork"]
    spec = LeaseSpec("demo-project", "llm-tpu", "s", "flex_start_vm", (), {"us-east5": subnetwork}, body)
    ours = spec.body_in(ZoneChoice("us-east5-a", 7200.0))
    reported = {"labels", "params", "networkInterfaces"}  # our own labels; the wait for capacity; no external address
    filled = {key: value for key, value in _without_zeros(sent).items() if key not in reported}
    assert _without_zeros({key: value for key, value in ours.items() if key not in reported}) == filled
    assert ours["networkInterfaces"] == [{"subnetwork": subnetwork}]


def _without_zeros(value: Any) -> Any:
    """Without what the provider sends as zero, and the defaults that it spells out; numbers as texts."""
    if isinstance(value, dict):
        fields = {key: _without_zeros(item) for key, item in value.items()}
        return {key: item for key, item in fields.items() if item not in (None, False, {}, [], "READ_WRITE")}
    if isinstance(value, list):
        return [item for one in value if (item := _without_zeros(one)) not in (None, {})]
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value
