"""How a new revision comes to its traffic: what is declared, what is moved, and what is tried again."""

from typing import Any

import pytest

from bezel.diagnosis.revision_traffic import (
    ATTEMPT,
    FINGERPRINT,
    FIRST,
    Target,
    attempt,
    declared_targets,
    fingerprint_of,
    has_all_traffic,
    is_gated,
    moved_to,
    shares,
)
from tests.support.components.fake_cloud_run import LATEST, TAGGED, description, pin

FAILED = {"type": "Ready", "state": "CONDITION_FAILED"}


def made_from(fingerprint: str) -> dict[str, Any]:
    return {"annotations": {FINGERPRINT: fingerprint}}


@pytest.mark.parametrize(
    ("service", "expected"),
    [
        (description(), {"chat-2": 100}),
        (description({"type": LATEST, "percent": 100}), {"chat-2": 100}),
        (description(pin("chat-1"), TAGGED), {"chat-1": 100}),
        (description(pin("chat-1", 90), {"type": LATEST, "percent": 10}), {"chat-1": 90, "chat-2": 10}),
        (description(pin("chat-2", 40), {"type": LATEST, "percent": 60}), {"chat-2": 100}),
        (description(ready=""), {}),
    ],
)
def test_traffic_is_reported_by_revision_whatever_the_targets_call_it(
    service: dict[str, Any], expected: dict[str, int]
) -> None:
    assert shares(service) == expected


@pytest.mark.parametrize("service", [None, description({"type": LATEST, "percent": 100, "tag": "newest"}, ready="")])
def test_as_long_as_nothing_serves_the_first_revision_that_is_ready_does(service: dict[str, Any] | None) -> None:
    assert declared_targets(service, "a") == FIRST


def test_what_serves_is_named_where_the_service_will_be_updated() -> None:
    service = description(pin("chat-1"), TAGGED, **made_from("a"))
    assert declared_targets(service, "b") == (Target("chat-1", 100), Target(tag="newest"))


def test_what_serves_is_named_where_it_was_not_before() -> None:
    """From a direct rollout, and where a run ended between the first revision and the move."""
    for target in ({"type": LATEST, "percent": 100}, {"type": LATEST, "percent": 100, "tag": "newest"}):
        assert declared_targets(description(target, **made_from("a")), "a") == (
            Target("chat-2", 100),
            Target(tag="newest"),
        )


def test_shares_by_hand_are_left_as_they_are_while_a_revision_is_made() -> None:
    service = description(pin("chat-1", 90), {"type": LATEST, "percent": 10}, **made_from("a"))
    assert declared_targets(service, "a") == (Target("chat-1", 90), Target("chat-2", 10), Target(tag="newest"))


@pytest.mark.parametrize("serving", ["chat-2", "chat-1"])
def test_nothing_is_declared_where_no_new_revision_gets_traffic(serving: str) -> None:
    assert declared_targets(description(pin(serving), TAGGED, **made_from("a")), "a") is None


def test_a_lost_tag_is_declared_again() -> None:
    assert declared_targets(description(pin("chat-2"), **made_from("a")), "a") == moved_to("chat-2")


def test_a_rollout_is_over_when_the_revision_has_all_traffic_by_name() -> None:
    assert has_all_traffic(description(pin("chat-2"), TAGGED), "chat-2")
    for traffic in (
        [pin("chat-1"), TAGGED],
        [pin("chat-2", 50), pin("chat-1", 50), TAGGED],
        [pin("chat-2")],
        [{"type": LATEST, "percent": 100, "tag": "newest"}],
    ):
        assert not has_all_traffic(description(*traffic), "chat-2")
    moved = description(*(target.as_json() for target in moved_to("chat-2")))
    assert has_all_traffic(moved, "chat-2")


def test_a_revision_that_failed_is_tried_again_as_another_one() -> None:
    again = {"template": {"annotations": {ATTEMPT: "chat-1"}}}
    assert attempt(description(created="chat-3", terminalCondition=FAILED)) == "chat-3"
    assert attempt(description(created="chat-3", terminalCondition=FAILED, **again)) == "chat-3"
    assert attempt(description(created="chat-3", ready="", terminalCondition=FAILED)) == "chat-3"
    # The one that worked keeps its mark: without it there would be yet another revision.
    assert attempt(description(**again)) == "chat-1"


def test_nothing_is_tried_again_that_did_not_fail() -> None:
    pending = {"type": "Ready", "state": "CONDITION_RECONCILING"}
    assert [attempt(None), attempt(description()), attempt(description(terminalCondition=FAILED))] == ["", "", ""]
    assert attempt(description(created="chat-3", terminalCondition=pending)) == ""


def test_a_fingerprint_changes_with_any_input_and_with_nothing_else() -> None:
    class Block:
        def __init__(self, **fields: object) -> None:
            vars(self).update(fields)

    one = fingerprint_of({"labels": {"a": "1", "b": "2"}, "template": Block(args=["x"], inner=Block(port=1))})
    assert one == fingerprint_of({"template": Block(inner=Block(port=1), args=["x"]), "labels": {"b": "2", "a": "1"}})
    assert one != fingerprint_of({"labels": {"a": "1", "b": "2"}, "template": Block(args=["x"], inner=Block(port=2))})
    assert len(one) == 16


def test_a_gated_service_is_known_by_its_mark() -> None:
    assert is_gated(description(**made_from("a")))
    assert not is_gated(description())
