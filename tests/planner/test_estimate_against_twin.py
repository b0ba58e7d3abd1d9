"""The estimate and the simulated server, which has parameters of its own, agree; twice as fast or as slow is noticed.

In virtual time: no second is waited for.
"""

from __future__ import annotations

import dataclasses

import pytest

from bezel.catalog import accelerator, model
from bezel.localcloud.made_up import model_files
from bezel.localcloud.vllm.virtual_load import load, served
from bezel.localcloud.vllm.virtual_time import Rig
from bezel.planner import make_plan
from bezel.planner.roofline import gpu_peaks, verdict
from bezel.planner.speculation import speculative_gain

L4 = {"accelerator": "nvidia-l4", "region": "us-east4"}
LARGE = {**L4, "resources": {"cpu": 8, "memory": "32Gi"}}
RTX = {"accelerator": "nvidia-rtx-pro-6000", "region": "us-central1"}
OFFLOADED = {
    "max-model-len": 4096,
    "gpu-memory-utilization": 0.85,
    "cpu-offload-gb": 5,
    "enforce-eager": True,
    "kv-cache-dtype": "fp8",
    "max-num-batched-tokens": 2048,
    "max-num-seqs": 4,
}
DRAFTING = {"spec-method": "mtp", "spec-model": "/mnt/models/assistant", "spec-tokens": 3}
STACKS = {
    "12B w4a16 on an L4": {**L4, "model": "gemma-4-12b-it-qat-w4a16", "vllm": {"kv-cache-dtype": "fp8"}},
    "31B w4a16 on an L4, offloaded": {**LARGE, "model": "gemma-4-31b-it-qat-w4a16", "vllm": OFFLOADED},
    "E2B on an L4": {**L4, "model": "gemma-4-e2b-it"},
    "26B-A4B fp8 on an RTX": {**RTX, "model": "gemma-4-26b-a4b-it-fp8"},
}


def twin(plan, folder, speed=1.0):
    """The simulated server of a plan, on a machine so many times as fast in everything."""
    service = plan.service
    hardware = {
        "accelerator": service.accelerator,
        "accelerators": 1,
        "cpu": service.cpu,
        "memory_gib": service.memory_gib,
    }
    assistant = folder / "assistant"
    assistant.mkdir(parents=True)
    for name, content in model_files("google/gemma-4-12B-it-assistant").items():
        (assistant / name).write_bytes(content)
    settings = served(folder, plan.model, service.arguments[1:], hardware)
    chip = settings.machine.accelerator
    faster = dataclasses.replace(
        chip,
        memory_bytes_per_second=chip.memory_bytes_per_second * speed,
        host_bytes_per_second=chip.host_bytes_per_second * speed,
        flops_per_second=chip.flops_per_second * speed,
        step_overhead_seconds=chip.step_overhead_seconds / speed,
    )
    return dataclasses.replace(settings, machine=dataclasses.replace(settings.machine, accelerator=faster))


@pytest.mark.parametrize("config", STACKS.values(), ids=STACKS)
def test_the_twin_as_it_is_lies_in_the_range_and_half_or_double_does_not(config, tmp_path):
    plan = make_plan(config, project="p", stack="s")
    expected = plan.estimate
    asked = {"prompt": expected.prompt_tokens, "output": expected.output_tokens}
    for speed, said in ((1.0, "within"), (2.0, "above"), (0.5, "below")):
        server = twin(plan, tmp_path / str(speed), speed)
        together = load(server, expected.batch, **asked, rounds=4)
        assert verdict(expected.tokens_per_second_served, together.rate) == said
        alone = load(server, 1, **asked, rounds=2)
        assert verdict(expected.tokens_per_second_alone, 1 / alone.tpot) == said


@pytest.mark.parametrize(("speed", "said"), [(1.0, "within"), (2.0, "above"), (0.5, "below")])
def test_drafts_gain_what_the_seen_acceptance_lets_expect(speed, said, tmp_path):
    config = {**L4, "model": "gemma-4-12b-it-qat-w4a16", "vllm": {"kv-cache-dtype": "fp8", **DRAFTING}}
    plan = make_plan(config, project="p", stack="s")
    rig = Rig(twin(plan, tmp_path, speed))
    answer = rig.ask(256, 400)
    rig.run()
    accepted, drafts = (rig.value(f"spec_decode_num_{name}_total") for name in ("accepted_tokens", "drafts"))
    checkpoint = model(plan.model)
    gain = speculative_gain(
        checkpoint,
        gpu_peaks(accelerator("nvidia-l4"), checkpoint),
        plan.estimate,
        draft_tokens=3,
        draft_bytes=checkpoint.assistant_bytes,
        kv_element_bytes=1,
        step_tokens=1 + accepted / drafts,
    )
    expected = tuple(
        rate * times for rate, times in zip(plan.estimate.tokens_per_second_alone, gain.alone, strict=True)
    )
    seen = (len(answer.tokens) - 1) / (answer.times[-1] - answer.times[0])
    assert verdict(expected, seen) == said
    # What the plan says before anything was seen is wider, and holds it.
    assert plan.gain.alone[0] <= gain.alone[0] <= gain.alone[1] <= plan.gain.alone[1]
