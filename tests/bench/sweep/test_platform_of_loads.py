"""What a server's platform measured stands at each load, in the result of every command that measures a stack."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from bench_support.http_server import Answer, Call, act_once, serving
from bench_support.recorded import recorded_body, recorded_stream
from bezel_base import ending_signals
from bezel_bench.commands import ab, goodput, rates, run, sweep
from bezel_bench.commands.main import choose_endpoint
from bezel_bench.commands.table import PROGRAM, program_table
from bezel_bench.commands.targets import UrlTargets
from bezel_bench.result.document import load
from bezel_bench.result.platform_series import PlatformSeries
from simulated_vllm_support.process import simulated_vllm

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from bezel_bench.result.document import Cell, Result

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

COMMANDS = {"run": run.run, "rates": rates.run, "goodput": goodput.run, "sweep": sweep.run, "ab": ab.run}
SHORT = ["--input-tokens", "64", "--output-tokens", "8"]
OPTIONS = {
    "run": ["--users", "2", "--requests", "8", *SHORT],
    "rates": ["--rates", "200,400", "--seconds", "0.2", *SHORT],
    "goodput": ["--users", "1:2", "--runs", "2", "--slo", "e2e_p50=30s", *SHORT],
    "sweep": ["--contexts", "64", "--users", "1,2", "--full", "--output-tokens", "8"],
}
STREAM = [line for _, line in recorded_stream("chat-stream-usage.txt")]
WHY = "a sample is taken every 60 s"


class WatchedTargets(UrlTargets):
    """Servers of a platform that has samples of one load, the last one of those that it is asked about."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    def platform_series(
        self,
        options: argparse.Namespace,
        outputs: Mapping[str, Any],
        cells: Sequence[Cell],
        show: Callable[[str], None],
    ) -> Mapping[str, Sequence[PlatformSeries]]:
        del outputs
        show("waits")
        self.asked.append((options.url, [cell.id for cell in cells]))
        about: dict[str, Any] = {"of": "gpu", "metric": "gpu/utilizations", "source": "Monitor"}
        unknown = {cell.id: [PlatformSeries(**about, why=WHY)] for cell in cells}
        return unknown | {cells[-1].id: [PlatformSeries(**about, at_seconds=[0.1], values=[0.5])]}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with simulated_vllm(tmp_path_factory.mktemp("server"), serving_speed=10) as address:
        yield address


def measure(
    name: str, arguments: Sequence[str], out: Path, codes: Sequence[int] = (0, 1)
) -> tuple[WatchedTargets, Result]:
    """The result of a command, as the program runs it on servers of that platform."""
    targets = WatchedTargets()
    options = program_table().parser(PROGRAM).read([name, *arguments, "--out", str(out)])
    choose_endpoint(targets, options)
    assert COMMANDS[name](targets, options) in codes
    return targets, load(out)


@pytest.mark.parametrize("name", OPTIONS)
def test_each_load_has_the_platform_s_series(
    name: str, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    targets, result = measure(name, ["--url", url, "--public", *OPTIONS[name]], tmp_path / "r.json")
    ids = [cell.id for cell in result.cells]
    assert targets.asked == [(url, ids)], "once, after the last load"
    assert [series.why for cell in result.cells for series in cell.platform_series] == [WHY] * (len(ids) - 1) + [""]
    shown = capsys.readouterr().out
    assert "by Monitor: GPU 50% (1 sample)" in shown
    assert shown.count(WHY) == (len(ids) > 1), "the reason of all others once"


def test_an_interrupted_command_does_not_wait_for_its_platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BEZEL_SIMULATED", raising=False)

    def answer(call: Call) -> Answer | None:
        if call.path == "/v1/models":
            return Answer(json=json.loads(recorded_body("models.txt")))
        return Answer(chunks=[*STREAM]) if call.path == "/v1/chat/completions" else None

    with serving() as server:
        server.routes[:] = [answer]
        # Within the only rate.
        act_once(server, "/v1/chat/completions", 8, lambda: os.kill(os.getpid(), signal.SIGTERM))
        options = ["--rates", "200", "--url", server.url, "--public", "--output-tokens", "6"]
        targets, _ = measure("rates", options, tmp_path / "r.json", [ending_signals.INTERRUPTED])
    assert targets.asked == []


def test_each_server_of_a_comparison_is_asked_about_its_own_loads(url: str, tmp_path: Path) -> None:
    other = url.replace("127.0.0.1", "localhost")
    turns = ["--rounds", "3", "--users", "2", "--requests", "2", "--input-tokens", "64", "--output-tokens", "128"]
    targets, result = measure(
        "ab", ["--arm", f"a={url}", "--arm", f"b={other}", "--public", *turns], tmp_path / "r.json"
    )
    of = {name: [cell.id for cell in result.cells if cell.variant == name] for name in ("a", "b")}
    assert targets.asked == [(url, of["a"]), (other, of["b"])]
    assert all(len(cell.platform_series) == 1 for cell in result.cells)
