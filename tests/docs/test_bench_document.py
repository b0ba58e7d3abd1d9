"""docs/bench.md shows what a run prints: the same lines with other numbers, on a simulated server."""

import re
import shlex
from pathlib import Path

import pytest

from bezel.cli.bench.measure.load_options import load_of
from bezel.cli.main import main, parse
from tests.support.docs.markdown import ROOT, after, blocks
from tests.support.simulated_vllm.process import simulated_vllm

DOCUMENT = ROOT / "docs" / "bench.md"
# Said only where the machine that measures was too slow for it.
OF_A_BUSY_MACHINE = {"why"}


def commands() -> list[list[str]]:
    lines = [line for text in blocks(DOCUMENT, "sh") for line in text.splitlines()]
    return [shlex.split(line)[1:] for line in lines if " bench run " in line]


def shape(text: str) -> list[str]:
    """What each line begins with: the name of a figure, a latency or a check."""
    words = [re.match(r"  ([a-z_]+)", line) for line in text.splitlines()]
    return [word[1] for word in words if word and word[1] not in OF_A_BUSY_MACHINE]


def test_every_load_that_it_shows_can_be_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bezel.bench.load.plan import Target

    monkeypatch.chdir(tmp_path)
    Path("conversation_trace.jsonl").write_text('{"timestamp": 0, "input_length": 9, "output_length": 9}')
    assert len(commands()) >= 7
    for command in commands():
        options = parse(command)
        assert load_of(options, Target("http://127.0.0.1:8000", "m", endpoint=options.endpoint)).stop


@pytest.mark.slow
def test_the_first_run_prints_what_it_shows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = commands()[0]
    arguments = ("--enable-prompt-tokens-details", "--max-model-len=4096")
    with simulated_vllm(tmp_path / "models", *arguments, serving_speed=20.0) as url:
        given = [url if word.startswith("http") else word for word in first]
        given[given.index("--out") + 1] = str(tmp_path / "first.json")
        main([*given, "--simulated"])
    printed = capsys.readouterr().out
    assert shape(printed) == shape(after(DOCUMENT, "output of bezel bench run"))
    assert (tmp_path / "first.samples.npz").is_file()
