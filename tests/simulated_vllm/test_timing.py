"""Shapes of the simulated timing as properties, and the committed curves: each point is what the code gives today."""

import asyncio
import hashlib
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from bezel_simulated_vllm.scheduling.engine import Engine
from bezel_simulated_vllm.scheduling.request import Request
from bezel_simulated_vllm.scheduling.roofline import Load, Roofline
from bezel_simulated_vllm.scheduling.virtual_load import Rig, VirtualClock, load, settings_of_server
from tests.support.record_results import check_results
from tools.docs import timing_curves

pytestmark = pytest.mark.slow  # whole simulated runs

ROOT = Path(__file__).parents[2]
PLOTS = ROOT / "docs" / "plots"
REDRAW = ".venv/bin/python -m tools.docs.timing_curves && uv run --script tools/docs/timing_plots.py"
SCARCE = (
    "--max-model-len=2048",
    "--max-num-seqs=16",
    "--max-num-batched-tokens=512",
    "--language-model-only",
)


@pytest.fixture(scope="module")
def l4():
    return timing_curves.settings_of("L4")


@pytest.fixture(scope="module")
def curves():
    return json.loads((PLOTS / "timing.json").read_text())


def test_more_users_cost_no_throughput_until_it_saturates_below_the_roof(l4):
    points = [load(l4, users, prompt=256, output=32, rounds=4) for users in (1, 4, 16, 64, 128)]
    assert all(after.rate > 0.98 * before.rate for before, after in pairwise(points))
    assert points[1].rate > 3 * points[0].rate  # far from saturation
    assert points[4].rate < 1.05 * points[3].rate  # twice the places: saturated
    assert all(point.overall < point.roof for point in points)


def test_a_roof_is_no_bound_that_anything_would_keep(l4):
    """The negative twin: a server whose steps were twice as fast would break through it."""
    point = load(l4, 64, prompt=256, output=32, rounds=4)
    assert 2 * point.overall > point.roof


@pytest.mark.parametrize(("users", "prompt"), [((1, 8, 32), (200, 200, 200)), ((8, 8, 8), (500, 3000, 6000))])
def test_a_token_takes_longer_in_a_larger_batch_and_in_a_longer_context(l4, users, prompt):
    paces = []
    for count, length in zip(users, prompt, strict=True):
        rig = Rig(l4)
        outcomes = [rig.ask(length, 400) for _ in range(count)]
        while not all(outcome.tokens for outcome in outcomes):
            rig.step()
        before = rig.clock.time
        rig.step()
        paces.append(rig.clock.time - before)
    assert paces[0] < paces[1] < paces[2]


def test_a_token_alone_takes_reading_weights_and_cache_and_the_overhead(l4):
    rig = Rig(l4)
    outcome = rig.ask(1000, 3)
    rig.run()
    chip, model = l4.machine.accelerator, l4.model
    read = model.weight_bytes + model.kv_bytes_read(1001, 1)
    expected = read / (chip.memory_bytes_per_second * chip.memory_efficiency) + chip.step_overhead_seconds
    assert outcome.gaps[0] == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("shared", [0, 1024, 2048, 4032, 4096])
def test_a_cached_prefix_saves_the_prefill_of_its_tokens_and_nothing_else(l4, shared):
    rig = Rig(l4)
    rig.ask(list(range(shared)), 1)
    rig.run()
    late = rig.ask([*range(shared), *range(10**6, 10**6 + 4096 - shared)], 1)
    rig.run()
    cached = min(shared, 4095) // 64 * 64  # the last token is always computed
    assert late.request.cached == cached
    chunks = [(start, min(start + 2048, 4096)) for start in range(cached, 4096, 2048)]
    assert late.ttft == pytest.approx(sum(prefill(l4, *chunk) for chunk in chunks), rel=1e-9)


def prefill(settings, start, end):
    """Seconds of one step that computes a prompt from one place to another."""
    roofline = Roofline(settings.model, settings.machine.accelerator, kv_cache_dtype=settings.kv_cache_dtype)
    step = Load()
    roofline.add(step, computed=start, new=end - start)
    return roofline.seconds(step)


