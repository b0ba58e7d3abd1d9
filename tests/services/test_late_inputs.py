"""Names of buckets and networks may be outputs of other resources; whatever the plan or a policy judges may not."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import pulumi
import pulumi_gcp as gcp  # whole: its parts load at their first use, `compute` takes a second in each worker
import pytest
from pulumi_policy import EnforcementLevel, ResourceValidationPolicy

from bezel_services.leased_vllm_service import LeasedVllmService
from bezel_services.settings.planning import ServiceRefusedError
from bezel_services.vllm_service import VllmService
from tests.support.components.fake_engine import Declarations, declare, has_unknown
from tests.support.policies.harness import POLICIES, example, violations

if TYPE_CHECKING:
    from collections.abc import Callable

CHAT: dict[str, Any] = {
    "model": "gemma-4-12b-it-qat-w4a16",
    "accelerator": "nvidia-l4",
    "region": "us-east4",
    "labels": {"owner": "ml", "expires-at": "never"},
}
SERVICE = "cloudrunv2/service:Service"


def output(text: str = "made") -> pulumi.Output[str]:
    """An output that is known already."""
    return pulumi.Output.from_input(text)


def declare_with_outputs(*, preview: bool) -> Declarations:
    """A program whose bucket and network are resources of its own."""

    def program() -> None:
        bucket = gcp.storage.Bucket("models", name="acme-made", location="US-EAST4")
        network = gcp.compute.Network("net", name="made-net")
        subnetwork = gcp.compute.Subnetwork("sub", name="made-sub", network=network.id, ip_cidr_range="10.8.0.0/26")
        VllmService(
            "chat",
            project="acme-llm",
            weights={"bucket": bucket.id},
            vpc={"network": network.id, "subnetwork": subnetwork.id},
            **CHAT,
        )

    return declare(program, preview=preview)


@pytest.mark.slow
def test_outputs_of_other_resources_arrive_at_the_service() -> None:
    declared = declare_with_outputs(preview=False)
    template = declared.one(SERVICE).inputs["template"]
    assert template["volumes"][0]["gcs"]["bucket"] == "models-id"
    (interface,) = template["vpcAccess"]["networkInterfaces"]
    assert (interface["network"], interface["subnetwork"]) == ("net-id", "sub-id")
    assert declared.one("BucketIAMMember").inputs["bucket"] == "models-id"
    model = declared.one("ModelFiles").inputs
    assert (model["bucket"], model["bucket_url"]) == ("models-id", "gs://models-id")
    assert declared.waits_for(declared.one("ModelFiles"), declared.by_name("models"))
    assert "known-after-the-deploy" not in declared.everything()


@pytest.mark.slow
def test_unknown_names_pass_every_policy_in_the_preview(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    declared = declare_with_outputs(preview=True)
    assert has_unknown(declared.one(SERVICE).inputs["template"]["volumes"])
    limits = example("hardware_cost", "dev") | example("security", "dev")
    judged = [one for one in declared.all if one.name.startswith("chat-")]
    for name, policy in POLICIES.items():
        if not isinstance(policy, ResourceValidationPolicy):
            continue
        if policy.enforcement_level is not EnforcementLevel.REMEDIATE:
            for one in judged:
                assert violations(name, one.type, one.inputs, limits.get(name, {})) == []
    assert "neither its location nor the price of reading from it is judged" in caplog.text
    assert "its range is not judged" in caplog.text


@pytest.mark.parametrize(
    ("changes_by", "parts"),
    [
        (lambda late: {"region": late}, ("region = known only after the deploy", "policies judge it")),
        (lambda late: {"labels": {"owner": late}}, ("labels.owner = known only",)),
        (lambda late: {"access": {"invokers": [late]}}, ("access.invokers.0 = known only",)),
        (lambda late: {"image": {"digest": late}}, ("image.digest = known only",)),
        (
            lambda late: {"weights": {"bucket": late, "loading": "runai-streamer"}},
            ("weights.bucket = known only", "argument"),
        ),
        (
            lambda late: {"weights": {"bucket": late}, "rollout": "gated"},
            ("weights.bucket = known only", 'rollout="direct"'),
        ),
    ],
    ids=("region", "label", "invoker", "digest", "loading", "rollout"),
)
def test_output_that_the_plan_judges_is_refused(
    changes_by: Callable[[pulumi.Output[str]], dict[str, Any]], parts: tuple[str, ...]
) -> None:
    def program() -> None:
        VllmService("chat", project="acme-llm", **{**CHAT, **changes_by(output())})

    with pytest.raises(ServiceRefusedError) as raised:
        declare(program)
    for part in ("VllmService chat cannot be planned: 1 problem.", "Repair: ", *parts):
        assert part in str(raised.value)


def test_leases_take_no_outputs() -> None:
    def program() -> None:
        LeasedVllmService(
            "chat", project="acme-llm", model="m", accelerator="v6e-4", region="us-east5", weights={"bucket": output()}
        )

    with pytest.raises(
        ServiceRefusedError, match=r"weights.bucket = known only after the deploy(.|\n)*VllmService alone"
    ):
        declare(program)
