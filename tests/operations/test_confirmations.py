"""Confirmations: a token confirms one plan, once, in time, for the caller and the target that it was given for."""

import pytest

from bezel.operations.changes.confirmations import LIFE_SECONDS, MOST_PLANS, ConfirmationError, Confirmations
from bezel.operations.changes.plan import Outcome, Plan
from bezel_base.errors import UserError
from tests.support.clock import Clock


def a_plan(target: str = "dev", **values: object) -> Plan:
    shown = {"operation": "deploy", "target": target, "summary": "1 to create", "arguments": {}, "basis": {}}
    return Plan.model_validate({**shown, **values})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def confirmations(clock: Clock) -> Confirmations:
    return Confirmations(clock)


def reason_of(confirmations: Confirmations, token: str, caller: str = "a", **differing: str) -> str:
    with pytest.raises(ConfirmationError, match="nothing was changed") as refused:
        confirmations.take(token, caller, **differing)
    assert refused.value.exit_code == 3
    return refused.value.reason


def test_a_token_confirms_the_plan_that_it_was_given_for(confirmations: Confirmations) -> None:
    plan, other = a_plan(), a_plan("prod")
    first, second = confirmations.offer(plan, "a"), confirmations.offer(other, "a")
    assert first.token != second.token
    assert confirmations.take(first.token, "a", operation="deploy", target="dev") is plan
    assert confirmations.take(second.token, "a") is other


def test_a_token_is_of_use_once(confirmations: Confirmations) -> None:
    token = confirmations.offer(a_plan(), "a").token
    confirmations.take(token, "a")
    assert reason_of(confirmations, token) == "unknown"


def test_a_token_ends_after_ten_minutes(confirmations: Confirmations, clock: Clock) -> None:
    offer = confirmations.offer(a_plan(), "a")
    assert offer.expires_at.timestamp() == clock.now + LIFE_SECONDS == clock.now + 600
    clock.now += LIFE_SECONDS + 0.1
    assert reason_of(confirmations, offer.token) == "late"
    assert reason_of(confirmations, offer.token) == "unknown"


def test_a_token_is_still_good_at_the_end_of_its_life(confirmations: Confirmations, clock: Clock) -> None:
    token = confirmations.offer(a_plan(), "a").token
    clock.now += LIFE_SECONDS
    assert confirmations.take(token, "a").target == "dev"


def test_another_caller_cannot_use_it_nor_use_it_up(confirmations: Confirmations) -> None:
    token = confirmations.offer(a_plan(), "a").token
    assert reason_of(confirmations, token, "b") == "caller"
    assert confirmations.take(token, "a").target == "dev"


@pytest.mark.parametrize("differing", [{"target": "prod"}, {"operation": "destroy"}])
def test_it_confirms_no_other_stack_and_no_other_operation(
    confirmations: Confirmations, differing: dict[str, str]
) -> None:
    token = confirmations.offer(a_plan(), "a").token
    assert reason_of(confirmations, token, **differing) == "other"


@pytest.mark.parametrize(
    "change", [lambda token: token[:-1] + ("0" if token[-1] != "0" else "1"), lambda _: "", str.upper]
)
def test_an_altered_token_confirms_nothing(confirmations: Confirmations, change: object) -> None:
    token = confirmations.offer(a_plan(), "a").token
    assert reason_of(confirmations, change(token)) in {"unknown", "caller"}  # type: ignore[operator]


def test_a_token_of_another_process_confirms_nothing(confirmations: Confirmations, clock: Clock) -> None:
    other = Confirmations(clock)
    assert reason_of(confirmations, other.offer(a_plan(), "a").token) == "unknown"


def test_what_destroys_needs_its_name_again(confirmations: Confirmations) -> None:
    token = confirmations.offer(a_plan(confirm_name="dev"), "a").token
    assert reason_of(confirmations, token) == "name"
    assert reason_of(confirmations, token, name="prod") == "name"
    assert confirmations.take(token, "a", name="dev").target == "dev"


def test_a_refused_plan_gets_no_token(confirmations: Confirmations) -> None:
    with pytest.raises(ConfirmationError, match="too dear") as refused:
        confirmations.offer(a_plan(refusals=("it is too dear",)), "a")
    assert refused.value.reason == "refused"
    assert isinstance(refused.value, UserError)


def test_plans_that_wait_are_bounded_and_the_oldest_is_dropped(confirmations: Confirmations) -> None:
    tokens = [confirmations.offer(a_plan(), "a").token for _ in range(MOST_PLANS + 1)]
    assert reason_of(confirmations, tokens[0]) == "unknown"
    assert confirmations.take(tokens[-1], "a").target == "dev"


def test_a_plan_that_was_altered_has_another_digest() -> None:
    assert a_plan().digest == a_plan().digest
    assert a_plan().digest != a_plan(price="0 -> 1 USD/h").digest


def test_an_operation_is_shown_as_its_command_and_named_as_its_tool() -> None:
    plan = a_plan(operation="weights_copy")
    assert plan.text().startswith("weights copy dev: 1 to create\n")
    assert plan.model_dump()["operation"] == "weights_copy"
    assert Outcome(operation="tpu_delete", target="dev", verdict="done").text() == "tpu delete dev: done\n"
