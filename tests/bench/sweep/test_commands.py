"""The commands against simulated servers, as a user types them: sweep with a kill, search, comparison."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from bezel.cli.main import main
from bezel_base.loopback.listeners import free_port
from bezel_bench.result.document import load
from bezel_bench.result.sample_file import read_samples
from simulated_vllm_support.process import simulated_vllm

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]

SWEEP = ["--contexts", "4,64,512,2048", "--users", "1,4,8", "--output-tokens", "16"]
# On a busy machine the client is the limit, which cells say and the exit code, too: it is none of these tests' matter.
MEASURED = (0, 1)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with simulated_vllm(
        tmp_path_factory.mktemp("server"), "--max-model-len=2048", "--max-num-seqs=8", serving_speed=10
    ) as address:
        yield address


def server(url: str) -> list[str]:
    return ["--url", url, "--public", "--simulated"]


def journal(out: Path, part: str = "") -> list[str]:
    """The journal's lines, or those that hold the part."""
    file = out.with_suffix(".journal")
    lines = file.read_text().splitlines() if file.exists() else []
    return [line for line in lines if part in line]


def test_a_killed_sweep_goes_on_and_ends_with_every_cell(url: str, tmp_path: Path) -> None:
    out = tmp_path / "s.json"
    command = ["bench", "sweep", *server(url), *SWEEP, "--full", "--out", str(out)]
    program = [sys.executable, "-c", _KILLED, str(out.with_suffix(".journal"))]
    killed = subprocess.run([*program, *command], capture_output=True, check=False, timeout=120)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    before = sum('"cell"' in line for line in journal(out))
    assert not out.exists()
    assert main(command) in MEASURED
    result = load(out)
    assert (result.kind, result.nature, len(result.cells)) == ("sweep", "simulated", 12)
    rows = [json.loads(line)["cell"] for line in journal(out) if '"cell"' in line]
    kept = {row["id"] for row in rows}
    again = [row for at, row in enumerate(rows) if any(row["id"] == later["id"] for later in rows[at + 1 :])]
    assert all(row["state"] in ("busy_machine", "client_limited") for row in again)  # these alone are tried twice
    assert len(kept) == 6 > before
    reasons = {(cell.context_tokens, cell.users): cell.reason for cell in result.cells if cell.state == "infeasible"}
    assert "max_model_len 2048" in reasons[2048, 1]
    assert "such a prompt cannot be made" in reasons[4, 1]
    assert len(reasons) == 6
    assert result.samples is not None
    samples = read_samples(out.with_name(result.samples.file), result.samples.sha256)
    assert set(samples) == kept


def test_an_adaptive_sweep_says_of_every_cell_how_it_is_known(url: str, tmp_path: Path) -> None:
    out = tmp_path / "s.json"
    command = ["bench", "sweep", *server(url), *SWEEP, "--share", "70", "--max-minutes", "3", "--out", str(out)]
    assert main(command) in MEASURED
    result = load(out)
    measured = {(cell.context_tokens, cell.users) for cell in result.cells}
    inferred = {(one.context_tokens, one.users) for one in result.inferred}
    assert not measured & inferred
    assert len(measured) + len(inferred) == 12
    assert all(one.low < one.value < one.high for one in result.inferred)
    (surface,) = [one for one in result.findings if one.name == "surface"]
    assert float(surface.numbers["share_of_full"] or 0) <= 0.7