@pytest.mark.parametrize(("missing", "preempts"), [(0, False), (1, True), (300, True)])
def test_a_sequence_loses_blocks_when_they_run_out_and_its_text_stays(tmp_path, missing, preempts):
    """Eight sequences of 1,000 tokens need a known number of blocks at their ends; there are as many, or fewer."""
    hardware = {"accelerator": "nvidia-l4", "accelerators": 1, "cpu": 8, "memory_gib": 32}

    def run(name, *arguments):
        folder = tmp_path / name
        settings = settings_of_server(
            folder, "gemma-4-12b-it-qat-w4a16", (*SCARCE, "--no-enable-prefix-caching", *arguments), hardware
        )
        rig = Rig(settings)
        outcomes = [rig.ask(100, 900) for _ in range(8)]
        rig.run()
        return rig, [outcome.tokens for outcome in outcomes]

    roomy, expected = run("roomy")
    # The last token of an answer is never computed: nothing follows it.
    needed = 8 * roomy.engine.settings.memory.layout.blocks(999)
    scarce, text = run("scarce", f"--num-gpu-blocks-override={needed - missing}")
    counted = scarce.value("num_preemptions_total")
    assert (counted > 0) is preempts
    assert counted == sum(outcome.request.preemptions for outcome in scarce.outcomes)
    assert text == expected
    assert scarce.value("kv_cache_usage_perc") == 0


def test_each_computed_token_lies_in_a_block_and_the_preempted_go_first(tmp_path):
    hardware = {"accelerator": "nvidia-l4", "accelerators": 1, "cpu": 8, "memory_gib": 32}
    arguments = (*SCARCE, "--num-gpu-blocks-override=1000", "--no-enable-prefix-caching")
    rig = Rig(settings_of_server(tmp_path, "gemma-4-12b-it-qat-w4a16", arguments, hardware))
    scheduler, layout = rig.engine.scheduler, rig.engine.settings.memory.layout
    outcomes = [rig.ask(200, 600) for _ in range(24)]
    lost = 0
    while rig.step():
        assert all(one.private_blocks >= layout.blocks(one.computed) for one in scheduler.running)
        assert sum(one.private_blocks for one in scheduler.running) <= 1000
        waiting = [one.arrival for one in scheduler.waiting] + [one.request.arrival for one in outcomes[-1:]]
        again = [one.preemptions > 0 for one in scheduler.waiting]
        assert again == sorted(again, reverse=True), "a preempted one waits behind one that never ran"
        assert waiting == sorted(waiting)
        lost += sum(again)
    assert lost > 0
    assert all(len(outcome.tokens) == 600 for outcome in outcomes)


def test_the_same_seed_gives_the_same_figures_and_another_one_others(l4):
    first, again, other = (load(l4, 8, prompt=300, output=20, rounds=2, seed=seed) for seed in (3, 3, 4))
    assert first == again != other


class BusyHost(VirtualClock):
    """A clock whose sleeper is woken late, every time."""

    def __init__(self, late: float) -> None:
        super().__init__()
        self.late = late

    async def sleep_until(self, when: float) -> None:
        if when > self.time:
            self.time = when + self.late
        await asyncio.sleep(0)


async def spent_by(settings, late):
    """Seconds that two answers take on a busy host; the second is asked for while the engine is behind."""
    clock = BusyHost(late)
    engine = Engine(settings, clock)
    whole = asyncio.Event()
    second = Request([2, 3], 100, 1, lambda _, finish: whole.set() if finish else None, ignore_eos=True)
    first = Request([1, 2], 100, 1, lambda *_: second.arrival or engine.add(second), ignore_eos=True)
    engine.add(first)
    running = asyncio.create_task(engine.run())
    await asyncio.wait_for(whole.wait(), 10)
    running.cancel()
    assert second.scheduled >= second.arrival > 0
    return clock.time


