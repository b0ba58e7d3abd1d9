"""Rollback at the wire: which revision gets the traffic, what its plan says, and what faults leave."""

import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bezel.engine.outcomes import LockedError
from bezel.operations.changes.basis import ChangedError
from bezel.operations.changes.confirmations import ConfirmationError, Confirmations
from bezel.operations.changes.stack_lock import CancelledError
from bezel.operations.rollback.rollback import RollbackArguments, plan_rollback
from bezel.operations.status.status import StatusArguments, status
from bezel.outside_changes.rollback import ANNOTATION
from bezel_base.errors import UserError
from tests.support.operations.deployed import NOW, SERVICE, service_resource, state_of
from tests.support.operations.rolled_stack import (
    DIRECT,
    IMAGE,
    NEWEST,
    STACK,
    RolledStack,
    error,
    name_of,
    pinned_target,
    rolled_stack,
)

AT = "2026-09-21T14:13:20Z"
TAKES = "40s to 1m30s, 0.0116 to 0.0262 USD an instance (estimate of its plan)"


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[RolledStack]:
    with rolled_stack(tmp_path) as made:
        yield made


def test_the_last_revision_that_passed_gets_all_traffic(stack: RolledStack) -> None:
    plan = stack.plan()
    assert stack.bodies == []
    assert plan.summary == (
        "move the traffic from llm-00003-abc to llm-00002-abc, the last revision that passed its check"
    )
    assert (plan.confirm_name, plan.refusals, plan.is_empty) == (None, (), False)
    outcome = stack.apply(plan)
    assert outcome.verdict == "done"
    (body,) = stack.bodies
    assert body["traffic"] == [pinned_target(2)]
    assert body["annotations"] == {ANNOTATION: f"llm-00002-abc since {AT} from llm-00003-abc"}
    assert body["etag"] == '"1"'


def test_status_tells_a_rollback_and_no_outside_change(stack: RolledStack) -> None:
    assert stack.status().rollback is None
    stack.apply(stack.plan())
    stack_status = stack.status()
    assert stack_status.rollback is not None
    assert (stack_status.rollback.revision, stack_status.rollback.since) == ("llm-00002-abc", AT)
    assert [each for each in stack_status.outside if each.setting == "traffic"] == []
    assert stack_status.rollback.line() == (
        f"pinned to llm-00002-abc since {AT}, from llm-00003-abc; the next deploy moves the traffic"
    )


@pytest.mark.slow
def test_a_list_of_stacks_names_the_rollback_of_one(stack: RolledStack) -> None:
    stack.cloud.keep("other", state_of(service_resource()))
    stack.apply(stack.plan())
    text = status(stack.context(), StatusArguments()).text()
    assert f"dev: rolled back: pinned to llm-00002-abc since {AT}" in text


def test_status_tells_a_move_by_hand_as_an_outside_change(stack: RolledStack) -> None:
    stack.service["traffic"] = [pinned_target(2)]
    stack_status = stack.status()
    assert stack_status.rollback is None
    assert [each.setting for each in stack_status.outside if each.setting == "traffic"] == ["traffic"]


# What the service is like, what the caller names, and the revision that gets the traffic or what is said.
CHOICES: list[tuple[str, Any, int | None, int | str]] = [
    ("the newest serves", lambda _stack: None, None, 2),
    ("one passed, one never became ready", lambda stack: stack.revise(3, 2), None, 1),
    ("no check of the last one passed", lambda stack: stack.write_passed(1, 3), None, 1),
    ("the newest failed its check and serves", lambda stack: stack.write_passed(1, 2), None, 2),
    ("the last one was deleted", lambda stack: stack.revise(3, gone=(2,)), None, 1),
    ("the traffic is split",
     lambda stack: stack.service.update(traffic=[pinned_target(number, 50) for number in (3, 1)]), None, 2),
    ("a named one", lambda _stack: None, 1, 1),
    ("a named one of no known check", lambda stack: stack.write_passed(3), 2, 2),
    ("only one revision ever", lambda stack: (stack.revise(1), stack.write_passed(1)), None, "has no earlier revision"),
    ("no check is known", lambda stack: stack.write_passed(), None, "no earlier revision is known to have passed"),
    ("all earlier ones were deleted", lambda stack: stack.revise(3, gone=(1, 2)), None, "deleted since: llm-00001-abc"),
    ("no revision was ever ready", lambda stack: stack.revise(1, 1), None, "no revision serves"),
    ("a named one that does not exist", lambda _stack: None, 7, "the service has no such revision"),
    ("a named one that never became ready", lambda stack: stack.revise(3, 2), 2, "it never became ready"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "to", "expected"), [row[1:] for row in CHOICES], ids=[row[0] for row in CHOICES])
