"""Against the simulated vLLM: what it counts in `usage` is what was asked for, and only shared words are cached."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bezel_bench.load.plan import Closed, Load, PromptPlan, Stop, Target
from bezel_bench.prompts.prompts import make_prompts
from bezel_bench.server.http_probe import asker
from simulated_vllm_support.process import NAME, simulated_vllm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel_bench.prompts.frames import Prompts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    arguments = ("--max-model-len=4096", "--enable-prompt-tokens-details")
    with simulated_vllm(tmp_path_factory.mktemp("models"), *arguments, serving_speed=100.0) as at:
        yield at


def prompts(url: str, endpoint: Any, **plan: Any) -> tuple[Load, Prompts]:
    load = Load(Target(url, NAME, endpoint), Closed(1), Stop(requests=4), PromptPlan(output_tokens=4, **plan))
    return load, make_prompts(load, asker(load.target, dict))


def usage(load: Load, data: bytes) -> dict[str, Any]:
    answer = asker(load.target, dict)(load.target.path, json.loads(data))
    events = [line[6:] for line in answer.body.decode().splitlines() if line.startswith("data: {")]
    return dict(json.loads(events[-1])["usage"])


def cached_tokens(counts: dict[str, Any]) -> int:
    return int((counts["prompt_tokens_details"] or {}).get("cached_tokens") or 0)


@pytest.mark.parametrize("endpoint", ["chat", "completions"])
@pytest.mark.parametrize("tokens", [40, 1000])
def test_the_server_counts_what_was_asked_for_and_caches_nothing(url: str, endpoint: str, tokens: int) -> None:
    load, made = prompts(url, endpoint, input_tokens=tokens, run=f"{endpoint}{tokens}")
    assert made.notes == ()
    for index in range(3):
        counts = usage(load, made.bodies.body(index).data)
        assert (counts["prompt_tokens"], counts["completion_tokens"]) == (tokens, 4)
        assert cached_tokens(counts) == 0


def test_a_shared_prefix_is_cached_and_the_rest_is_not(url: str) -> None:
    load, made = prompts(url, "chat", kind="shared_prefix", input_tokens=600, prefix_tokens=400, groups=2, run="s")
    assert made.notes == ()
    counts_of_prompts = [usage(load, made.bodies.body(index).data) for index in range(4)]
    assert {counts["prompt_tokens"] for counts in counts_of_prompts} == {600}
    # Whole blocks of 16 tokens, from the second of each group on.
    assert [cached_tokens(counts) for counts in counts_of_prompts] == [0, 0, 400, 400]


def test_a_conversation_finds_its_earlier_turns_in_the_cache(url: str) -> None:
    load, made = prompts(url, "chat", kind="multi_turn", input_tokens=200, turns=3, run="m")
    assert made.notes == ()
    counts_of_turns = [usage(load, made.bodies.body(0, turn).data) for turn in range(3)]
    assert [counts["prompt_tokens"] for counts in counts_of_turns] == [200, 404, 608]
    assert cached_tokens(counts_of_turns[0]) == 0
    assert cached_tokens(counts_of_turns[1]) >= 176
    assert cached_tokens(counts_of_turns[2]) >= 384
