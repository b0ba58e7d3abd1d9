"""Whole cells on the simulated vLLM: its counters agree with what the client saw, and a starved client says so."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from bezel_bench.cell.cell import measure_load
from bezel_bench.cell.plan import ServerView
from bezel_bench.load.plan import Closed, Constant, Load, PromptPlan, Stop, Target
from bezel_bench.result.records import Manifest, ServedBy
from bezel_bench.server import manifest
from bezel_bench.server.http_probe import asker
from simulated_vllm_support.process import MODEL, NAME, simulated_vllm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from bezel_bench.load.plan import TokenSource
    from bezel_bench.result.document import Cell

pytestmark = pytest.mark.slow

MTP = ("--spec-method=mtp", "--spec-model=/mnt/models/tiny-assistant", "--spec-tokens=3")
_BURNT_SECONDS = 0.02


def measure_cell(url: str, load: Load, headers: TokenSource = dict) -> Cell:
    ask = asker(load.target, dict)
    report = manifest.ask_server(ask, NAME)
    served = manifest.served_by(report, ServedBy())
    described = Manifest(
        title="t", url=url, model=NAME, served_by=served, client=manifest.this_client(workers=1, tls=False),
        started_at=datetime.now(UTC), seed=0,
    )  # fmt: skip
    result, _ = measure_load(
        "c", load, ServerView(ask, lambda: described, report.max_model_len), headers, lambda _: None
    )
    return result.cell


@pytest.fixture(scope="module")
def plain_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server without drafts; what its counters gain is taken before and after each cell."""
    with simulated_vllm(tmp_path_factory.mktemp("plain"), "--max-model-len=4096", serving_speed=20.0) as url:
        yield url


def closed_load(url: str, **prompts: int) -> Load:
    plan = PromptPlan(run=datetime.now(UTC).isoformat(), **({"input_tokens": 64, "output_tokens": 32} | prompts))
    return Load(Target(url, NAME), Closed(8), Stop(requests=64), plan)


def an_assistant(folder: Path) -> None:
    """A draft model beside the served one."""
    (folder / "tiny-assistant").mkdir()
    (folder / "tiny-assistant" / "config.json").write_text(
        json.dumps({"model_type": "gemma4_assistant", "text_config": MODEL})
    )
    (folder / "tiny-assistant" / "model.safetensors").write_bytes(b"\0" * 1000)


def assert_counters_agree(cell: Cell) -> None:
    check = cell.check("counters")
    assert check is not None
    assert check.state == "passed", check.text
    assert all(abs(float(value or 0)) <= 0.02 for key, value in check.numbers.items() if key.endswith("_off"))
    assert cell.counters is not None
    assert cell.counters.gained is not None
    assert (cell.counters.gained.requests, cell.counters.gained.generated_tokens) == (64, 64 * 32)
    states = {one.name: one.state for one in cell.checks}
    assert states["unique_prompts"] == states["output_length"] == states["drained"] == "passed"


def test_counters_agree_with_what_the_client_saw(plain_server: str) -> None:
    cell = measure_cell(plain_server, closed_load(plain_server))
    assert_counters_agree(cell)
    assert not cell.acceptance


def test_counters_agree_with_what_the_client_saw_of_drafts(tmp_path: Path) -> None:
    an_assistant(tmp_path)
    with simulated_vllm(tmp_path, "--max-model-len=4096", *MTP, serving_speed=20.0) as url:
        cell = measure_cell(url, closed_load(url))
        assert_counters_agree(cell)
        assert cell.acceptance


def test_another_user_of_the_server_is_found_out(plain_server: str) -> None:
    load = closed_load(plain_server)
    ask = asker(load.target, dict)
    count = 0

    def headers() -> Mapping[str, str]:
        nonlocal count
        count += 1
        if count == 30:
            body = {"model": NAME, "prompt": "somebody else", "max_tokens": 200, "ignore_eos": True}
            assert ask("/v1/completions", body).status == 200
        return {}

    cell = measure_cell(plain_server, load, headers)
    assert cell.check("counters").state == "failed"  # type: ignore[union-attr]
    assert cell.state in ("failed", "client_limited", "busy_machine")


def test_a_client_that_is_starved_marks_its_run(tmp_path: Path) -> None:
    """At 50 requests a second, each of which costs the client 20 ms of its only core before it is sent."""
    with simulated_vllm(tmp_path, "--max-model-len=4096", serving_speed=100.0) as url:
        load = replace(closed_load(url, output_tokens=2), pattern=Constant(50.0), stop=Stop(requests=60))

        def starve() -> Mapping[str, str]:
            until = time.perf_counter() + _BURNT_SECONDS
            while time.perf_counter() < until:
                pass
            return {}

        cell = measure_cell(url, load, starve)
        # Where other work takes its CPU, too, whose doing it is cannot be told.
        assert cell.state in ("client_limited", "busy_machine")
        easy = measure_cell(url, replace(load, pattern=Constant(5.0), stop=Stop(requests=15)))
        assert easy.client is not None
        assert easy.client.busiest_cpu_share < 0.5
