"""Command lines of other clients: the command here that does the same is one that the program takes."""

from __future__ import annotations

import shlex
import tomllib
from pathlib import Path

import pytest

from bench_support.command_line import parse
from bezel_base.errors import UserError
from bezel_bench.commands.like.line import clients, read_line
from bezel_bench.commands.like.translate import show_like, translate
from bezel_bench.commands.main import main
from bezel_bench.commands.table import shared_table

FIXTURES = Path(__file__).parent / "fixtures" / "clients"
CASES = tomllib.loads((FIXTURES / "lines.toml").read_text())["cases"]
VLLM = "vllm bench serve --base-url http://h:8000 --num-prompts 200"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["line"].split()[0])
def test_a_line_of_another_client_becomes_commands_here(case: dict[str, str]) -> None:
    shown = show_like("bezel-bench run", case["line"]).splitlines()
    commands = [shlex.split(line) for line in shown if not line.startswith("#")]
    assert commands == [["bezel-bench", *shlex.split(line)] for line in case["commands"].strip().splitlines()]
    assert all(parse(command[1:]).action == command[1] for command in commands if "$" not in "".join(command))
    notes = "\n".join(line for line in shown if line.startswith("#"))
    assert [note for note in case["notes"] if note not in notes] == []
    assert case["notes"] or not notes


def test_options_without_a_counterpart_are_named_with_the_reason() -> None:
    (command,) = translate(f"{VLLM} --tokenizer t --insecure --fo 1 --random-input 9 --sharegpt-output-len 3 x -v")
    assert [note.partition(":")[0] for note in command.notes] == [
        *("x", "--fo 1", "-v", "--sharegpt-output-len 3", "--tokenizer t", "--insecure"),
    ]
    assert "no counterpart: certificates are verified" in command.notes[-1]
    assert command.options["--input-tokens"] == ["9"]
    assert translate(f"`{VLLM}`") == translate(VLLM)
    assert translate("guidellm --targte h")[0].notes[0] == "--targte h: unknown; perhaps --target"
    (rates,) = translate("guidellm run --backend target=http://h --profile kind=sweep --max-requests 9")
    assert rates.notes == ["--requests 9: not of `rates`; `run` has it"]


@pytest.mark.slow
@pytest.mark.wide_except("vllm")
@pytest.mark.parametrize(
    "line",
    [VLLM, "guidellm run --target http://h --data a.csv", "aiperf profile --osl 1"],
    ids=["vllm", "guidellm", "aiperf"],
)
def test_no_option_is_dropped_in_silence(line: str) -> None:
    client, _, _ = read_line(line, "--like")
    alone = show_like("bezel-bench run", line)
    for option in (option for row in clients()[client]["rows"] if not row.get("form") for option in row["options"]):
        name, _, key = option.partition(" ")
        kind, _, field = key.partition(" ")
        value = f"kind={kind},{field}=7" if name == "--constraint" else f"{key}=7" if key else "7"
        added = option if option in clients()[client]["flags"] else f"{name} {value}"
        assert added in line or show_like("bezel-bench run", f"{line} {added}") != alone, added


def test_no_key_of_a_line_is_shown() -> None:
    text = show_like("bezel-bench run", "aiperf profile --api-key sk-planted --header 'Authorization: Bearer planted'")
    text += show_like("bezel-bench run", 'guidellm run --backend-kwargs \'{"api_key": "planted"}\' --data a.csv')
    text += show_like(
        "bezel-bench run", f"{VLLM} --header X-API-Key=planted && curl -H 'Authorization: Bearer planted'"
    )
    text += show_like(
        "bezel-bench run", "aiperf profile --extra-inputs api_key:planted -H 'Cookie: planted' -- -H planted"
    )
    headers = '{"target": "http://h", "headers": {"X-Key": "planted", "X-A": "b"}}'
    for line in (
        "aiperf profile -HX-Key:planted",
        "aiperf profile --api-kye planted",
        f"guidellm run --backend '{headers}'",
    ):
        text += show_like("bezel-bench run", line)
    assert "headers.X-A b" in text
    for url in ("http://user:planted@h", "http://h,http://user:planted@i", "http://h?key=planted"):
        address = show_like("bezel-bench run", f"aiperf profile --url {url}")
        assert "add --url without it" in address
        text += address
    assert "planted" not in text
    assert text.count("--api-key-env VARIABLE") == 7
    with pytest.raises(UserError) as caught:
        translate("API_KEY=planted curl http://h")
    assert "planted" not in str(caught.value)


