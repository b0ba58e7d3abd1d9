"""What is read of a run's events: each change once, the packs' verdicts, and no secret."""

import json

import pytest

from bezel.engine.events.reader import events_of, read_events
from bezel.engine.run.engine import EngineRun
from bezel.engine.run.process import End
from tests.support.gitops.events import (
    BUCKET,
    OBJECT,
    SECRET,
    analyzed_event,
    begin,
    diagnostic_event,
    end,
    state,
    step,
    summary,
    urn,
    violation,
)

DIFF = {"location": {"diffKind": "update-replace"}, "labels.n": {"diffKind": "update"}}


def test_a_resource_is_one_change_however_many_steps_it_takes():
    """A resource is one change however many steps the engine takes for it."""
    old, new = {"location": "US"}, {"location": "EU"}
    steps = [("create-replacement", old, new), ("replace", old, new), ("delete-replaced", old, None)]
    for order in (steps, steps[::-1]):
        events = [event for op, *values in order for event in step(op, BUCKET, "data", *values, detailedDiff=DIFF)]
        (change,) = events_of(events).changes
        assert (change.op, change.properties, change.old, change.new) == ("replace", ("labels.n", "location"), old, new)


@pytest.mark.parametrize(
    ("op", "shown"), [("create", "create"), ("update", "update"), ("delete", "delete"), ("import", "import")]
)
def test_each_kind_of_change_keeps_its_name(op, shown):
    (change,) = events_of(
        step(op, BUCKET, "data", {} if op != "create" else None, {} if op != "delete" else None)
    ).changes
    assert (change.op, change.name, change.urn) == (shown, "data", urn(BUCKET, "data"))


def test_a_component_is_told_from_a_resource_of_the_cloud():
    component = begin("create", "bezel:project:EnabledApis", "apis", None, state({}))
    resource = begin("create", BUCKET, "data", None, state({}, custom=True))
    assert [change.custom for change in events_of([component, resource]).changes] == [False, True]


@pytest.mark.parametrize("op", ["same", "read", "read-discard", "refresh"])
def test_what_changes_nothing_is_no_change(op):
    assert events_of(step(op, BUCKET, "data", {}, {})).changes == ()


def test_the_old_one_of_an_earlier_replacement_is_a_change_of_its_own():
    leftover = begin("delete", BUCKET, "data", state({"n": 1}, delete=True))
    result = events_of([*step("same", BUCKET, "data", {"n": 2}, {"n": 2}), leftover])
    assert [change.op for change in result.changes] == ["delete"]
    assert result.after[urn(BUCKET, "data")].inputs == {"n": 2}
    assert events_of(step("delete", BUCKET, "data", {"n": 1})).after == {}


def test_no_secret_is_read_from_the_log():
    inputs = {"content": SECRET, "parts": [{"key": SECRET}]}
    result = events_of(step("update", OBJECT, "note", inputs, inputs))
    assert result.changes[0].new == {"content": "[secret]", "parts": [{"key": "[secret]"}]}
    assert "ciphertext" not in repr(result)


def test_a_refresh_shows_what_differs_in_the_cloud_and_what_is_gone():
    labels = ({"labels": {"n": "1"}}, {"labels": {"n": "9"}})
    differs = end("refresh", BUCKET, "data", state({}, labels[0]), state({}, labels[1]), diffs=["labels"])
    gone = end("refresh", OBJECT, "note", state({}), None)
    equal = end("refresh", OBJECT, "other", state({}), state({}))
    begun = [begin("refresh", BUCKET, "data"), begin("refresh", OBJECT, "note"), begin("refresh", OBJECT, "other")]
    result = events_of([*begun, differs, gone, equal])
    assert [(change.op, change.name) for change in result.refreshed] == [("update", "data"), ("delete", "note")]
    assert (result.refreshed[0].old_outputs, result.refreshed[0].new_outputs) == labels
    assert result.changes == ()


@pytest.mark.parametrize(
    ("level", "message", "refuses"),
    [
        ("mandatory", "bad bucket", True),
        ("remediate", "bad bucket", True),
        ("advisory", "bad bucket", False),
        ("advisory", "can't run policy 'p' from policy pack 'mine@v0.1.0' during preview: string value at .x", True),
    ],
)
def test_a_policy_that_could_not_be_evaluated_refuses(level, message, refuses):
    """A policy that could not be evaluated refuses as a mandatory one does."""
    (violation_,) = events_of([violation(level, message)]).violations
    assert (violation_.refuses, violation_.resource, violation_.pack) == (refuses, "data", "mine")


@pytest.mark.parametrize(
    ("events", "code", "text", "unable"),
    [
        ([analyzed_event("a"), analyzed_event("b"), summary()], 0, "", False),
        ([violation("mandatory", "bad"), analyzed_event("a"), analyzed_event("b"), summary()], 1, "", False),
        ([analyzed_event("a"), summary()], 0, "", True),
        ([diagnostic_event("error", "failed to run policy: error reading from server: EOF"), summary()], 1, "", True),
        ([], 1, 'error: policy pack "/p" failed to start: exit status 1', True),
        ([], 1, "error: failed to load Pulumi policy project located at /p", True),
        ([diagnostic_event("error", "the program failed"), summary()], 1, "", False),
        ([diagnostic_event("error", "failed to run policy: context canceled"), summary()], 1, "", False),
        ([diagnostic_event("error", "failed to run policy: context canceled"), summary()], 0, "", True),
        ([], 1, "error: no stack named 'dev' found", False),
    ],
)
def test_a_pack_passes_only_if_it_evaluated_the_whole_stack(events, code, text, unable):
    run = EngineRun(End(code, interrupted=False), events_of(events), packs=2, text=text)
    assert bool(run.packs_unable) == unable


def test_the_errors_of_a_failed_run_are_reported_once():
    """The errors of a failed run are told once and a run out of time says so."""
    events = [
        diagnostic_event("error", "boom"),
        diagnostic_event("error", "boom"),
        diagnostic_event("warning", "careful"),
        diagnostic_event("debug", "noise"),
    ]
    run = EngineRun(End(1, interrupted=False, timed_out=True), events_of(events), packs=0)
    assert run.errors == ["boom", "the time limit was reached, so the engine was interrupted"]
    assert [item.severity for item in run.events.diagnostics] == ["error", "error", "warning"]
    assert EngineRun(End(1, interrupted=False), events_of([]), packs=0, text="no stack").errors == ["no stack"]


def test_a_log_that_is_cut_or_missing_gives_what_there_is(tmp_path):
    log = tmp_path / "events.jsonl"
    lines = [json.dumps(event) for event in step("create", BUCKET, "data", None, {})]
    log.write_text("\n".join([*lines, '{"resourcePreEv']))
    assert [change.name for change in read_events(log).changes] == ["data"]
    assert not read_events(log).complete
    assert read_events(tmp_path / "none").changes == ()
