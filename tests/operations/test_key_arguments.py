"""Arguments of keys: what is refused and why, without a request to any cloud."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from bezel.cli.command_table import shown_names
from bezel.operations.arguments.errors import argument_problems
from bezel.operations.context import Context
from bezel.operations.keys.create import CreateKeyArguments, plan_create
from bezel.operations.keys.fields import seconds_of
from bezel.operations.keys.key_text import is_admitted, limits_text, state_text
from bezel.operations.keys.revoke import RevokeArguments
from bezel.operations.keys.rotate import RotateArguments, plan_rotate
from bezel.operations.keys.served_names import check_models
from bezel_base.errors import UserError, WrongValueError
from bezel_door.key_file import Key

ROOT = Path(__file__).parents[2]
NOW = datetime(2026, 9, 21, 12, tzinfo=UTC)


def problems_of(model: Any, name: str, **arguments: Any) -> str:
    with pytest.raises(ValidationError) as refused:
        model(stack="dev", **arguments)
    return "\n".join(map(str, argument_problems(refused.value, model, shown_names(name))))


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ({"team": "a team"}, ("--team", "its form is wrong", "e.g. search")),
        ({"team": ""}, ("--team", "its form is wrong")),
        ({"team": "-x"}, ("--team", "its form is wrong")),
        ({"team": "x" * 64}, ("--team", "at most 63 characters")),
        ({"requests_per_minute": 0}, ("--requests-per-minute", "out of range", "1")),
        ({"tokens_per_minute": -1}, ("--tokens-per-minute", "out of range")),
        ({"tokens_per_day": 10**13}, ("--tokens-per-day", "at most 1000000000000 (")),
        ({"models": ["two words"]}, ("--models", "its form is wrong", "gemma-4-12b-it")),
        ({"models": ["m"] * 101}, ("--models", "at most 100 items")),
        ({"expire": "1d"}, ("expire", "there is no such argument", "expires")),
    ],
)
def test_a_wrong_argument_of_a_new_key_is_refused_with_its_repair(
    arguments: dict[str, Any], parts: tuple[str, ...]
) -> None:
    shown = problems_of(CreateKeyArguments, "keys_create", **arguments)
    assert all(part in shown for part in parts), shown


@pytest.mark.parametrize("identifier", ["K7M2P9Q4", "k7m2p9q", "k7m2p9q45", "", "bezel-k7m2p9q4-" + "x" * 43])
def test_what_is_no_id_of_a_key_is_refused_and_a_whole_key_not_shown(identifier: str) -> None:
    for model, name in ((RevokeArguments, "keys_revoke"), (RotateArguments, "keys_rotate")):
        shown = problems_of(model, name, id=identifier)
        assert "ID" in shown
        assert "the 8 characters behind bezel- in the key" in shown
        assert "x" * 43 not in shown


@pytest.mark.parametrize(
    ("text", "text_of_problem"),
    [
        *(("soon", "expected a duration"), ("-1d", "expected a duration"), ("30", "expected a duration")),
        *(("0s", "out of range"), ("59s", "from 1m to 3650d"), ("3651d", "from 1m to 3650d")),
    ],
)
def test_a_wrong_end_of_a_key_is_refused_before_any_request(text: str, text_of_problem: str) -> None:
    with pytest.raises(WrongValueError, match=text_of_problem):
        plan_create(Context(ROOT, {}), CreateKeyArguments(stack="dev", expires=text))


def test_an_overlap_may_be_none_and_is_bounded() -> None:
    assert seconds_of("--overlap", "0s") == 0
    assert seconds_of("--overlap", "1d12h") == 129_600
    with pytest.raises(UserError, match="--overlap"):
        plan_rotate(Context(ROOT, {}), RotateArguments(stack="dev", id="k7m2p9q4", overlap="a day"))


def test_a_model_that_the_stack_does_not_serve_is_refused() -> None:
    context = Context(ROOT, {}, show=lambda _line: None)
    served = "gemma-4-12b-it-qat-w4a16"
    assert check_models(context, "l4-qat", (served,)) == ()
    assert check_models(context, "l4-qat", ()) == ()
    with pytest.raises(WrongValueError, match=f"did you mean {served}"):
        check_models(context, "l4-qat", ("gema-4-12b-it-qat-w4a16",))
    assert "not known" in check_models(context, "no-such-stack", (served,))[0]


def test_words_for_a_key_name_its_limits_and_its_state() -> None:
    key = Key("0" * 64, "search", NOW, requests_per_minute=60, tokens_per_day=1_000_000, models=("a", "b"))
    assert limits_text(key) == "60 requests/min, 1,000,000 tokens/day, a, b alone"
    assert limits_text(Key("0" * 64, "", NOW)) == "without limits"
    for ends, state, admitted in (
        ({}, "active", True),
        ({"expires": NOW + timedelta(hours=1)}, "active until 2026-09-21 13:00", True),
        ({"expires": NOW}, "expired 2026-09-21 12:00", False),
        ({"expires": NOW, "revoked": NOW}, "revoked 2026-09-21", False),
        ({"revoked": NOW + timedelta(hours=1)}, "active", True),
    ):
        ended = Key("0" * 64, "search", NOW, **ends)
        assert (state_text(ended, NOW), is_admitted(ended, NOW)) == (state, admitted)
