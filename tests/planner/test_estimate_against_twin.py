"""The estimate and the simulated server, which has parameters of its own, agree; twice as fast or as slow is noticed.

In virtual time: no second is waited for.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from bezel.engine.project.project import Project
from bezel.planner import LeasePlan, make_plan
from bezel.planner.base.hardware import leased_hardware
from bezel_catalog import accelerator, accelerators, model
from bezel_catalog.sizing.roofline import estimate, gpu_peaks, tpu_peaks, verdict
from bezel_catalog.sizing.speculation import speculative_gain
from bezel_simulated_vllm.scheduling.virtual_load import Rig, load, settings_of_server
from bezel_simulated_vllm.synthetic_weights import model_files
from tests.support.planner.v6e_stack import L4X8

pytestmark = pytest.mark.slow  # each estimate beside a whole simulated run

ASSISTANT = "google/gemma-4-12B-it-assistant"
ROOT = Path(__file__).parents[2]
STACKS = [name for name in Project(ROOT).stacks() if Project(ROOT).configuration(name)["accelerator"] in accelerators()]
LEASED = [
    name for name in Project(ROOT).stacks() if Project(ROOT).configuration(name)["accelerator"] in leased_hardware()
]
# More sequences at a time no TPU was soundly measured with: of 64 that asked one chip, the cache held 33. What each
# costs the host, 0.22 ms in the twin and nothing in the estimate, is unproven there: disputed, so not held against each
# other (v6e4-12b with 64, v6e4-moe with 256: the twin is slower than the range).
MEASURED_TOGETHER = 32
# Bound by what is read, by a link to the host, by little weights, by experts.
TRIED_FASTER_AND_SLOWER = ("l4-qat", "l4-31b-qat", "l4-e2b", "rtx6000-26b")


def plan_of_stack(stack):
    configuration = Project(ROOT).configuration(stack)
    if configuration["accelerator"] == L4X8["accelerator"]:
        configuration["cost"] = L4X8["cost"]  # nobody lists its price
    return make_plan(configuration, project="p", stack=stack)


def machine(plan):
    """Arguments and machine of a plan, in the twin's words."""
    if isinstance(plan, LeasePlan):
        leased = plan.terms.hardware
        chip = "tpu-v6e" if leased.gpu is None else leased.gpu.id
        # The CPUs count for nothing here.
        return plan.node.arguments, {
            "accelerator": chip, "accelerators": leased.chips, "cpu": 96, "memory_gib": leased.host_memory_gib,
        }  # fmt: skip
    service = plan.service
    return service.arguments, {
        "accelerator": service.accelerator, "accelerators": 1, "cpu": service.cpu, "memory_gib": service.memory_gib,
    }  # fmt: skip


def twin(plan, folder, speed=1.0):
    """The simulated server of a plan, on a machine so many times as fast in everything."""
    arguments, hardware = machine(plan)
    drafts = folder / ASSISTANT.rpartition("/")[2]
    drafts.mkdir(parents=True)
    for name, content in model_files(ASSISTANT).items():
        (drafts / name).write_bytes(content)
    settings = settings_of_server(folder, plan.model, arguments[1:], hardware)
    chip = settings.machine.accelerator
    faster = dataclasses.replace(
        chip,
        memory_bytes_per_second=chip.memory_bytes_per_second * speed,
        host_bytes_per_second=chip.host_bytes_per_second * speed,
        flops_per_second=chip.flops_per_second * speed,
        step_overhead_seconds=chip.step_overhead_seconds / speed,
        sequence_overhead_seconds=chip.sequence_overhead_seconds / speed,
    )
    return dataclasses.replace(settings, machine=dataclasses.replace(settings.machine, accelerator=faster))


@pytest.mark.parametrize("stack", STACKS)
def test_each_stack_is_served_by_the_twin_within_its_range(stack, tmp_path):
    plan = plan_of_stack(stack)
    expected = plan.estimate.tokens_per_second_served
    if plan.gain:
        expected = tuple(rate * times for rate, times in zip(expected, plan.gain.batched, strict=True))
    point = load(
        twin(plan, tmp_path),
        plan.estimate.batch,
        prompt=plan.estimate.prompt_tokens,
        output=plan.estimate.output_tokens,
        rounds=3,
    )
    # With drafts a step delivers several tokens at once: only the whole run's count is exact.
    assert verdict(expected, point.overall if plan.gain else point.rate) == "within"