def test_the_choice_follows_from_what_is_known(
    stack: RolledStack, change: Any, to: int | None, expected: int | str
) -> None:
    change(stack)
    if isinstance(expected, str):
        with pytest.raises(UserError, match=expected):
            stack.plan(to)
        return
    plan = stack.plan(to)
    assert stack.apply(plan).verdict == "done"
    assert stack.bodies[-1]["traffic"] == [pinned_target(expected)]


SERVES = "nothing to roll back, llm-00002-abc serves"
NOTHING: list[tuple[str, Any, int | None, str]] = [
    ("the newest failed its check and has no traffic",
     lambda stack: stack.service.update(traffic=[pinned_target(2), NEWEST]), None, SERVES),
    ("the newest did not start", lambda stack: stack.revise(3, 3), None, SERVES),
    ("a named one that serves", lambda _stack: None, 3, "llm-00003-abc has all traffic already"),
    ("rolled back already", lambda stack: stack.apply(stack.plan()), None,
     f"the traffic is pinned to llm-00002-abc since {AT} by a rollback from llm-00003-abc already"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("change", "to", "text"), [row[1:] for row in NOTHING], ids=[row[0] for row in NOTHING])
def test_where_there_is_nothing_to_do_nothing_is_done(
    stack: RolledStack, change: Any, to: int | None, text: str
) -> None:
    change(stack)
    done = len(stack.bodies)
    plan = stack.plan(to)
    assert plan.is_empty
    assert text in plan.summary
    assert stack.apply(plan).verdict == "unchanged"
    assert len(stack.bodies) == done


@pytest.mark.slow
def test_a_second_rollback_goes_further_only_by_name(stack: RolledStack) -> None:
    stack.apply(stack.plan())
    assert stack.plan().is_empty
    plan = stack.plan(1)
    assert any("this takes its place" in text for text in plan.warnings)
    assert stack.apply(plan).verdict == "done"
    rollback = stack.status().rollback
    assert rollback is not None
    assert (rollback.revision, rollback.origin) == ("llm-00001-abc", ("llm-00002-abc",))


def test_what_an_earlier_rollback_left_is_passed_over(stack: RolledStack) -> None:
    """The third is bad, the fourth too: the third passed its check, and is not what callers are sent back to."""
    stack.apply(stack.plan())
    before = dict(stack.service["annotations"])
    stack.revise(4)
    stack.write_passed(1, 2, 3, 4)
    stack.service["annotations"] = before
    plan = stack.plan()
    assert "to llm-00002-abc, the last" in plan.summary
    assert "passed over, as an earlier rollback has left them: llm-00003-abc" in plan.warnings
    stack.write_passed(3, 4)
    with pytest.raises(UserError, match="left by an earlier rollback: llm-00003-abc"):
        stack.plan()
    assert stack.apply(stack.plan(3)).verdict == "done"


def test_tags_keep_their_addresses(stack: RolledStack) -> None:
    newest = {"type": DIRECT[0]["type"], "percent": 40, "tag": "newest"}
    stack.service["traffic"] = [pinned_target(3, 60, tag="b"), newest, pinned_target(1, 0, tag="old")]
    stack.apply(stack.plan())
    kinds = [(t.get("revision"), t.get("percent"), t.get("tag")) for t in stack.bodies[0]["traffic"]]
    assert kinds == [(name_of(2), 100, None), (name_of(3), None, "b"), (None, None, "newest"),
                     (name_of(1), None, "old")]  # fmt: skip


@pytest.mark.slow
def test_a_rollback_that_a_gated_rollout_ended_is_in_force_no_more(stack: RolledStack) -> None:
    stack.apply(stack.plan())
    stack.write_passed(1, 2, 3, ended=AT)
    assert stack.status().rollback is None
    # Somebody moved it to the same revision again, by hand.
    assert [each.setting for each in stack.status().outside if each.setting == "traffic"] == ["traffic"]


@pytest.mark.parametrize(
    ("instances", "text"),
    [
        ({name_of(2): 1, name_of(3): 1}, "llm-00002-abc runs 1 instance, by Cloud Monitoring a moment ago: no start"),
        ({name_of(3): 1}, f"llm-00002-abc must start, it has no instance: the first requests wait, {TAKES}"),
        (None, "whether llm-00002-abc must start is unknown (Cloud Monitoring"),
    ],
)  # fmt: skip
def test_a_plan_says_whether_the_revision_must_start(
    stack: RolledStack, instances: dict[str, int] | None, text: str
) -> None:
    stack.instances = instances
    assert stack.plan().notes[0].startswith(text)


def test_an_unrecorded_start_is_unknown_and_not_free(stack: RolledStack) -> None:
    stack.write_passed(3)
    stack.instances = {}
    assert "for an unknown time, at an unknown price" in stack.plan(2).notes[0]


def test_the_price_is_that_of_the_revision(stack: RolledStack) -> None:
    stack.revision(2)["scaling"] = {"minInstanceCount": 2, "maxInstanceCount": 2}
    plan = stack.plan()
    assert plan.price_before is not None
    assert plan.price_after is not None
    assert plan.price_before.usd_per_hour_idle == 0
    assert plan.price_after.usd_per_hour == 2 * (plan.price_before.usd_per_hour or 0)
    assert plan.price_after.usd_per_hour_idle == plan.price_after.usd_per_hour
    assert any("it keeps 2 instances at least" in note for note in plan.notes)


def needing(stack: RolledStack) -> None:
    """Let the revision need one of everything."""
    container = stack.revision(2)["containers"][0]
    container |= {
        "image": IMAGE,
        "args": ["--model", "/models/gemma", "--served-model-name=gemma"],
        "env": [{"name": "HF_TOKEN", "valueSource": {"secretKeyRef": {"secret": "hf", "version": "3"}}}],
        "volumeMounts": [{"name": "models", "mountPath": "/models"}],
    }
    stack.revision(2).update(
        volumes=[{"name": "models", "gcs": {"bucket": "acme-models"}}],
        serviceAccount="llm@acme.iam.gserviceaccount.com",
    )
    repository = "/ARTIFACT_REGISTRY/projects/acme/locations/us-east4/repositories/images"
    stack.present = {
        repository: {"mode": "STANDARD_REPOSITORY"},
        f"{repository}/dockerImages/vllm@sha256:{'a' * 64}": {},
        "/SECRET_MANAGER/projects/acme/secrets/hf/versions/3": {"state": "ENABLED"},
        "/STORAGE/b/acme-models/o": {"items": [{"name": "gemma/config.json"}]},
        "/IAM_BETA/projects/acme/serviceAccounts/llm@acme.iam.gserviceaccount.com": {},
    }


PARTS = ("dockerImages", "/repositories/images", "/versions/3", "/b/acme-models/o", "serviceAccounts")


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_what_is_gone_refuses_a_rollback(stack: RolledStack, part: str) -> None:
    needing(stack)
    assert stack.plan().refusals == ()
    stack.present = {path: answer for path, answer in stack.present.items() if part not in path}
    plan = stack.plan()
    assert plan.refusals[0].startswith("llm-00002-abc cannot start: ")
    assert "does not exist any more" in plan.refusals[0]
    with pytest.raises(ConfirmationError):
        Confirmations().offer(plan, "a")


@pytest.mark.slow
@pytest.mark.parametrize("part", PARTS)
def test_what_may_not_be_read_is_not_judged(stack: RolledStack, part: str) -> None:
    needing(stack)
    stack.present = {path: error(403) if part in path else answer for path, answer in stack.present.items()}
    plan = stack.plan()
    assert plan.refusals == ()
    assert any("not judged, the fault of this test" in text for text in plan.warnings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "answer", "text"),
    [
        ("/SECRET_MANAGER/projects/acme/secrets/hf/versions/3", {"state": "DESTROYED"}, "is destroyed"),
        ("/SECRET_MANAGER/projects/acme/secrets/hf/versions/3", {"state": "DISABLED"}, "is disabled"),
        ("/STORAGE/b/acme-models/o", {}, "the folder is empty"),
        ("/IAM_BETA/projects/acme/serviceAccounts/llm@acme.iam.gserviceaccount.com", {"disabled": True}, "is disabled"),
    ],
)
def test_what_is_of_no_use_refuses_a_rollback(stack: RolledStack, path: str, answer: Any, text: str) -> None:
    needing(stack)
    stack.present[path] = answer
    assert text in stack.plan().refusals[0]