def test_a_busy_host_delays_an_answer_once_and_not_with_every_token(l4):
    alone = asyncio.run(spent_by(l4, 0.0))
    assert asyncio.run(spent_by(l4, 0.1)) == pytest.approx(alone + 0.1, abs=0.15)
    # What is too far behind is put off, or a machine that slept would answer everything at once.
    assert asyncio.run(spent_by(l4, 1.0)) > 1.5 * alone


@pytest.mark.parametrize("place", [0, 4, 12, 30])
def test_a_committed_point_of_users_is_what_the_code_gives(curves, place):
    committed = curves["users"][place]
    users, prompt = committed["users"], committed["prompt"]
    assert timing_curves.by_users((users,), (prompt,)) == [committed], REDRAW


def test_the_other_committed_curves_are_what_the_code_gives(curves):
    by_machine = timing_curves.by_context((512,))
    assert all(points[0] in curves["context"][machine] for machine, points in by_machine.items()), REDRAW
    assert timing_curves.by_prefix((0.5,))[0] in curves["prefix"], REDRAW


@pytest.mark.parametrize("name", ["users", "latency", "context", "prefix", "blocks"])
def test_a_plot_is_drawn_from_the_committed_curves(name):
    drawn_from = hashlib.sha256((PLOTS / "timing.json").read_bytes()).hexdigest()[:16]
    text = (PLOTS / f"{name}.svg").read_text()
    assert f"timing.json {drawn_from}" in text, REDRAW
    assert re.search(r"<dc:date>", text) is None


def test_the_table_of_the_timings_shapes_is_current(curves):
    rows = []
    for prompt in dict.fromkeys(point["prompt"] for point in curves["users"]):
        points = [point for point in curves["users"] if point["prompt"] == prompt]
        rates = [point["rate"] for point in points]
        assert all(after > 0.97 * before for before, after in pairwise(rates))
        assert all(point["overall"] < point["roof"] for point in points)
        assert points[-1]["ttft"] > 3 * points[0]["ttft"]
        full = next(point["users"] for point in points if point["rate"] > 0.95 * max(rates))
        share = max(point["overall"] / point["roof"] for point in points)
        measured = f"{rates[0]:.1f} to {max(rates):.0f} output tokens/s"
        shape = f"saturated from {full} users on; at most {share:.0%} of the roof"
        rows.append([f"1 to 256 users on an L4, prompts of {prompt:,}", measured, shape])
    for machine, points in curves["context"].items():
        rates = [point["rate"] for point in points]
        assert rates == sorted(rates, reverse=True)
        measured = f"{rates[0]:.0f} to {rates[-1]:.1f} output tokens/s"
        rows.append([f"prompts of 128 to 13,000 on {machine}, 32 users", measured, "declines with every longer prompt"])
    firsts = [point["ttft"] for point in curves["prefix"]]
    assert firsts == sorted(firsts, reverse=True)
    measured = f"{firsts[0]:.2f} s to {firsts[-1]:.3f} s to the first token"
    rows.append(["0 to 100 % of a prompt of 4,096 shared, 8 users", measured, "falls with every cached block"])
    blocks = [f"{point['blocks']:,}" for point in curves["blocks"]]
    lost = [point["preempted"] for point in curves["blocks"]]
    assert lost[0] == 0 < lost[-1]
    title = f"{blocks[0]} to {blocks[-1]} blocks, 64 users, answers of 512"
    rows.append([title, f"{lost[0]} to {lost[-1]} preemptions", "none while the blocks suffice"])
    table = {
        "title": "Simulated timing: its shapes under load",
        "document": "fidelity",
        "order": 45,
        "about": "The simulated server in virtual time, by a seed: what load does to throughput and latency. The "
        "formulas and plots stand in `docs/simulated-timing.md`; simulated figures are no measurement of any hardware.",
        "command": ".venv/bin/pytest tests/simulated_vllm/test_timing.py",
        "stamp": None,
        "columns": ["load", "found", "shape"],
        "rows": rows,
        "notes": [],
    }
    check_results("timing", table)