def test_other_settings_are_refused(url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["bench", "sweep", *server(url), "--contexts", "64", "--full", "--out", str(tmp_path / "s.json")]
    assert main([*command, "--users", "1"]) in MEASURED
    assert main([*command, "--users", "2"]) == 1
    assert "users = [2]\n   it was [1]" in capsys.readouterr().err


def test_the_highest_load_within_limits_is_found(url: str, tmp_path: Path) -> None:
    out = tmp_path / "g.json"
    options = ["--input-tokens", "128", "--output-tokens", "16", "--users", "1:512", "--step", "40"]
    command = ["bench", "goodput", *server(url), *options, "--slo", "ttft_p50=60ms", "--out", str(out)]
    assert main([*command, "--runs", "1"]) == 1, "one run is not enough"
    first = load(out).cells
    code = main([*command, "--runs", "10", "--max-minutes", "5"])
    result = load(out)
    (finding,) = [one for one in result.findings if one.name == "highest_load"]
    assert result.kind == "goodput"
    if code == 0:  # a machine that is busy may make the client the limit, which ends the search and is said
        assert 2 <= int(finding.numbers["highest"] or 0) < 512
    else:
        assert "ended early" in finding.text
    # A load that the client or its machine disturbed is asked again; every other is kept.
    asked_again = first[0].state in ("client_limited", "busy_machine")
    assert asked_again or result.cells[:1] == first, "it went on after the first run"
    assert len(result.cells) <= len(journal(out, '"begin"'))
    samples = read_samples(out.with_name(result.samples.file)) if result.samples else {}
    assert set(samples) == {cell.id for cell in result.cells}, "those of the first process, too"


def test_rates_have_percentiles_of_their_own_and_a_limit(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "r.json"
    load_options = ["--steps", "2", "--users", "8", "--seconds", "0.3", "--input-tokens", "64", "--output-tokens", "8"]
    command = ["bench", "rates", *server(url), *load_options, "--slo", "e2e_p50=30s", "--out", str(out)]
    code = main(command)
    result = load(out)
    disturbed = sum(cell.state in ("busy_machine", "client_limited") for cell in result.cells)
    assert (result.kind, code) == ("rates", int(disturbed > 0))
    assert [cell.users for cell in result.cells[:2]] == [1, 8]
    rates = [cell.rate for cell in result.cells[2:]]
    assert rates == sorted(rates)
    assert all(cell.value("e2e_p50") for cell in result.cells)
    assert [finding.name for finding in result.findings] == ["highest_load"]
    assert "p50 / p90 / p99 in ms" in capsys.readouterr().out
    begun = len(journal(out, '"begin"'))
    assert main([*command, "--max-minutes", "9"]) in MEASURED
    assert len(journal(out, '"begin"')) <= begun + 2 * disturbed, "only disturbed ones again"


def test_two_servers_are_compared_in_turns_and_drafts_reported_by_position(
    url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    drafts = '--speculative-config={"method": "ngram", "num_speculative_tokens": 3, "prompt_lookup_max": 4}'
    out = tmp_path / "ab.json"
    sizes = ["--input-tokens", "64", "--output-tokens", "128", "--users", "2", "--requests", "4", "--rounds", "3"]
    with simulated_vllm(tmp_path / "drafts", "--max-model-len=2048", drafts, serving_speed=10) as other:
        arms = ["--arm", f"plain={url}", "--arm", f"drafts={other}", "--public", "--simulated"]
        command = ["bench", "ab", *arms, *sizes, "--out", str(out)]
        # A fifth of a second: the first turn begins, as nothing is known yet, and no other one.
        assert main([*command, "--usd-per-hour", "18000", "--max-usd", "1"]) == 1
        turns = [json.loads(line)["begin"] for line in journal(out, '"begin"')]
        assert len(turns) == 1
        error = capsys.readouterr().err
        # A busy machine may not end the turn in time, and the limit cuts it off.
        assert (
            "not compared, because fewer than 3 rounds have it of both servers: output_tok" in error
            or "was cut off: the limit of 1 USD" in error
        )
        code = main([*command, "--max-minutes", "10"])
        compared = "not compared" not in capsys.readouterr().err
        assert code == (0 if compared else 1)
    result = load(out)
    assert result.samples is not None
    assert set(result.variants) == {"plain", "drafts"}
    assert sorted((cell.variant, cell.repeat) for cell in result.cells) == [
        (arm, turn) for arm in ("drafts", "plain") for turn in range(3)
    ]
    assert len(journal(out, '"server"')) == 2, "each server was met once"
    assert read_samples(out.with_name(result.samples.file)).keys() == {cell.id for cell in result.cells}
    (accepted,) = [one for one in result.findings if one.name == "acceptance"]
    assert accepted.numbers["arm"] == "drafts"
    assert set(accepted.numbers) == {"arm", "position_1", "position_2", "position_3"}


def test_a_server_that_cannot_start_ends_the_comparison_with_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--url", f"http://127.0.0.1:{free_port()}", "--public", "--out", str(tmp_path / "ab.json")]
    assert main(["bench", "ab", "--vary", "x=1,2", "--start", "exit 3 # {x}", *options]) == 1
    assert "it ended with exit code 3" in capsys.readouterr().err


# The command line, killed by itself as it connects for the load after the second cell.
_KILLED = """
import os, signal, sys
from pathlib import Path
journal = Path(sys.argv[1])
def look(event, _):
    if event == "socket.connect" and journal.exists():
        if sum('"cell"' in line for line in journal.read_text().splitlines()) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(look)
from bezel.cli.main import main
main(sys.argv[2:])
"""
