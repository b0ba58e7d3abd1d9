"""A trace is sent at its instants with its lengths, and equal blocks at the begin of prompts are equal words."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench_support.command_line import parse
from bench_support.tokenizer import TokenServer, counting
from bezel_base.errors import UserError
from bezel_bench.commands.measure.load_options import load_of
from bezel_bench.load.plan import Load, PromptPlan, Replay, Stop, Target
from bezel_bench.prompts.frames import Prompts
from bezel_bench.prompts.prompts import make_prompts
from bezel_bench.prompts.traces import Traced, is_trace, read_trace
from bezel_bench.server.http_probe import asker


def line(at: float, prompt: int, response: int, *blocks: int) -> str:
    record = {"timestamp": at, "input_length": prompt, "output_length": response, "hash_ids": list(blocks)}
    return json.dumps(record)


TEXT = "\n".join(
    [line(2000, 1100, 7, 1, 2, 3), line(500, 1300, 9, 1, 2, 9), line(2500, 60, 7), line(2600, 600, 3, 1, 4)]
)


def test_requests_are_in_the_order_of_their_instants_from_the_first_one() -> None:
    requests = read_trace(Path("t"), TEXT)
    assert [each.at for each in requests] == [0.0, 1.5, 2.0, 2.1]
    assert requests[0] == Traced(0.0, 1300, 9, (1, 2, 9))
    assert is_trace(TEXT)
    assert not is_trace("0.5\n1.0\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "line 1"),
        (line(0, 0, 1), "expected an integer above 0 in `input_length`, got 0"),
        (line(0, 1, True), "expected an integer above 0 in `output_length`, got True"),
        (line(-1, 1, 1), "expected milliseconds in `timestamp`, got -1"),
        (
            '{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": ["a"]}',
            "expected whole numbers in `hash_ids`",
        ),
        (line(61.114, 521, 132, *range(33)), "one of `hash_ids` for 512 tokens, got 33 for 521"),
        (TEXT + "\n[]", "1 line of t cannot be sent.*\n(.*\n)*.*line 5"),
        (" \n", "it holds no request"),
    ],
)
def test_a_line_of_another_form_is_refused_with_its_number(text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read_trace(Path("t"), text)


@pytest.fixture
def server() -> Iterator[TokenServer]:
    with counting(TokenServer()) as server:
        yield server


def make(server: TokenServer, file: Path) -> Prompts:
    plan = PromptPlan("trace", file=str(file), output_tokens=128)
    load = Load(Target(server.url, "m"), Replay((0.0, 1.5, 2.0, 2.1)), Stop(), plan)
    return make_prompts(load, asker(load.target, dict, seconds=5))


def test_lengths_are_those_of_the_trace_and_equal_blocks_are_equal_words(server: TokenServer, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(TEXT)
    prompts = make(server, file)
    bodies = [json.loads(prompts.bodies.body(number).data) for number in range(4)]
    assert [len(server.count(body)) for body in bodies] == [1300, 1100, 60, 600]
    assert [(body["max_tokens"], body["ignore_eos"]) for body in bodies] == [(9, True), (7, True), (7, True), (3, True)]
    assert [prompts.bodies.body(number).asked_tokens for number in range(4)] == [9, 7, 7, 3]
    texts = [body["messages"][0]["content"].split() for body in bodies]
    assert texts[0][:1025] == texts[1][:1025]  # the lead and two blocks
    assert texts[0][:513] == texts[3][:513]
    assert texts[0][:1100] != texts[1][:1100]
    assert texts[0][:600] != texts[3][:600]
    assert len(prompts.notes) == 1


def options(*arguments: str) -> Any:
    return load_of(parse(["run", "--url", "http://127.0.0.1:1", "--public", *arguments]), Target("http://h", "m"))


def test_the_command_takes_instants_from_the_trace_and_no_other_prompts(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_text(TEXT)
    load = options("--trace", str(file), "--seconds", "2")
    assert (load.pattern, load.prompts.kind, load.stop.seconds) == (Replay((0.0, 1.5, 2.0, 2.1)), "trace", 2)
    with pytest.raises(UserError, match="lengths and shared prefixes of its own"):
        options("--trace", str(file), "--turns", "3")
    file.write_text("0.5\n1.0\n")
    assert options("--trace", str(file)).prompts.kind == "unique"
    with pytest.raises(UserError, match="cannot be read"):
        options("--trace", str(tmp_path / "none"))
