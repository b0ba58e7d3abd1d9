"""Prompts have the length that the server counts, begin like no other, and are the same again for the same seed."""

import itertools
import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench_support.tokenizer import TokenServer, counting
from bezel_base.errors import UserError
from bezel_bench.load.plan import Closed, Load, PromptPlan, Stop, Target
from bezel_bench.prompts.datasets import read_entries
from bezel_bench.prompts.frames import Prompts
from bezel_bench.prompts.prompts import learn, make_prompts
from bezel_bench.prompts.token_calibration import WORDS
from bezel_bench.server.http_probe import asker


@pytest.fixture(scope="module")
def shared_server() -> Iterator[TokenServer]:
    with counting(TokenServer()) as server:
        yield server


@pytest.fixture
def server(shared_server: TokenServer) -> TokenServer:
    """A server that knows every word, anew for each test, behind the same address."""
    shared_server.__dict__.update(TokenServer(url=shared_server.url).__dict__)
    return shared_server


def load(server: TokenServer, endpoint: Any = "chat", **prompts: Any) -> Load:
    plan = PromptPlan(**{"input_tokens": 64, "output_tokens": 8, **prompts})
    return Load(Target(server.url, "m", endpoint), Closed(4), Stop(requests=100), plan)


def make(plan: Load) -> Prompts:
    return make_prompts(plan, asker(plan.target, lambda: {"Authorization": "Bearer t"}, seconds=5))


def content_of(prompts: Prompts, index: int, turn: int = 0) -> Any:
    body = json.loads(prompts.bodies.body(index, turn).data)
    return body.get("messages") or body["prompt"]


def length(server: TokenServer, prompts: Prompts, index: int, turn: int = 0) -> int:
    return len(server.count(json.loads(prompts.bodies.body(index, turn).data)))


@pytest.mark.slow
@pytest.mark.parametrize("endpoint", ["chat", "completions"])
@pytest.mark.parametrize("tokens", [23, 64, 3000])
def test_every_prompt_has_the_length_that_was_asked_for(server: TokenServer, endpoint: str, tokens: int) -> None:
    prompts = make(load(server, endpoint, input_tokens=tokens))
    assert prompts.notes == ()
    assert {length(server, prompts, index) for index in range(40)} == {tokens}
    # To learn and to see: never a question for each prompt.
    assert len(server.asked) == 2
    assert server.asked[0]["authorization"] == "Bearer t"


def test_words_that_are_several_tokens_are_not_used(server: TokenServer) -> None:
    server.single = frozenset(WORDS[:60])
    prompts = make(load(server))
    assert prompts.notes == ()
    assert {length(server, prompts, index) for index in range(40)} == {64}
    used = content_of(prompts, 0)[0]["content"].split()[1:]
    assert set(used) <= server.single


def test_a_template_that_says_the_separator_itself_is_seen_through(server: TokenServer) -> None:
    server.before = [" the"] * 7
    prompts = make(load(server))
    assert prompts.notes == ()
    assert length(server, prompts, 3) == 64


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"status": 404}, "counts no tokens (POST /tokenize: HTTP 404)"),
        ({"single": frozenset(WORDS[:9])}, "too few of"),
        ({"single": frozenset()}, "too few of"),
    ],
)
def test_server_that_cannot_count_gets_about_as_many_words_and_a_note(
    server: TokenServer, change: dict[str, Any], why: str
) -> None:
    server.__dict__.update(change)
    prompts = make(load(server))
    assert [why in note and note.startswith("prompt lengths are approximate") for note in prompts.notes] == [True]
    assert 40 <= len(content_of(prompts, 0)[0]["content"].split()) <= 64


def test_a_server_that_nobody_runs_is_said_too() -> None:
    plan = load(TokenServer(url="http://127.0.0.1:9"))
    (note,) = make(plan).notes
    assert "refused" in note


def test_a_count_that_differs_from_what_was_learned_is_not_called_exact(server: TokenServer) -> None:
    plan = load(server)
    vocabulary = learn(plan, asker(plan.target, dict, seconds=5))
    server.extra = 2
    prompts = make_prompts(plan, asker(plan.target, dict, seconds=5), vocabulary)
    assert prompts.notes == ("prompt lengths are approximate: the server counts 66 tokens in a prompt made for 64",)
    server.extra = 0
    assert make_prompts(plan, asker(plan.target, dict, seconds=5), vocabulary).notes == ()


def test_no_two_prompts_begin_alike_and_the_same_plan_makes_them_again(server: TokenServer) -> None:
    plan = load(server)
    first, again = make(plan), make(plan)
    texts = [content_of(first, index)[0]["content"] for index in range(3000)]
    assert len({" ".join(text.split()[:6]) for text in texts}) == 3000
    assert texts[:50] == [content_of(again, index)[0]["content"] for index in range(50)]
    copy = pickle.loads(pickle.dumps(first.bodies))  # noqa: S301 - our own
    assert copy.body(7) == first.bodies.body(7)


