"""Conversations that repeat the server's own responses: each turn holds what was truly said before it."""

import asyncio
import json
from collections.abc import Sequence

import pytest

from bench_support.tokenizer import TokenServer, counting
from bench_support.wire import DONE, HEAD, USAGE, WireRequest, chunk, document, send, serving
from bezel_bench.load.plan import Body, Closed, Load, PromptPlan, ReplyingBodies, Stop, Target
from bezel_bench.load.plan_rules import LoadError, check_load
from bezel_bench.prompts.prompts import make_prompts
from bezel_bench.server.http_probe import asker

TURNS = 3


class Talk:
    """Conversations of three turns, whose texts are the numbers of conversation and turn."""

    turns = TURNS

    def body(self, index: int, turn: int = 0) -> Body:
        return self.reply(index, turn, ["generated"] * turn)

    def reply(self, index: int, turn: int, responses: Sequence[str]) -> Body:
        return Body(json.dumps({"number": index, "turn": turn, "said": list(responses)}).encode(), 2, turn)


def answer_of(number: int, turn: int) -> str:
    return f'say "{number}"\n {turn} \u00e4'


async def speaking(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
    """Answers each request with its own text, in two chunks of any cut."""
    fields = json.loads(asked.body)
    text = answer_of(fields["number"], fields["turn"])
    parts = [text[:3], text[3:]]
    events = [f"data: {json.dumps({'choices': [{'index': 0, 'delta': {'content': part}}]})}\n\n" for part in parts]
    writer.write(HEAD + b"".join(chunk(event.encode()) for event in events) + chunk(USAGE % 2 + DONE) + b"0\r\n\r\n")


def said_of(asked: Sequence[WireRequest]) -> dict[tuple[int, int], list[str]]:
    bodies = [json.loads(one.body) for one in asked]
    return {(body["number"], body["turn"]): body["said"] for body in bodies}


@pytest.mark.parametrize("users", [1, 4])
def test_each_turn_holds_the_responses_to_the_turns_before_it(users: int) -> None:
    assert isinstance(Talk(), ReplyingBodies)
    with serving(speaking) as wire:
        measured = send(wire.url, 24, Closed(users), bodies=Talk())
    assert {sample.failure for sample in measured.samples} == {""}
    assert {sample.output_tokens for sample in measured.samples} == {2}
    by_turn = said_of(wire.asked)
    assert len(by_turn) == 24
    for (number, turn), earlier in by_turn.items():
        assert earlier == [answer_of(number, before) for before in range(turn)]


def test_failed_response_ends_a_conversation_and_the_next_begins_empty() -> None:
    async def failing(asked: WireRequest, writer: asyncio.StreamWriter) -> None:
        if asked.number == 1:
            writer.write(document(b'{"error":"out of memory"}', "500 Internal Server Error"))
        else:
            await speaking(asked, writer)

    with serving(failing) as wire:
        measured = send(wire.url, 9, Closed(1), bodies=Talk())
    assert [(sample.index, sample.turn, sample.failure) for sample in measured.samples][:4] == [
        (0, 0, ""),
        (1, 1, "http_5xx"),
        (3, 0, ""),
        (4, 1, ""),
    ]
    assert said_of(wire.asked)[1, 0] == []


def conversations(server: TokenServer, *, served: bool) -> PromptPlan:
    del server
    return PromptPlan("multi_turn", input_tokens=64, output_tokens=5, turns=TURNS, run="r", served_answers=served)


def test_prompts_of_such_a_plan_take_responses_and_others_do_not() -> None:
    with counting(TokenServer()) as server:
        target = Target(server.url, "m", public=True)
        made = {
            served: make_prompts(
                Load(target, Closed(1), Stop(requests=9), conversations(server, served=served)), asker(target, dict)
            )
            for served in (True, False)
        }
    assert not isinstance(made[False].bodies, ReplyingBodies)
    talk = made[True].bodies
    assert isinstance(talk, ReplyingBodies)
    messages = json.loads(talk.reply(4, 2, ['one "quoted"', "two\n"]).data)["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "user", "assistant", "user"]
    assert [messages[1]["content"], messages[3]["content"]] == ['one "quoted"', "two\n"]
    assert "later turns hold the server's own responses" in made[True].notes[0]
    assert made[False].notes == ()


def test_served_answers_need_conversations() -> None:
    plan = PromptPlan(served_answers=True)
    with pytest.raises(LoadError, match="add --turns"):
        check_load(Load(Target("http://127.0.0.1:1", "m"), Closed(1), Stop(requests=9), plan))
