"""The traffic moves to the revision that was checked, once, and to no other one; a move by hand is seen."""

from collections.abc import Iterator
from typing import Any

import dill
import pytest
from pulumi.output import Unknown

from bezel_components.providers.traffic_switch import TrafficSwitchError, TrafficSwitchProvider
from bezel_components.traffic_switch import TrafficSwitch, TrafficSwitchArgs
from tests.support.components.fake_cloud_run import LATEST, SERVICE, TAGGED, FakeRun, description, pin, running
from tests.support.components.fake_engine import declare

PROPS = {"service": SERVICE, "revision": f"{SERVICE}/revisions/chat-2", "deadline_seconds": 20.0}
MOVED = [pin("chat-2"), TAGGED]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeRun]:
    with running(monkeypatch) as fake:
        fake.service = description(pin("chat-1"), TAGGED)
        yield fake


def move(**more: Any) -> dict[str, Any]:
    return dict(TrafficSwitchProvider().create({**PROPS, **more}).outs)


def test_the_checked_revision_gets_all_traffic_by_name_and_the_tag_stays(run: FakeRun) -> None:
    assert move()["serving"] == {"chat-2": 100}
    assert [body["traffic"] for body in run.bodies] == [MOVED]


def test_a_move_records_which_rollback_it_has_ended(run: FakeRun) -> None:
    assert "ended" not in move()
    record = {"bezel-rollback": "chat-1 since 2026-11-27T18:00:00Z from chat-2"}
    run.service = description(pin("chat-1"), TAGGED, annotations=record)
    assert move(ended="2026-01-01T00:00:00Z")["ended"] == "2026-11-27T18:00:00Z"
    run.service = description(pin("chat-1"), TAGGED)
    assert "ended" not in move(ended="2026-01-01T00:00:00Z")