def test_run_prints_the_command_and_sends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["run", "--like", "aiperf profile --url http://127.0.0.1:9 --concurrency 2 --osl 8"])
    assert end.value.code in (0, None)
    assert capsys.readouterr().out.startswith("bezel-bench run --url http://127.0.0.1:9 --users 2 --requests 10 ")
    # `bezel bench` would send an identity token, which no other client has.
    assert show_like("bezel bench run", VLLM).splitlines()[0].endswith(" --public")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (f"{VLLM} --request-rate fast", "expected a number, got 'fast'"),
        (f"{VLLM} --random-prefix-len 1k", "1k \\+ 1024"),
        (f"{VLLM} --seed", "expected an integer, got ''"),
    ],
)
def test_a_value_that_is_no_number_is_refused(line: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        translate(line)
    (command,) = translate("guidellm run --backend target=http://h --max-error-rate x --data a.csv")
    assert "--max-error-rate x: give --max-failed that times 100" in command.notes


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("vllm bench serve --base-url http://h --model m --endpoint", ("vllm-rerank", "rerank")),
        ("guidellm run --backend target=http://h --request-type", ("text_completions", "completions")),
        ("aiperf profile -u http://h -m m --endpoint-type", ("rankings", "rerank")),
    ],
)
def test_each_client_names_the_api_by_its_path_or_in_its_own_words(line: str, word: tuple[str, str]) -> None:
    for typed, endpoint in (("/v1/chat/completions", "chat"), ("pooling", "pooling"), word):
        (command,) = translate(f"{line} {typed}")
        assert command.options["--endpoint"] == [endpoint]
    (command,) = translate(f"{line} /v2/none")
    assert any("no v2/none here" in note for note in command.notes)


@pytest.mark.parametrize(
    "line",
    ["curl http://h", "", "vllm bench 'serve", "vllm serve m --port 1", "pip install guidellm", "x $(a b)", "'a  b'"],
)
def test_a_line_of_no_known_client_is_refused(line: str) -> None:
    with pytest.raises(UserError, match="--like"):
        translate(line)


@pytest.mark.parametrize("name", ["vllm", "aiperf"])
def test_each_option_of_a_client_is_in_the_table_once(name: str) -> None:
    options = {option for file in FIXTURES.glob(f"{name}*-options.txt") for option in file.read_text().split()}
    rows = [option for row in clients()[name]["rows"] if not row.get("older") for option in row["options"]]
    assert sorted(rows) == sorted(options)


def test_each_part_of_an_option_of_guidellm_is_in_the_table() -> None:
    options = {option for row in clients()["guidellm"]["rows"] for option in row["options"]}
    parts = (FIXTURES / "guidellm-0.8.1-options.txt").read_text().splitlines()
    assert [part for part in parts if not options & {part, part.rpartition(" ")[0]}] == []


@pytest.mark.parametrize("name", ["vllm", "guidellm", "aiperf"])
def test_each_row_names_an_option_here_or_a_reason(name: str) -> None:
    every = {option for command in ("run", "rates") for option in shared_table().arguments_of(command)}
    for row in clients()[name]["rows"]:
        assert ("here" in row) + ("does" in row) + ("why" in row) == 1, row
        assert row.get("composed") or "here" not in row or row["here"] in every, row
