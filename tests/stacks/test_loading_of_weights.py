"""Each way of loading weights as resources: what is made, mounted and looked at, and what is not."""

from typing import Any

import pytest

from bezel.planner import make_plan
from bezel_stacks.dispatch import deploy
from tests.support.components.fake_engine import Declarations, declare

FOLDER = "gemma-4-12B-it-assistant"
SETTINGS: dict[str, Any] = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"}


def declare_plan(loading: str) -> Declarations:
    plan = make_plan({**SETTINGS, "weights": {"loading": loading}}, project="acme-llm", stack="l4-qat")
    return declare(lambda: deploy(plan))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loading", "mounted", "looked_at"),
    [("fuse", 1, 1), ("fuse-prefetch", 1, 1), ("runai-streamer", 0, 1), ("hub", 0, 0)],
)
def test_only_a_mounting_way_mounts_and_only_a_bucket_is_read(loading: str, mounted: int, looked_at: int) -> None:
    declared = declare_plan(loading)
    template = declared.one("cloudrunv2/service:Service").inputs["template"]
    assert len(template.get("volumes") or ()) == mounted
    assert len(template["containers"][0].get("volumeMounts") or ()) == mounted
    assert len(declared.of("ModelFiles")) == looked_at
    assert len(declared.of("BucketIAMMember")) == looked_at


@pytest.mark.slow
def test_the_draft_model_is_looked_at_before_the_service_is_made_too() -> None:
    drafts = {"spec-method": "mtp", "spec-model": f"/mnt/models/{FOLDER}", "spec-tokens": 3}
    plan = make_plan({**SETTINGS, "vllm": drafts}, project="acme-llm", stack="l4-qat")
    declared = declare(lambda: deploy(plan))
    looked_at = {files.inputs["path"]: files for files in declared.of("ModelFiles")}
    assert set(looked_at) == {"gemma-4-12B-it-qat-w4a16-ct", FOLDER}
    assert (looked_at[FOLDER].inputs["draft"], looked_at[FOLDER].inputs["source"]) == (
        True,
        "google/gemma-4-12B-it-assistant",
    )
    service = declared.one("cloudrunv2/service:Service")
    assert all(declared.waits_for(service, files) for files in looked_at.values())


@pytest.mark.slow
def test_adapters_are_looked_at_before_the_service_is_made() -> None:
    modules = {"enable-lora": True, "max-lora-rank": 32, "lora-modules": ["sql=/mnt/models/own/sql"]}
    plan = make_plan({**SETTINGS, "vllm": modules}, project="acme-llm", stack="l4-qat")
    declared = declare(lambda: deploy(plan))
    looked_at = {files.inputs["path"]: files for files in declared.of("ModelFiles")}
    assert set(looked_at) == {"gemma-4-12B-it-qat-w4a16-ct", "own/sql"}
    assert looked_at["own/sql"].inputs["adapter_rank"] == 32
    assert "adapter_rank" not in looked_at["gemma-4-12B-it-qat-w4a16-ct"].inputs
    assert declared.waits_for(declared.one("cloudrunv2/service:Service"), looked_at["own/sql"])


@pytest.mark.slow
def test_a_download_may_go_to_the_hub_and_nothing_else_may() -> None:
    for loading in ("fuse", "runai-streamer", "hub"):
        (container,) = declare_plan(loading).one("cloudrunv2/service:Service").inputs["template"]["containers"]
        offline = "HF_HUB_OFFLINE" in {variable["name"] for variable in container["envs"]}
        assert offline is (loading != "hub")
