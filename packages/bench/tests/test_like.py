"""Command lines of other clients: the command here that does the same is one that the program takes."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path

import pytest

from bench_support.command_line import parse
from bezel_base.errors import UserError
from bezel_bench.commands.like.translate import clients, show_like, translate
from bezel_bench.commands.main import main
from bezel_bench.commands.table import shared_table

FIXTURES = Path(__file__).parent / "fixtures" / "clients"
CASES = tomllib.loads((FIXTURES / "lines.toml").read_text())["cases"]
VLLM = "vllm bench serve --base-url http://h:8000 --num-prompts 200"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["line"].split()[0])
def test_a_line_of_another_client_becomes_a_command_here(case: dict[str, str]) -> None:
    command = shlex.split(case["command"])
    first = show_like("bezel-bench run", case["line"]).splitlines()[0]
    assert shlex.split(first) == ["bezel-bench", *command]
    assert parse(command).action == command[0]


def test_options_without_a_counterpart_are_named_with_the_reason() -> None:
    command = translate(f"{VLLM} --tokenizer t --insecure --fo 1 --percentile-metric ttft")
    assert [note.partition(":")[0] for note in command.notes] == [
        *("--tokenizer t", "--insecure", "--fo", "--percentile-metric"),
    ]
    assert "no counterpart: certificates are verified" in command.notes[1]
    assert command.notes[3] == "--percentile-metric: unknown; perhaps --percentile-metrics"
    rates = translate("guidellm run --profile kind=sweep --max-requests 9")
    assert rates.notes == ["--requests 9: not of `rates`; `run` has it"]


def test_no_key_of_a_line_is_shown() -> None:
    text = show_like("bezel-bench run", "aiperf profile --api-key sk-planted --header 'Authorization: Bearer planted'")
    assert "planted" not in text
    assert text.count("--api-key-env VARIABLE") == 2


def test_run_prints_the_command_and_sends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "--like", "aiperf profile --url http://127.0.0.1:9 --concurrency 2"])
    assert end.value.code in (0, None)
    assert capsys.readouterr().out == "bezel-bench run --url http://127.0.0.1:9 --users 2\n"


@pytest.mark.parametrize("line", ["curl http://h", "", "vllm bench 'serve"])
def test_a_line_of_no_known_client_is_refused(line: str) -> None:
    with pytest.raises(UserError, match="--like"):
        translate(line)


@pytest.mark.parametrize("name", ["vllm", "aiperf"])
def test_each_option_of_a_client_is_in_the_table_once(name: str) -> None:
    (file,) = FIXTURES.glob(f"{name}*-options.txt")
    rows = [option for row in clients()[name]["rows"] for option in row["options"]]
    assert sorted(rows) == sorted(file.read_text().split())


@pytest.mark.parametrize("name", ["vllm", "guidellm", "aiperf"])
def test_each_row_names_an_option_here_or_a_reason(name: str) -> None:
    every = {option for command in ("run", "rates") for option in shared_table().arguments_of(command)}
    for row in clients()[name]["rows"]:
        assert ("here" in row) + ("does" in row) + ("why" in row) == 1, row
        assert row.get("composed") or "here" not in row or row["here"] in every, row
