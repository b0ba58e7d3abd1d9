"""First token's time at caller and server: judged where one request ran alone, and what makes a path slow is named."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bezel.operations.query.query import Answer, QueryArguments, query
from bezel.operations.serving.first_token import SLOW_SECONDS, FirstToken, Reading, first_token
from bezel.operations.vllm_metrics import sample as names
from bezel.operations.vllm_metrics.sample import Sample, parse
from tests.support.operations.delayed_server import DelayedServer
from tests.support.operations.deployed import Deployed
from tests.support.operations.model_server import ModelServer, piece, usage

TEXT = (
    (Path(__file__).parents[2] / "packages/simulated-vllm/tests/fixtures/vllm" / "metrics.txt")
    .read_text()
    .partition("\n\n")[2]
)
SENT = 2_000_000_000.0


def sample(*, count: float = 0.0, total: float = 0.0, prompts: float = 0.0, **changes: Any) -> Sample:
    recorded_sample = parse(TEXT, 0.0)
    assert recorded_sample is not None
    gained = {f"{names.TTFT}_count": count, f"{names.TTFT}_sum": total, names.PROMPT: prompts}
    sums = {**recorded_sample.sums, **{name: recorded_sample.sums[name] + value for name, value in gained.items()}}
    return replace(recorded_sample, sums=sums, **changes)


def fresh(count: float = 1.0, started: float = SENT + 11) -> Sample:
    """A process that has served nothing else."""
    zero = dict.fromkeys(sample().sums, 0.0)
    return replace(sample(), sums={**zero, f"{names.TTFT}_count": count, f"{names.TTFT}_sum": 0.08}, started=started)


def judge(seconds: float | None, before: Reading, after: Reading, prompt: int | None = None) -> FirstToken:
    return first_token(seconds, before, after, sent_unix=SENT, prompt_tokens=prompt)


BEFORE, AFTER = Reading(0.02, sample()), Reading(0.03, sample(count=1, total=0.084, prompts=9))


def test_both_times_are_known_where_one_request_ran() -> None:
    judgement = judge(0.1, BEFORE, AFTER, prompt=9)
    assert judgement.server_seconds == pytest.approx(0.084)
    assert (judgement.not_judged, judgement.between, judgement.repair) == ("", "", "")
    assert judgement.line() == "0.1 s here, 0.084 s at the server"


@pytest.mark.parametrize(
    ("seconds", "before", "after", "between"),
    [
        (12.98, BEFORE, AFTER, "a queue before the server"),
        (12.98, replace(BEFORE, seconds=12.0), replace(AFTER, seconds=12.5), "the path"),
        (12.98, replace(BEFORE, seconds=12.0), AFTER, "a queue before the server"),  # one reading was quick
        (30.0, Reading(why="no instance ran before"), Reading(0.02, fresh()), "a cold start"),
        (SLOW_SECONDS + 0.084, BEFORE, AFTER, "a queue before the server"),
    ],
)
def test_what_lies_between_is_named_where_it_is_slow(
    seconds: float, before: Reading, after: Reading, between: str
) -> None:
    judgement = judge(seconds, before, after)
    assert judgement.between.startswith(between)
    assert judgement.repair


@pytest.mark.parametrize(
    ("seconds", "total"),
    [(SLOW_SECONDS + 0.083, 0.084), (12.0, 6.5)],  # below a second outside; most of it is the server's
)
def test_a_path_that_is_not_slow_is_not_named(seconds: float, total: float) -> None:
    judgement = judge(seconds, BEFORE, Reading(0.02, sample(count=1, total=total)))
    assert judgement.server_seconds == pytest.approx(total)
    assert judgement.between == ""


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (BEFORE, Reading(why="the metrics could not be read: HTTP 503"), "HTTP 503"),
        (Reading(why="the metrics could not be read: HTTP 404"), AFTER, "HTTP 404"),
        (Reading(why="no instance ran before"), AFTER, "no instance ran before"),  # an older process answered
        (Reading(why="no instance ran before"), Reading(0.1, fresh(count=2)), "2 sequences"),
        (BEFORE, Reading(0.1, sample()), "another instance answered"),
        (BEFORE, Reading(0.1, sample(count=3, total=1.0)), "3 sequences"),
        (BEFORE, Reading(0.1, sample(count=1, total=1.0, prompts=700)), "was another one"),
        (BEFORE, Reading(0.1, sample(count=1, total=1.0, created=1.0)), "another process answered"),
        (BEFORE, Reading(0.1, sample(count=-1)), "fell"),
    ],
)
def test_the_server_s_time_is_not_judged_where_others_may_be_in_it(before: Reading, after: Reading, why: str) -> None:
    judgement = judge(13.0, before, after, prompt=9)
    assert judgement.server_seconds is None
    assert why in judgement.not_judged
    assert judgement.between == ""
    assert "at the server not judged: " in judgement.line()


def test_an_answer_without_a_token_has_no_time() -> None:
    assert judge(None, BEFORE, AFTER).line() == "unknown here; at the server not judged: no token came"


@pytest.fixture
def server(cloud: Deployed) -> ModelServer:
    made = ModelServer(cloud)
    made.streams(piece("Red "), piece("blue.", finish_reason="stop"), usage(9, 4))
    return made


def ask(server: ModelServer, **arguments: Any) -> Answer:
    return query(server.cloud.context, QueryArguments(stack="dev", prompt="Name colours.", **arguments))


@pytest.mark.slow
def test_a_query_says_what_lies_before_the_server(server: ModelServer) -> None:
    delayed = DelayedServer(server, TEXT, seconds=1.2)
    slow = ask(server, stats=True)
    assert slow.stats is not None
    assert slow.stats.server_ttft_seconds == pytest.approx(0.08)
    assert "here, 0.08 s at the server" in slow.text()
    assert "slow path" in slow.text()
    assert "scaling.request_concurrency" in slow.text()
    delayed.seconds, delayed.at_server = 0.0, 30.0  # more than a busy machine adds outside of the server
    assert "slow path" not in ask(server, stats=True).text()
    delayed.others = 2
    assert "not judged: 3 sequences" in ask(server, stats=True).text()


def test_without_stats_the_metrics_are_not_read(server: ModelServer) -> None:
    DelayedServer(server, TEXT, seconds=0.0)
    assert ask(server).stats is not None
    assert "/metrics" not in {call.path for call in server.cloud.server.calls}


@pytest.mark.slow
def test_thoughts_and_the_end_token_are_tokens_of_the_time(server: ModelServer) -> None:
    thought = {"model": "gemma", "choices": [{"delta": {"reasoning": "Hm."}}]}
    server.streams(thought, piece("", finish_reason="stop"), usage(9, 4))
    result = ask(server, stats=True)
    assert result.stats is not None
    assert result.stats.ttft_seconds is not None
    assert result.answer == ""