@pytest.mark.parametrize(
    "other",
    [
        {"prompts": PromptPlan(input_tokens=64, output_tokens=8, run="second")},
        {"prompts": PromptPlan(input_tokens=64, output_tokens=8, seed=1)},
        {"prompts": PromptPlan(input_tokens=64, output_tokens=9)},
        {"stop": Stop(requests=101)},
        {"pattern": Closed(5)},
    ],
)
def test_a_run_with_anything_else_has_other_prompts(server: TokenServer, other: dict[str, Any]) -> None:
    plan = load(server)
    texts = {content_of(make(one), 0)[0]["content"][:40] for one in (plan, replace(plan, **other))}
    assert len(texts) == 2


def test_the_same_run_on_another_server_has_the_same_prompts(server: TokenServer) -> None:
    plan = load(server)
    moved = replace(plan, target=replace(plan.target, url=server.url + "/b"), workers=3)
    assert content_of(make(plan), 5) == content_of(make(moved), 5)


def test_a_group_shares_its_prefix_and_no_more(server: TokenServer) -> None:
    prompts = make(load(server, kind="shared_prefix", prefix_tokens=40, groups=3))
    assert prompts.notes == ()
    ids = [server.count(json.loads(prompts.bodies.body(index).data)) for index in range(12)]
    assert {len(one) for one in ids} == {64}
    for a, b in itertools.combinations(range(12), 2):
        common = next(place for place in range(64) if ids[a][place] != ids[b][place])
        same = prompts.bodies.body(a).group == prompts.bodies.body(b).group
        assert 40 <= common < 48 if same else common < 20
    assert {prompts.bodies.body(index).group for index in range(12)} == {0, 1, 2}
    assert make(load(server)).bodies.body(0).group == -1


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
def test_a_turn_repeats_the_conversation_and_adds_what_was_asked_for(server: TokenServer, endpoint: str) -> None:
    prompts = make(load(server, endpoint, kind="multi_turn", turns=3))
    assert prompts.notes == ()
    assert [length(server, prompts, 4, turn) for turn in range(3)] == [64, 64 + 8 + 64, 64 + 2 * (8 + 64)]
    assert prompts.bodies.turns == 3
    turns = [prompts.bodies.body(4, turn) for turn in range(3)]
    assert [one.turn for one in turns] == [0, 1, 2]
    texts = [json.dumps(content_of(prompts, 4, turn)).rstrip('}]"') for turn in range(3)]
    assert texts[2].startswith(texts[1])
    assert texts[1].startswith(texts[0])
    assert content_of(prompts, 5, 0) != content_of(prompts, 4, 0)


@pytest.mark.parametrize(
    ("prompts", "message"),
    [
        ({"input_tokens": 14}, "give 17 or more"),
        ({"kind": "shared_prefix", "prefix_tokens": 3}, "give more than 8"),
        ({"kind": "shared_prefix", "prefix_tokens": 60}, "begin alike"),
    ],
)
def test_a_prompt_too_short_to_be_unique_is_refused(server: TokenServer, prompts: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        make(load(server, **prompts))


def test_texts_of_a_file_are_sent_as_they_are(server: TokenServer, tmp_path: Path) -> None:
    file = tmp_path / "texts.txt"
    file.write_text('plain "quoted" text\n\n{"prompt": "of an object\\n"}\n"a string"\n{not json\n', encoding="utf-8")
    prompts = make(load(server, kind="file", file=str(file)))
    texts = [content_of(prompts, index)[0]["content"] for index in range(5)]
    assert texts == ['plain "quoted" text', "of an object\n", "a string", "{not json", 'plain "quoted" text']
    assert "4 entries of texts.txt" in prompts.notes[0]
    assert server.asked == []


@pytest.mark.parametrize(("content", "message"), [(b"", "holds no text"), (b'{"a": 1}', "line 1"), (b"\xff", "UTF-8")])
def test_a_file_without_texts_is_refused(tmp_path: Path, content: bytes, message: str) -> None:
    file = tmp_path / "texts"
    file.write_bytes(content)
    with pytest.raises(UserError, match=message):
        read_entries(file)
    with pytest.raises(UserError, match="cannot be read"):
        read_entries(tmp_path / "none")


def test_fields_of_the_caller_win_and_shape_what_is_counted(server: TokenServer) -> None:
    extra = {"ignore_eos": False, "max_tokens": 3, "chat_template_kwargs": {"enable_thinking": True}}
    prompts = make(replace(load(server), extra_body=extra))
    body = prompts.bodies.body(0)
    sent = json.loads(body.data)
    assert (sent["ignore_eos"], sent["max_tokens"], body.asked_tokens) == (False, 3, 3)
    assert sent["stream_options"] == {"include_usage": True}
    assert all(asked["chat_template_kwargs"] == {"enable_thinking": True} for asked in server.asked)
    assert json.loads(make(load(server)).bodies.body(0).data)["ignore_eos"] is True
