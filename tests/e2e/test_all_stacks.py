"""Every stack file of a service: gated before it exists, made, checked, measured, and its outputs complete."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bezel.engine.project.project import Project
from bezel.planner.base.hardware import find_leased_hardware
from tests.support.e2e.rehearsal import ROOT, Rehearsal

PROJECT = Project(ROOT)
STACKS = [
    name for name in PROJECT.stacks() if find_leased_hardware(str(PROJECT.configuration(name)["accelerator"])) is None
]
PACKS = ("hardware_cost", "security")


@pytest.fixture
def checkout(tmp_path: Path) -> Iterator[Rehearsal]:
    made = Rehearsal.new(tmp_path / "checkout", tmp_path / "cloud")
    yield made
    made.stop_cloud()


# One of each accelerator, with a preview and with drafts; of the others tests/stacks says that packs let them pass.
SOME = ("l4-qat", "rtx6000-mtp")


@pytest.mark.wide
@pytest.mark.parametrize("stack", [pytest.param(one, marks=() if one in SOME else pytest.mark.long) for one in STACKS])
def test_a_stack_passes_both_packs_and_serves(checkout: Rehearsal, stack: str) -> None:
    # What a stack file says of its smoke stays; only the benchmark is short.
    for key, value in {"requests": 4, "output_tokens": 8, "prompt_tokens": 32}.items():
        checkout.set(f"smoke.{key}", value, stack)
    # Each resource is judged before it is made; that with packs `up` previews the whole first is seen once.
    packs = [word for pack in PACKS for word in ("--policy-pack", f"policies/{pack}")]
    previews = stack == "l4-qat"
    made = checkout.local("up", stack, "--", *packs, *(() if previews else ("--skip-preview",)))
    assert made.code == 0, made.text
    assert ("Previewing update" in made.text) is previews
    for pack in PACKS:
        assert f"✅ {pack.replace('_', '-')}@" in made.text
    assert f"{stack} is in service on localcloud" in made.text

    outputs = checkout.outputs(stack)
    config = _config(checkout, stack)
    assert outputs["url"].startswith("http")
    assert outputs["revision"].rpartition("/")[2].startswith(f"bezel-{stack}-")
    assert outputs["model"] == config["bezel:model"]
    assert outputs["simulated"] is True
    assert outputs["smoke"]["verdict"]["ok"] is True
    assert outputs["smoke"]["figures"]["completed"] == 4
    plan = outputs["plan"]
    assert 0 < plan["cost"]["usd_per_hour_all_instances"] <= config["bezel:cost"]["max_hourly_usd"]
    assert plan["fit"]["full_context_sequences"] >= 1
    assert f"--max-model-len={plan['fit']['max_model_len']}" in outputs["arguments"]
    drafts = outputs["smoke"]["verdict"]["checks"].get("speculation")
    assert (drafts is not None) == ("spec-method" in config["bezel:vllm"])
    if drafts:
        assert "at least 30.0% was required" in drafts["detail"]


def _config(checkout: Rehearsal, stack: str) -> dict[str, Any]:
    settings: dict[str, Any] = yaml.safe_load((checkout.folder / f"Pulumi.{stack}.yaml").read_text())["config"]
    return settings
