"""A load survives JSON, and one that cannot be sent is refused with everything that is wrong."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_base.errors import UserError
from bezel_bench.load.plan import (
    Burst,
    Closed,
    Constant,
    Load,
    Poisson,
    PromptPlan,
    Replay,
    Stage,
    Staged,
    Stop,
    Target,
    from_json,
    to_json,
)
from bezel_bench.load.plan_rules import check_load, problems

GOOD = Load(Target("http://127.0.0.1:8000", "m"), Closed(4), Stop(requests=8), PromptPlan(), extra_body={"top_k": 4})
PATTERNS = [
    Closed(4),
    Constant(1.5),
    Poisson(2.0),
    Burst(2.0, 0.5),
    Staged("users", (Stage(4.0, 2.0), Stage(8.0, 1.0))),
    Staged("rate", (Stage(0.5, 2.0),)),
    Replay((0.0, 0.0, 1.5)),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_load_is_the_same_after_json(pattern: Any) -> None:
    given_load = replace(GOOD, pattern=pattern)
    assert problems(given_load) == []
    assert from_json(to_json(given_load)) == given_load


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(st.builds(PromptPlan, kind=st.just("unique"), input_tokens=st.integers(1), run=st.text()))
def test_any_prompt_plan_survives_json(plan: PromptPlan) -> None:
    assert from_json(to_json(replace(GOOD, prompts=plan))).prompts == plan


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"pattern": 3}', '{"pattern": {"kind": "none"}}'])
def test_what_is_no_load_is_said_to_be_none(text: str) -> None:
    with pytest.raises(UserError, match="another version of bezel"):
        from_json(text)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"target": Target("ftp://x", "m")}, "ftp://x"),
        ({"target": Target("http://[", "m")}, "not an http(s) address"),
        ({"target": Target("http://127.0.0.1:99999", "m")}, "not an http(s) address"),
        ({"target": Target("http://a..b", "m")}, "not an http(s) address"),
        ({"target": Target("http://127.0.0.1", "")}, "--model"),
        ({"pattern": Closed(0)}, "--users = 0"),
        ({"pattern": Constant(0.0)}, "--rate = 0"),
        ({"pattern": Poisson(float("nan"))}, "--rate = nan"),
        ({"pattern": Burst(1.0, 0.0)}, "--burstiness = 0"),
        ({"pattern": Staged("users", (Stage(1.5, 1.0),))}, "--user-stages = 1.5:1"),
        ({"pattern": Staged("rate", (Stage(1.0, 0.0),))}, "--rate-stages = 1:0"),
        ({"pattern": Staged("rate", ())}, "no stage has a level"),
        ({"pattern": Staged("rate", (Stage(0.0, 1.0),))}, "no stage has a level"),
        ({"pattern": Replay(())}, "no instant"),
        ({"pattern": Replay((1.0, 0.5))}, "not in order"),
        ({"stop": Stop()}, "never end"),
        ({"stop": Stop(requests=0)}, "--requests = 0"),
        ({"stop": Stop(seconds=float("inf"))}, "--seconds = inf"),
        ({"deadline_seconds": 0.0}, "--deadline = 0"),
        ({"ramp_seconds": -1.0}, "--ramp = -1"),
        ({"ramp_seconds": 3.0, "stop": Stop(seconds=2.0)}, "before its last users begin"),
        ({"pattern": Constant(1.0), "max_in_flight": 2, "workers": 3}, "--max-in-flight = 2"),
        ({"workers": 0}, "--workers = 0"),
        ({"prompts": PromptPlan(output_tokens=0)}, "--output-tokens = 0"),
        ({"prompts": PromptPlan(input_tokens=0)}, "--input-tokens = 0"),
        ({"prompts": PromptPlan("shared_prefix", prefix_tokens=128)}, "would have nothing of its own"),
        ({"prompts": PromptPlan("shared_prefix")}, "would have nothing shared"),
        ({"prompts": PromptPlan("multi_turn", turns=0)}, "--turns = 0"),
        ({"prompts": PromptPlan("file")}, "no prompt"),
        ({"prompts": PromptPlan("multi_turn", turns=2), "pattern": Constant(1.0)}, "turns wait"),
    ],
)
def test_what_cannot_be_sent_is_refused_by_its_value(change: dict[str, Any], word: str) -> None:
    (problem,) = problems(replace(GOOD, **change))
    assert word in str(problem)
    assert problem.repair


def test_everything_wrong_is_reported_at_once_and_a_password_never() -> None:
    wrong = replace(GOOD, target=Target("http://u:secret@h", ""), stop=Stop(requests=0), workers=0)
    with pytest.raises(UserError) as caught:
        check_load(wrong)
    assert len(caught.value.problems) == 4
    assert "secret" not in str(caught.value)
    assert check_load(GOOD) is GOOD