@pytest.mark.slow
def test_an_image_that_is_pulled_again_is_not_judged(stack: RolledStack) -> None:
    needing(stack)
    repository = "/ARTIFACT_REGISTRY/projects/acme/locations/us-east4/repositories/images"
    stack.present = {path: each for path, each in stack.present.items() if "dockerImages" not in path}
    stack.present[repository] = {"mode": "REMOTE_REPOSITORY"}
    plan = stack.plan()
    assert plan.refusals == ()
    assert any("pulls it from upstream again" in text for text in plan.warnings)


def test_settings_that_differ_are_named_without_values_of_variables(stack: RolledStack) -> None:
    for number, value in ((2, "hush"), (3, "hush-hush")):
        container = {**stack.revision(number)["containers"][0], "args": [f"--max-num-seqs={number}"]}
        stack.revision(number)["containers"] = [{**container, "env": [{"name": "KEY", "value": value}]}]
    text = stack.plan().text()
    assert "--max-num-seqs=3 serves, --max-num-seqs=2 after the rollback" in text
    assert "env[KEY]: has another value" in text
    assert "hush" not in text
    assert "(IAM)" in text


def test_another_model_is_a_warning_for_callers(stack: RolledStack) -> None:
    assert not any("another model" in text for text in stack.plan().warnings)
    stack.write_passed(3)
    stack.revision(2)["containers"][0]["args"] = ["--served-model-name", "older"]
    warning = "callers have to name another model: older in place of gemma, which answers 404 then"
    assert warning in stack.plan(2).warnings
    del stack.revision(2)["containers"][0]["args"]
    assert any("another model is not judged" in text for text in stack.plan(2).warnings)


