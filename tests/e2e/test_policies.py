"""The packs in the real engine: what they let pass, what they refuse with exit code 1, and that nothing fails open."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.e2e import warm_python
from tests.support.e2e.rehearsal import BOTH_PACKS, COST_PACK, SECURITY_PACK, Rehearsal, Run

if TYPE_CHECKING:
    from tests.support.e2e.fault_harness import FaultHarness

SERVICE = "gcp:cloudrunv2/service:Service"
# The plan alone would refuse each of these, were it not for this limit of the stack's own.
RICH = {"max_hourly_usd": 1000, "max_idle_hourly_usd": 1000}
TOO_MUCH: dict[str, tuple[dict[str, Any], list[str]]] = {
    # As many as the project has quota for: more are refused before a pack is asked.
    "three instances": (
        {"scaling": {"max_instances": 3}},
        [
            "- [mandatory]  most-instances  (gcp:cloudrunv2:Service: vllm-service-service)",
            "maxInstanceCount = 3",
            "at most 2",
        ],
    ),
    "an RTX in dev": (
        {"accelerator": "nvidia-rtx-pro-6000", "region": "us-central1", "scaling": {"max_instances": 2}},
        [
            "allowed-accelerators",
            "accelerator = nvidia-rtx-pro-6000",
            "dev may have nvidia-l4",
            "- [mandatory]  hourly-ceiling",
            "6.3792 USD an hour",
        ],
    ),
    "an instance that always runs": (
        {"scaling": {"min_instances": 1}},
        ["always-on", "minInstanceCount = 1", "none may run without traffic"],
    ),
}


def preview(rehearsal: Rehearsal, *options: str, **settings: object) -> Run:
    """Preview the stack with other settings; its file is as before afterwards."""
    return run_with(rehearsal, "preview", *options, "--suppress-outputs", **settings)


def run_with(rehearsal: Rehearsal, action: str, *options: str, **settings: object) -> Run:
    """Run `bezel local ACTION` on the stack with other settings."""
    file = rehearsal.folder / "Pulumi.l4-qat.yaml"
    kept = file.read_text()
    try:
        for path, value in settings.items():
            rehearsal.set(path, value)
        return rehearsal.local(action, "l4-qat", "--", *options)
    finally:
        file.write_text(kept)


def test_the_unchanged_stack_passes_its_first_preview_with_both_packs(first_preview: Run) -> None:
    run = first_preview
    assert run.code == 0, run.text
    for pack in ("hardware-cost", "security"):
        assert f"✅ {pack}@v0.1.0" in run.text
    assert "hardware_cost.dev.json" in run.text


@pytest.mark.wide_except("three instances-*")
@pytest.mark.parametrize(("name", "action"), list(zip(TOO_MUCH, ["preview", "preview", "up"], strict=True)))
def test_a_stack_that_costs_too_much_is_refused_by_the_pack_alone(
    shared_rehearsal: Rehearsal, name: str, action: str
) -> None:
    settings, phrases = TOO_MUCH[name]
    run = run_with(shared_rehearsal, action, "--policy-pack", COST_PACK, cost=RICH, **settings)
    assert run.code == 1, run.text
    for word in [*phrases, "[mandatory]", "Repair:"]:
        assert word in run.text
    assert "Traceback" not in run.text
    # Also of an `up` nothing was made, beside what a user prepares.
    assert not shared_rehearsal.exists().keys() - {"buckets", "objects", "enabledApis"}
    assert shared_rehearsal.exists()["enabledApis"] == ["cloudquotas.googleapis.com"]


@pytest.mark.parametrize("name", TOO_MUCH)
def test_the_same_stack_is_refused_by_the_plan_alone(shared_rehearsal: Rehearsal, name: str) -> None:
    run = preview(shared_rehearsal, **TOO_MUCH[name][0])
    assert run.code == 1, run.text
    assert "cannot be planned: 1 problem" in run.text
    assert "USD per hour" in run.text
    assert "Repair:" in run.text
    assert SERVICE not in run.text


def test_a_misspelt_configuration_is_a_failure_that_names_it(shared_rehearsal: Rehearsal) -> None:
    config = json.loads((shared_rehearsal.folder / f"{COST_PACK}.dev.json").read_text())
    config["hourly-cieling"] = config.pop("hourly-ceiling")
    config["always-on"] = {"limits": {"DEV": 0}}
    config["run-duration"] = {"limits": {"dev": "long"}}
    file = shared_rehearsal.folder / "own.json"
    file.write_text(json.dumps(config))
    run = preview(shared_rehearsal, "--policy-pack", COST_PACK, "--policy-pack-config", "own.json")
    assert run.code == 1, run.text
    for phrase in ("hourly-ceiling: limits is required", 'always-on: limits: Property name of "DEV"'):
        assert phrase in run.text
    assert "run-duration: limits.dev: Invalid type. Expected: number, given: string" in run.text


def test_a_pack_that_cannot_start_is_a_failure(shared_rehearsal: Rehearsal) -> None:
    pack = shared_rehearsal.folder / "policies" / "broken"
    shutil.copytree(shared_rehearsal.folder / SECURITY_PACK, pack)
    (pack / "__main__.py").write_text("raise RuntimeError('it cannot start')\n")
    run = preview(shared_rehearsal, "--policy-pack", "policies/broken")
    assert run.code == 1, run.text
    assert "policies/broken" in run.text
    assert "failed to start" in run.text
    assert SERVICE not in run.text


def analyze_state(rehearsal: Rehearsal, state: dict[str, Any]) -> Run:
    """Judge a state, as `pulumi stack export` writes it, with both packs."""
    file = rehearsal.folder / "state.json"
    file.write_text(json.dumps(state))
    packs = [
        option
        for pack in (COST_PACK, SECURITY_PACK)
        for option in ("--policy-pack", pack, "--policy-pack-config", f"{pack}.dev.json")
    ]
    command = [str(Path(sys.executable).parent / "pulumi"), "policy", "analyze", "--file", str(file), *packs]
    variables = {
        "PULUMI_HOME": str(rehearsal.cloud / "home"),
        "PULUMI_SKIP_UPDATE_CHECK": "1",
        **warm_python.variables(rehearsal.folder),
    }
    done = subprocess.run(
        command, cwd=rehearsal.folder, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    return Run(done.returncode, done.stdout + done.stderr)


def export_state(rehearsal: Rehearsal) -> dict[str, Any]:
    """The state of the stack."""
    lines = rehearsal.local("env").text
    command = f'{lines}\ncd "{rehearsal.cloud}/stacks/bezel" && pulumi stack export --stack l4-qat'
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)
    state: dict[str, Any] = json.loads(done.stdout)
    return state


def test_missing_labels_are_filled_in_and_deployed_resources_judged(stage: FaultHarness) -> None:
    rehearsal = stage.rehearsal
    rehearsal.set("labels", None)
    run = stage.up("--", *BOTH_PACKS)
    assert run.code == 0, run.text
    assert "[remediate]  labels" in run.text
    again = rehearsal.local("preview", "l4-qat", "--", *BOTH_PACKS, "--expect-no-changes", "--suppress-outputs")
    assert again.code == 0, again.text
    state = export_state(rehearsal)
    run = analyze_state(rehearsal, state)
    assert run.code == 0, run.text
    (service,) = [one for one in state["deployment"]["resources"] if one["type"] == SERVICE]
    assert service["outputs"]["labels"]["expires-at"] == "never"
    service["inputs"]["template"]["scaling"]["maxInstanceCount"] = 40
    service["inputs"]["template"]["containers"][0]["image"] = "vllm/vllm-openai:latest"
    run = analyze_state(rehearsal, state)
    assert run.code == 1, run.text
    for name in ("most-instances", "image-by-digest", "mandatory"):
        assert name in run.text