@pytest.mark.parametrize("stack", TRIED_FASTER_AND_SLOWER)
def test_the_twin_as_it_is_lies_in_the_range_and_half_or_double_does_not(stack, tmp_path):
    plan = plan_of_stack(stack)
    expected = plan.estimate
    asked = {"prompt": expected.prompt_tokens, "output": expected.output_tokens}
    for speed, expected_verdict in ((1.0, "within"), (2.0, "above"), (0.5, "below")):
        server = twin(plan, tmp_path / str(speed), speed)
        together = load(server, expected.batch, **asked, rounds=4)
        assert verdict(expected.tokens_per_second_served, together.rate) == expected_verdict
        alone = load(server, 1, **asked, rounds=2)
        assert verdict(expected.tokens_per_second_alone, 1 / alone.tpot) == expected_verdict


def expected_of(plan):
    """What a leased machine should do with as many sequences as such a one was measured with, and how many."""
    estimated, checkpoint = plan.estimate, model(plan.model)
    if plan.terms.hardware.gpu is None and estimated.batch > MEASURED_TOGETHER:
        estimated = estimate(
            checkpoint,
            tpu_peaks(plan.terms.hardware.slice),
            prompt_tokens=estimated.prompt_tokens,
            output_tokens=estimated.output_tokens,
            batch=MEASURED_TOGETHER,
            kv_element_bytes=2,
        )
    served_range, alone = estimated.tokens_per_second_served, estimated.tokens_per_second_alone
    if plan.gain:
        peaks, draft = tpu_peaks(plan.terms.hardware.slice), plan.gain.draft_tokens
        gain = speculative_gain(checkpoint, peaks, estimated, draft_tokens=draft, draft_bytes=0, kv_element_bytes=2)
        served_range = tuple(rate * times for rate, times in zip(served_range, gain.batched, strict=True))
        alone = tuple(rate * times for rate, times in zip(alone, gain.alone, strict=True))
    return estimated.batch, served_range, alone


@pytest.mark.parametrize("stack", LEASED)
def test_each_leased_machine_is_served_by_the_twin_within_its_range(stack, tmp_path):
    plan = plan_of_stack(stack)
    batch, together, alone = expected_of(plan)
    server, asked = twin(plan, tmp_path), {"prompt": plan.estimate.prompt_tokens, "output": plan.estimate.output_tokens}
    point = load(server, batch, **asked, rounds=2)
    assert verdict(together, point.overall if plan.gain else point.rate) == "within"
    one = load(server, 1, **asked, rounds=2)
    assert verdict(alone, one.overall if plan.gain else 1 / one.tpot) == "within"


@pytest.mark.parametrize(("speed", "expected_verdict"), [(2.0, "above"), (0.5, "below")])
@pytest.mark.parametrize("stack", ["v6e1-12b", "v6e8-31b", "gce-l4x8"])
def test_a_leased_machine_half_or_twice_as_fast_is_noticed(stack, speed, expected_verdict, tmp_path):
    plan = plan_of_stack(stack)
    batch, together, alone = expected_of(plan)
    server = twin(plan, tmp_path, speed)
    asked = {"prompt": plan.estimate.prompt_tokens, "output": plan.estimate.output_tokens, "rounds": 2}
    assert verdict(alone, 1 / load(server, 1, **asked).tpot) == expected_verdict
    if stack == "v6e1-12b":  # the ranges of several chips together are wider than twice
        assert verdict(together, load(server, batch, **asked).rate) == expected_verdict


@pytest.mark.parametrize(("speed", "expected_verdict"), [(1.0, "within"), (2.0, "above"), (0.5, "below")])
def test_drafts_gain_what_the_seen_acceptance_lets_expect(speed, expected_verdict, tmp_path):
    plan = plan_of_stack("l4-qat-mtp")
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
    assert verdict(expected, seen) == expected_verdict
    # What the plan says before anything was seen is wider, and holds it.
    assert plan.gain.alone[0] <= gain.alone[0] <= gain.alone[1] <= plan.gain.alone[1]
