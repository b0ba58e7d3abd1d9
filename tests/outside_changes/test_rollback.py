"""Record of a rollback: in force as long as its revision has all traffic and no deploy has ended it."""

from typing import Any

import pytest

from bezel.outside_changes.declared import SERVICE as DECLARED
from bezel.outside_changes.declared import SWITCH, Entry, declared_in
from bezel.outside_changes.rollback import (
    ANNOTATION,
    Rollback,
    ended_text,
    in_force,
    kept_text,
    left_by,
    new_rollback,
    recorded_rollback,
)
from bezel.outside_changes.service_rules import service_changes

T, LATER = "2026-11-27T18:00:00Z", "2026-11-28T09:30:00Z"
SERVICE = "projects/p/locations/us-east4/services/llm"
ROLLBACK = Rollback("llm-1", T, ("llm-2",))
TEXT = f"llm-1 since {T} from llm-2"
LATEST = {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}
HELD = {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "tag": "newest"}


def pin(revision: str, percent: int = 100, **more: Any) -> dict[str, Any]:
    return {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION", "revision": revision, "percent": percent, **more}


def service(text: str, *traffic: dict[str, Any]) -> dict[str, Any]:
    return {"annotations": {ANNOTATION: text, "owner": "ml"}, "traffic": list(traffic)}


def test_the_record_is_read_as_it_was_written() -> None:
    assert ROLLBACK.text() == TEXT
    assert recorded_rollback(service(TEXT)) == ROLLBACK
    both = Rollback("llm-1", T, ("llm-2", "llm-3"))
    assert recorded_rollback(service(both.text())) == both
    assert both.sentence() == f"pinned to llm-1 since {T} by a rollback from llm-2 and llm-3"


@pytest.mark.parametrize(
    "text", ["", "llm-1", f"ended {T}", f"llm-1 since {T}", "llm-1 since yesterday from llm-2", f"{TEXT} ",
             f"x\n{TEXT}", f"LLM since {T} from llm-2", f"llm-1 since {T} from <b>"]
)  # fmt: skip
def test_another_text_is_no_record(text: str) -> None:
    assert recorded_rollback(service(text, pin("llm-1"))) is None
    assert in_force(service(text, pin("llm-1"))) is None


def test_what_rollbacks_have_left_is_remembered_over_deploys() -> None:
    assert left_by(service("")) == ()
    assert left_by(service(TEXT)) == ("llm-2",)
    ended = service(ended_text(service(TEXT)))
    assert left_by(ended) == ("llm-2",)
    second = new_rollback(ended, "llm-1", LATER, ["llm-3"])
    assert second.text() == f"llm-1 since {LATER} from llm-3, earlier from llm-2"
    assert recorded_rollback(service(second.text())) == second
    assert left_by(service(second.text())) == ("llm-3", "llm-2")
    # Whoever names one of them anew takes it for good.
    back = new_rollback(service(second.text()), "llm-2", LATER, ["llm-1"])
    assert left_by(service(back.text())) == ("llm-1", "llm-3")
    # A share of the traffic is not left by a move of all of it.
    assert Rollback("llm-1", T, ("llm-1", "llm-2")).revisions_left == ("llm-2",)


def test_the_record_keeps_which_declaration_has_ended_it() -> None:
    deployed = Rollback("llm-1", T, ("llm-2",), ("llm-3",), "0123456789abcdef")
    assert deployed.text() == f"llm-1 since {T} from llm-2, earlier from llm-3; deployed 0123456789abcdef"
    assert recorded_rollback(service(deployed.text())) == deployed
    assert new_rollback(service(deployed.text()), "llm-3", LATER, ["llm-1"]).deployed == ""


def test_a_switch_to_the_newest_revision_replaces_what_the_update_declared() -> None:
    """A switch to the newest revision takes the place of what the update declared."""
    inputs = {"project": "p", "location": "us-east4", "name": "llm", "traffics": [pin("llm-1")]}
    switch = Entry(SWITCH, "", {"service": SERVICE, "newest": True, "revision": "llm-2"}, {"ended": T})
    declared = declared_in([Entry(DECLARED, SERVICE, inputs, {}), switch])
    assert (declared.switched, declared.ended) == ({}, {SERVICE: T})
    assert service_changes(SERVICE, declared.services[SERVICE], service(TEXT, LATEST), ended=T) == []
    moved = service_changes(SERVICE, declared.services[SERVICE], service(TEXT, pin("llm-1")), ended=T)
    assert [change.kind for change in moved] == ["cost"]


def test_the_memory_of_rollbacks_is_bounded() -> None:
    present = service("")
    for number in range(2, 60):
        made = new_rollback(present, "llm-1", T, [f"llm-{number}"])
        present = service(made.text())
        assert recorded_rollback(present) == made
    assert len(left_by(present)) == 20


@pytest.mark.parametrize(
    ("traffic", "ended", "is_in_force"),
    [
        ([pin("llm-1")], "", True),
        ([pin(f"{SERVICE}/revisions/llm-1")], "", True),
        ([pin("llm-1"), HELD], "", True),
        ([pin("llm-1"), pin("llm-2", 0, tag="old")], "", True),
        ([pin("llm-1")], LATER, True),
        ([pin("llm-1")], T, False),
        ([pin("llm-2"), HELD], "", False),
        ([pin("llm-1", 50), pin("llm-2", 50)], "", False),
        ([pin("llm-1", 90), {**LATEST, "percent": 10}], "", False),
        ([LATEST], "", False),
        ([], "", False),
    ],
)
def test_a_rollback_is_in_force_while_its_revision_has_all_traffic(
    traffic: list[Any], ended: str, is_in_force: bool
) -> None:
    assert in_force(service(TEXT, *traffic), ended) == (ROLLBACK if is_in_force else None)


@pytest.mark.parametrize(
    ("text", "ended", "kept"),
    [
        (TEXT, f"ended {T}, from llm-2", TEXT),
        (f"ended {T}, from llm-2", f"ended {T}, from llm-2", f"ended {T}, from llm-2"),
        ("", "", ""),
        ("somebody's own", "", ""),
        (f"ended {T}", "", ""),
    ],
)
def test_a_deploy_ends_or_keeps_the_record(text: str, ended: str, kept: str) -> None:
    assert (ended_text(service(text)), kept_text(service(text))) == (ended, kept)
    assert (ended_text(None), kept_text(None)) == ("", "")


@pytest.mark.parametrize(
    ("live", "ended", "kinds"),
    [
        (service(TEXT, pin("llm-1")), "", ["rollback"]),
        (service(TEXT, pin("llm-1")), T, ["cost"]),
        (service("", pin("llm-1")), "", ["cost"]),
        (service(TEXT, pin("llm-1", 50), pin("llm-2", 50)), "", ["cost", "cost"]),
        (service(TEXT, pin("llm-1"), pin("llm-3", 0, tag="x")), "", ["rollback", "cost"]),
        (service(TEXT, LATEST), "", []),
    ],
)
def test_a_rollback_is_named_and_a_move_by_hand_is_not_one(live: dict[str, Any], ended: str, kinds: list[str]) -> None:
    changes = service_changes(SERVICE, {"traffics": [LATEST]}, live, ended=ended)
    assert [change.kind for change in changes] == kinds
    for change in changes:
        if change.kind == "rollback":
            line = f"cloud 100 % pinned to llm-1 since {T} by a rollback from llm-2"
            assert change.line() == (f"service llm: traffic: {line}, program 100 % to the newest revision (a rollback)")


def test_a_gated_rollout_s_own_declaration_does_not_hide_a_rollback() -> None:
    """Its service is declared with the traffic of before the move, which may be that of the rollback."""
    live = service(TEXT, pin("llm-1"), HELD)
    changes = service_changes(SERVICE, {"traffics": [pin("llm-1"), HELD]}, live, switched="llm-2")
    assert [change.kind for change in changes] == ["rollback"]
