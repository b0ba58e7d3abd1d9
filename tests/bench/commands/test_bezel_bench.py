"""`bezel-bench` without a project: what it measures, what it refuses, and the options that it shares."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from bezel.cli.command_table import command_table
from bezel_bench.commands.main import main
from bezel_bench.commands.table import program_table, shared_spec
from simulated_vllm_support.process import simulated_vllm

if TYPE_CHECKING:
    from pathlib import Path

ADDRESS = "http://127.0.0.1:9"  # nothing listens there
# Processes in which `bezel` cannot be imported: one command, and several that each print something.
WITHOUT_BEZEL = "import sys; sys.modules['bezel'] = None; from bezel_bench.commands.main import main; sys.exit(main())"
READ_WITHOUT_BEZEL = """
import contextlib, io, json, sys
sys.modules["bezel"] = None
from bezel_bench.commands.main import main
texts = []
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        assert main(arguments) in (0, 1), arguments
    texts.append(text.getvalue())
print(json.dumps(texts))
"""
FOR_FILES = ("compare", "export", "report", "audit")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--stack", "l4-qat"), "--stack = l4-qat"),
        (("sweep", "--stack", "l4-qat", "--out", "s.json"), "--stack = l4-qat"),
        (("run", "--url", ADDRESS, "--impersonate", "a@b.c"), "--impersonate = a@b.c"),
        (("goodput", "--url", ADDRESS, "--slo", "e2e_p50=1s", "--audience", "https://x"), "--audience = https://x"),
        (("ab", "--arm", "a=l4-qat", "--arm", f"b={ADDRESS}"), "--arm = a=l4-qat"),
    ],
)
def test_bezel_bench_refuses_what_needs_a_project(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("bezel-bench: ")
    assert message in error
    assert "`bezel bench`" in error.partition("Repair: ")[2]


def test_bezel_bench_asks_an_address_without_credentials(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--url", ADDRESS]) == 1
    assert "no server responds there" in (error := capsys.readouterr().err)
    assert "identity token" not in error


def test_bezel_bench_shows_errors_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--errors", "json", "run", "--url", ADDRESS, "--usr", "3"]) == 2
    report = json.loads(capsys.readouterr().err)
    assert report["title"] == "bezel-bench run"
    assert report["problems"] == [{"text": "unrecognized argument: --usr 3; did you mean --users?"}]


@pytest.mark.parametrize("command", shared_spec()["commands"])
def test_both_programs_have_the_same_options(command: str) -> None:
    own_table, of_bezel = program_table(), command_table()
    assert own_table.defaults_of(command) == of_bezel.defaults_of("bench", command)
    assert own_table.arguments_of(command).keys() == of_bezel.arguments_of("bench", command).keys()


def test_the_programs_differ_in_the_help_of_some_options_only() -> None:
    own_table, of_bezel = program_table(), command_table()
    differ = {
        name
        for command in shared_spec()["commands"]
        if command not in FOR_FILES
        for name, keys in own_table.arguments_of(command).items()
        if keys != of_bezel.arguments_of("bench", command)[name]
    }
    assert differ == {*shared_spec()["without_project"]}


def test_jobs_are_commands_of_bezel_alone() -> None:
    assert {*command_table().spec["commands"]["bench"]["commands"]} - {*program_table().spec["commands"]} == {
        *("image", "job", "worker")
    }


@pytest.mark.slow
def test_bezel_bench_measures_and_reads_results_without_bezel(tmp_path: Path) -> None:
    with simulated_vllm(tmp_path / "models", "--max-model-len=4096", serving_speed=20.0) as url:
        load = ["--users", "2", "--requests", "8", "--output-tokens", "8"]
        measure = subprocess.run(
            [sys.executable, "-c", WITHOUT_BEZEL, "run", "--url", url, *load, "--out", "a.json"],
            cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
    # 1: the client says of itself that its machine was busy.
    assert measure.returncode in (0, 1), measure.stderr
    manifest = json.loads((tmp_path / "a.json").read_text())["manifest"]
    assert (manifest["command"][0], manifest["model"]) == ("bezel-bench", "tiny")
    commands = [
        ["audit", "a.json"],
        ["report", "a.json", "--out", "a.html"],
        ["report", "a.json", "--json"],
        ["export", "a.json", "--format", "csv"],
    ]
    read = subprocess.run(
        [sys.executable, "-c", READ_WITHOUT_BEZEL, json.dumps(commands)],
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert read.returncode == 0, read.stderr
    audit, written, as_json, as_csv = json.loads(read.stdout)
    assert "no findings" in audit
    assert "written: a.html" in written
    assert json.loads(as_json)["nature"] == "measured"
    assert "requests_per_second" in as_csv