# What the PATCHes meet, the verdict, and whether the traffic is at the earlier revision then.
FAULTS: list[tuple[list[int | str], str, bool]] = [
    ([409], "done", True),
    (["changed", 409], "done", True),
    (["lost"], "done", True),
    ([503], "done", True),
    ([429], "done", True),
    ([403], "failed", False),
    ([400], "failed", False),
    ([409] * 5, "failed", False),
]


@pytest.mark.wide_except("faults0-*", "faults3-*", "faults6-*")
@pytest.mark.slow
@pytest.mark.parametrize(("faults", "verdict", "is_moved"), FAULTS)
def test_a_fault_leaves_the_old_traffic_or_the_new(
    stack: RolledStack, faults: list[int | str], verdict: str, is_moved: bool
) -> None:
    plan = stack.plan()
    stack.faults = list(faults)
    outcome = stack.apply(plan)
    assert outcome.verdict == verdict, outcome
    assert stack.service["traffic"] == ([pinned_target(2)] if is_moved else DIRECT)
    assert (ANNOTATION in (stack.service.get("annotations") or {})) is is_moved
    if faults == [403]:
        assert "roles/run.developer" in outcome.problems[0]
    # Once more it does what was left, and no more.
    stack.faults = []
    again = stack.plan()
    assert again.is_empty is is_moved
    assert stack.apply(again).verdict == ("unchanged" if is_moved else "done")
    assert stack.service["traffic"] == [pinned_target(2)]


