"""Options from a file, a result and the environment: their precedence, their use again, and mistakes in them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from bench_support.cells import document, record
from bench_support.command_line import parse
from bench_support.runs import closed_loop
from bezel_base.errors import UserError
from bezel_bench.commands.main import main
from bezel_bench.commands.measure.settings import kept_options
from bezel_bench.commands.run import plan_of
from bezel_bench.commands.table import shared_table
from bezel_bench.result.document import save

DEFAULTS_OF_AB = shared_table().defaults_of("ab")
FILE = """
url: http://127.0.0.1:1
users: 4
output-tokens: 7
slo: [ttft=500, e2e=900]
extra_body: {top_k: 40}
public: true
simulated: false
"""


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("load.yaml").write_text(FILE)


def test_options_of_a_file_are_those_of_the_command_line() -> None:
    options = parse(["run", "--config", "load.yaml"])
    assert (options.url, options.users, options.output_tokens) == ("http://127.0.0.1:1", 4, 7)
    assert (options.slo, json.loads(options.extra_body)) == (["ttft=500", "e2e=900"], {"top_k": 40})
    assert (options.public, options.simulated, options.requests) == (True, False, None)


def test_the_command_line_precedes_variables_and_these_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEZEL_BENCH_USERS", "5")
    monkeypatch.setenv("BEZEL_BENCH_OUTPUT_TOKENS", "8")
    monkeypatch.setenv("BEZEL_BENCH_STEP", "20")  # an option of another command
    monkeypatch.setenv("BEZEL_BENCH_HEADER", "a: b, c\nd: e")
    options = parse(["run", "--config=load.yaml", "--users", "6", "--slo", "ttft=1"])
    assert (options.users, options.output_tokens, options.slo) == (6, 8, ["ttft=1"])
    assert options.header == ["a: b, c", "d: e"]
    monkeypatch.setenv("BEZEL_BENCH_CONFIG", "load.yaml")
    assert parse(["run"]).users == 5


def test_a_named_pattern_replaces_that_of_the_file() -> None:
    options = parse(["run", "--config", "load.yaml", "--rate", "3"])
    assert (options.rate, options.users, options.url) == (3.0, None, "http://127.0.0.1:1")


def test_a_list_is_a_value_with_commas() -> None:
    Path("grid.yaml").write_text("contexts: [16, 64]\nurl: http://127.0.0.1:1\n")
    assert parse(["sweep", "--config", "grid.yaml", "--out", "s.json"]).contexts == "16,64"


def options_to_keep(options: argparse.Namespace) -> dict[str, object]:
    return kept_options(options, shared_table().defaults_of(options.action))


def test_a_result_repeats_its_options_without_headers(capsys: pytest.CaptureFixture[str]) -> None:
    options = parse(["run", "--config", "load.yaml", "--header", "Key: planted-secret", "--out", "a.json"])
    result = document(record(closed_loop(4, 10)))
    manifest = result.manifest.model_copy(update={"options": options_to_keep(options)})
    save(result.model_copy(update={"manifest": manifest}), Path("a.json"))
    assert "planted-secret" not in Path("a.json").read_text()
    again = parse(["run", "--config", "a.json"])
    assert options_to_keep(again) == options_to_keep(options)
    assert main(["export", "a.json", "--format", "config"]) == 0
    Path("again.yaml").write_text(capsys.readouterr().out)
    assert options_to_keep(parse(["run", "--config", "again.yaml"])) == options_to_keep(options)
    save(result, Path("b.json"))
    assert main(["export", "b.json", "--format", "config"]) == 1
    assert "keeps no options" in capsys.readouterr().err


def test_a_comparison_keeps_its_servers_and_not_the_one_of_a_turn() -> None:
    options = parse(["ab", "--arm", "a=http://h", "--arm", "b=http://i", "--users", "2"])
    kept = kept_options(argparse.Namespace(**vars(options) | {"url": "http://h", "stack": "a"}), DEFAULTS_OF_AB)
    assert kept == {"arm": ["a=http://h", "b=http://i"], "users": 2, "endpoint": "chat"}
    varied = parse(["ab", "--url", "http://h", "--vary", "k=1,2", "--start", "s"])
    assert kept_options(varied, DEFAULTS_OF_AB)["url"] == "http://h"


def test_all_mistakes_of_file_and_variables_are_shown_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEZEL_BENCH_USRS", "5")
    Path("wrong.yaml").write_text("userz: 2\nrequests: x\nendpoint: chit\npublic: 3\nheader: planted-secret\n")
    with pytest.raises(UserError) as caught:
        parse(["run", "--config", "wrong.yaml"])
    text = str(caught.value)
    for part in ("write BEZEL_BENCH_USERS", "write users", "requests = x", "choose one of chat", "true or false"):
        assert part in text
    assert "planted-secret" not in text


def test_a_value_of_a_file_is_what_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BEZEL_BENCH_USERS", "")  # is not set
    monkeypatch.setenv("BEZEL_BENCH_SIMULATED", "on")
    Path("odd.yaml").write_text(
        "{url: http://h, title: no, model: on, run-id: 2026-11-30, seed: 010, user-stages: [4:30, 8:30],\n"
        "deadline: 1e2, requests: ~, public: off, extra-body: {day: 2026-11-30, stop: [no, True, 08, '1', null, 1.5]}}"
    )
    options = parse(["run", "--config", "odd.yaml"])
    assert (options.title, options.model, options.run_id, options.seed) == ("no", "on", "2026-11-30", 10)
    assert (options.user_stages, options.deadline, options.users) == ("4:30,8:30", 100.0, None)
    assert (options.requests, options.public, options.simulated) == (None, False, True)
    assert json.loads(options.extra_body) == {"day": "2026-11-30", "stop": ["no", True, "08", "1", None, 1.5]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("users: 4\nusers: 5", "users\n   it stands twice"),
        ("output-tokens: 4\noutput_tokens: 4", "output_tokens\n   it stands twice"),
        ('{"users": 4, "url": "http://h", "users": 5, "url": "http://i"}', "2. odd.yaml: url\n   it stands twice"),
        ('{"extra_body": {"top_k": 4, "a": {"b": 1, "b": 1}}}', "odd.yaml: b\n   it stands twice"),
        ("extra_body:\n  top_k: 4\n  top_k: 5", "odd.yaml: top_k\n   it stands twice"),
        ("users: 4.5", "users = 4.5\n   expected a whole number"),
        ("header: [{Key: planted}]", "header\n   expected a text, or a list of texts"),
        ("slo: {ttft: 500}", "slo\n   expected a text"),
        ("like: vllm bench serve", "no such option"),
    ],
)
def test_a_value_that_would_be_lost_or_misread_is_refused(content: str, message: str) -> None:
    Path("odd.yaml").write_text(content)
    with pytest.raises(UserError) as caught:
        parse(["run", "--url", "http://h", "--config", "odd.yaml"])
    assert message in str(caught.value)
    assert "planted" not in str(caught.value)


def test_equal_names_of_different_objects_are_no_mistake() -> None:
    Path("even.json").write_text('{"url": "http://h", "extra_body": {"a": {"b": 1}, "c": [{"b": 2}, {"b": 3}]}}')
    load, _ = plan_of(parse(["run", "--config", "even.json"]))
    assert load.extra_body == {"a": {"b": 1}, "c": [{"b": 2}, {"b": 3}]}


def test_a_field_that_stands_twice_in_the_body_is_refused() -> None:
    with pytest.raises(UserError, match="--extra-body: top_k\n   it stands twice"):
        plan_of(parse(["run", "--url", "http://h", "--extra-body", '{"top_k": 4, "min_p": 0, "top_k": 5}']))


def test_a_field_of_the_body_that_names_a_secret_is_refused() -> None:
    secret = '{"metadata": {"api_key": "planted"}}'
    with pytest.raises(UserError, match="api_key\n   the result would show") as caught:
        plan_of(parse(["run", "--url", "http://h", "--extra-body", secret]))
    assert "planted" not in str(caught.value)
    load, _ = plan_of(parse(["run", "--url", "http://h", "--extra-body", secret.replace("api_key", "max_tokens_left")]))
    assert load.extra_body == {"metadata": {"max_tokens_left": "planted"}}


def test_a_property_of_a_schema_may_have_the_name_of_a_secret() -> None:
    schema = '{"structured_outputs": {"json": {"properties": {"password": {"type": "string"}}}}}'
    load, _ = plan_of(parse(["run", "--url", "http://h", "--extra-body", schema]))
    assert load.extra_body == json.loads(schema)
    with pytest.raises(UserError, match="api_key\n   the result would show"):
        plan_of(parse(["run", "--url", "http://h", "--extra-body", schema.replace('"type"', '"api_key"')]))


def test_a_body_that_is_too_deep_is_refused() -> None:
    with pytest.raises(UserError, match="expected a JSON object"):
        plan_of(parse(["run", "--url", "http://h", "--extra-body", '{"a":' * 9000 + "1" + "}" * 9000]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[1", "expected ','"),
        ("- users", "expected options"),
        ('{"a": ', "line 1"),
        (None, "No such file"),
        ("a: &x [*x]", "recursion"),
        ('{"schema": "bezel.bench/1"}', "expected options"),
    ],
)
def test_a_file_without_options_is_refused(content: str | None, message: str) -> None:
    if content is not None:
        Path("odd.yaml").write_text(content)
    with pytest.raises(UserError, match=message):
        parse(["run", "--config", "odd.yaml"])


def test_a_help_reads_no_file(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["run", "--config", "none.yaml", "--help"])
    assert "--config FILE" in capsys.readouterr().out