def test_after_a_rollback_the_newest_revision_gets_the_traffic(
    run: FakeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a rollback the newest revision gets the traffic without its name."""
    record = {"bezel-rollback": "chat-1 since 2026-11-27T18:00:00Z from chat-2"}
    direct = {**PROPS, "newest": True}
    run.service = description(pin("chat-1"), annotations=record)
    assert TrafficSwitchProvider().diff("id", direct, direct).changes
    assert "100 % of the traffic goes to chat-1" in capsys.readouterr().err
    outs = move(newest=True)
    assert [body["traffic"] for body in run.bodies] == [[{"type": LATEST, "percent": 100}]]
    assert (outs["serving"], outs["ended"]) == ({"chat-2": 100}, "2026-11-27T18:00:00Z")
    assert not TrafficSwitchProvider().diff("id", direct, direct).changes
    assert TrafficSwitchProvider().diff("id", direct, dict(PROPS)).changes, "another rollout"
    move(newest=True)
    assert len(run.bodies) == 1


def test_what_was_moved_already_is_not_moved_again(run: FakeRun) -> None:
    """As after a run that was killed between the move and its end."""
    first, second = move(), TrafficSwitchProvider().update("id", {}, PROPS).outs
    assert first == second
    assert len(run.bodies) == 1


@pytest.mark.slow
def test_a_move_waits_for_the_platform(run: FakeRun) -> None:
    run.looks = 1
    assert move()["serving"] == {"chat-2": 100}


@pytest.mark.slow
def test_who_changes_the_service_at_the_same_time_is_not_overwritten(run: FakeRun) -> None:
    run.changes_between = 1
    assert move()["serving"] == {"chat-2": 100}
    assert [body["etag"] for body in run.bodies] == ['"0x"']


@pytest.mark.slow
def test_a_move_whose_answer_got_lost_is_found_to_be_made(run: FakeRun) -> None:
    run.lost = 1
    assert move()["serving"] == {"chat-2": 100}
    assert len(run.bodies) == 1


@pytest.mark.parametrize(
    ("service", "why"),
    [
        (description(pin("chat-1"), TAGGED, created="chat-3"), "chat-3 is newer"),
        (description(pin("chat-1"), TAGGED, ready="chat-1"), "it is not ready"),
    ],
)
def test_no_other_revision_than_the_checked_one_gets_traffic(run: FakeRun, service: dict[str, Any], why: str) -> None:
    run.service = service
    with pytest.raises(TrafficSwitchError, match=why) as raised:
        move()
    assert "\n   100 % of the traffic goes to chat-1.\n   Repair: run `pulumi up --refresh`" in str(raised.value)
    assert run.bodies == []


def test_a_move_that_fails_says_what_serves(run: FakeRun) -> None:
    run.operation_error = "Internal error encountered."
    with pytest.raises(TrafficSwitchError, match="Internal error encountered") as raised:
        move()
    assert "the previous revision keeps serving" in str(raised.value)


def test_a_move_that_never_ends_is_given_up(run: FakeRun) -> None:
    run.looks = 1000
    with pytest.raises(TrafficSwitchError, match="traffic to chat-2 = not moved in time"):
        move(deadline_seconds=0.0)


def test_traffic_that_somebody_moved_is_a_difference_in_a_preview(
    run: FakeRun, capsys: pytest.CaptureFixture[str]
) -> None:
    assert TrafficSwitchProvider().diff("id", dict(PROPS), dict(PROPS)).changes
    assert "100 % of the traffic goes to chat-1, not to chat-2 alone" in capsys.readouterr().err
    run.service = description(*MOVED)
    assert not TrafficSwitchProvider().diff("id", dict(PROPS), dict(PROPS)).changes


@pytest.mark.parametrize("revision", [Unknown(), f"{SERVICE}/revisions/chat-3"])
def test_another_revision_is_a_difference_without_a_look(run: FakeRun, revision: object) -> None:
    assert TrafficSwitchProvider().diff("id", dict(PROPS), {**PROPS, "revision": revision}).changes
    assert run.server.calls == []


def test_another_template_is_a_difference_before_there_is_another_revision(run: FakeRun) -> None:
    with_template = {**PROPS, "template": {"timeout": "1s"}}
    provider, run.service = TrafficSwitchProvider(), description(*MOVED)
    assert provider.diff("t", with_template, {**PROPS, "template": {"timeout": "2s"}}).changes
    assert run.server.calls == []
    assert not provider.diff("t", with_template, with_template).changes
    assert not provider.diff("t", PROPS, with_template).changes, "an older state has no template"


def test_a_preview_that_cannot_look_says_so_and_goes_on(run: FakeRun, capsys: pytest.CaptureFixture[str]) -> None:
    run.refusal = 403
    assert not TrafficSwitchProvider().diff("id", dict(PROPS), dict(PROPS)).changes
    assert "it is unknown which revision serves" in capsys.readouterr().err
    for act in (lambda: TrafficSwitchProvider().read("id", dict(PROPS)), move):
        with pytest.raises(TrafficSwitchError, match=r"roles/run\."):
            act()


def test_a_refresh_sees_where_the_traffic_goes_and_that_a_service_is_gone(run: FakeRun) -> None:
    run.service = description(pin("chat-1", 30), {"type": LATEST, "percent": 70})
    assert TrafficSwitchProvider().read("id", dict(PROPS)).outs["serving"] == {"chat-1": 30, "chat-2": 70}
    run.service = None
    assert TrafficSwitchProvider().read("id", dict(PROPS)).id == ""


def test_a_destroy_asks_nobody(run: FakeRun) -> None:
    TrafficSwitchProvider().delete("id", dict(PROPS))
    assert run.server.calls == []


def test_the_provider_is_pickled_by_reference_and_holds_nothing() -> None:
    pickled = dill.dumps(TrafficSwitchProvider(), recurse=True)
    assert b"bezel_components.providers.traffic_switch" in pickled
    assert len(pickled) < 200


def test_the_resource_says_what_it_moves() -> None:
    args = TrafficSwitchArgs(service=SERVICE, revision=str(PROPS["revision"]))
    declared = declare(lambda: TrafficSwitch("traffic", args)).one("TrafficSwitch")
    assert declared.type == "pulumi-python:dynamic/components:TrafficSwitch"
    assert (declared.inputs["service"], declared.inputs["revision"]) == (SERVICE, PROPS["revision"])