@pytest.mark.slow
def test_a_newer_revision_ends_a_planned_rollback(stack: RolledStack) -> None:
    plan = stack.plan()
    stack.faults = ["newer"]
    with pytest.raises(ChangedError, match="the newest revision"):
        stack.apply(plan)
    assert stack.bodies == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda stack: stack.service.update(traffic=[pinned_target(1)]), "where the traffic goes"),
        (lambda stack: stack.write_passed(1, 3), "the revisions that passed their check"),
        (lambda stack: stack.service.update(uid="another"), "the service"),
    ],
)
def test_a_changed_service_ends_a_planned_rollback(stack: RolledStack, change: Any, text: str) -> None:
    plan = stack.plan()
    change(stack)
    with pytest.raises(ChangedError, match=text):
        stack.apply(plan)
    assert stack.bodies == []


def test_an_engine_on_the_stack_is_waited_for(stack: RolledStack) -> None:
    plan = stack.plan()
    lock = stack.cloud.folder / f"state/.pulumi/locks/organization/bezel/{STACK}/other.json"
    lock.parent.mkdir(parents=True)
    lock.write_text('{"pid": 1, "username": "ada", "hostname": "elsewhere", "timestamp": "2026-11-24T00:00:00Z"}')
    with pytest.raises(LockedError, match="process 1 on elsewhere"):
        stack.apply(plan)
    assert stack.bodies == []
    lock.unlink()
    assert stack.apply(plan).verdict == "done"


def test_a_caller_who_gives_up_changes_nothing(stack: RolledStack) -> None:
    plan, cancelled = stack.plan(), threading.Event()
    cancelled.set()
    with pytest.raises(CancelledError):
        stack.apply(plan, cancelled=cancelled)
    assert stack.bodies == []


def test_an_interrupted_deploy_is_no_obstacle_and_is_named(stack: RolledStack) -> None:
    file = stack.cloud.folder / f"state/.pulumi/stacks/bezel/{STACK}.json"
    state = json.loads(file.read_text())
    state["checkpoint"]["latest"]["pending_operations"] = [{"type": "updating"}]
    file.write_text(json.dumps(state))
    plan = stack.plan()
    assert any("bezel recover dev" in text for text in plan.warnings)
    assert stack.apply(plan).verdict == "done"


def test_a_state_of_before_names_the_last_check_alone(stack: RolledStack) -> None:
    outputs = {"revision": f"{SERVICE}/revisions/{name_of(2)}", "verdict": {"ok": True}, "served_model": "gemma"}
    entry = stack.entry("pulumi-python:dynamic/smoke:HealthCheck", outputs)
    stack.cloud.keep(STACK, state_of(service_resource(), entry, model="gemma"))
    assert "to llm-00002-abc" in stack.plan().summary


def test_leases_have_no_revisions_and_are_refused(stack: RolledStack) -> None:
    gateway = {**service_resource(), "inputs": {"location": "us-east4", "name": "llm", "template": {}}}
    stack.cloud.keep(STACK, state_of(gateway))
    with pytest.raises(UserError, match="it leases machines, which have no revisions") as raised:
        stack.plan()
    assert "`bezel deploy dev`" in str(raised.value)
    stack.cloud.keep(STACK, state_of())
    with pytest.raises(UserError, match="it has no service"):
        stack.plan()


def test_a_schedule_of_instances_is_named(stack: RolledStack) -> None:
    stack.write_passed(1, 2, 3, others=(stack.entry("pulumi-python:dynamic/components:ScheduledMinimum", {}),))
    assert any("its schedule of minimum instances continues" in note for note in stack.plan().notes)


@pytest.mark.parametrize("to", ["", "UPPER", "../services/other", "a" * 64, "x y"])
def test_a_malformed_revision_is_refused(stack: RolledStack, to: str) -> None:
    with pytest.raises(ValueError, match="to"):
        plan_rollback(stack.context(), RollbackArguments(stack=STACK, to=to))


def test_the_time_of_the_rollback_is_the_platform_s(stack: RolledStack) -> None:
    stack.apply(stack.plan())
    rollback = stack.status().rollback
    assert rollback is not None
    assert rollback.since == AT
    assert int(NOW) == 1_790_000_000
