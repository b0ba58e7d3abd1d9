"""Drift: what the program would change, with its cause; a failed reading is unknown, and never `no drift`."""

import json
from contextlib import contextmanager, nullcontext
from dataclasses import replace

import pytest

from bezel.engine.events.values import Change, Diagnostic, Events
from bezel.engine.outcomes import Exit
from bezel.engine.run.engine import EngineRun
from bezel.engine.run.process import End
from bezel.engine.run.stack import StackEngine
from bezel.outside_changes.change import Findings, OutsideChange
from bezel.resource_cost.stack_cost import UNKNOWN_MARKS
from bezel.upkeep.drift import PropertyDrift, StackDrift, differences, drift_of
from bezel.upkeep.drift_report import DriftReport
from bezel_base.errors import UserError

URN = "urn:pulumi:dev::bezel::gcp:cloudrunv2/service:Service::llm"
TYPE = "gcp:cloudrunv2/service:Service"
CLOUD = {"lastModifier": "ben@example.com", "updateTime": "2026-11-01T10:00:00Z"}
IMAGE = "template.containers[0].image"


def change(op="update", paths=(IMAGE,), cloud="ben:1", program="ours:2", **more):
    inputs = [{"template": {"containers": [{"image": image}]}, "labels": {"a.b": image}} for image in (cloud, program)]
    old, new = (None if op == "create" else inputs[0]), (None if op == "delete" else inputs[1])
    return Change(op, URN, TYPE, tuple(paths), old, new, old_outputs=CLOUD, **more)


def refresh(op="update", paths=("template", "updateTime")):
    return Change(op, URN, TYPE, tuple(paths), new_outputs=None if op == "delete" else CLOUD)


def test_an_outside_change_is_named_with_property_values_and_author():
    (drift,) = differences(Events(changes=(change(),), refreshed=(refresh(),)))
    assert drift.is_outside
    assert drift.properties == (PropertyDrift(IMAGE, "ben:1", "ours:2"),)
    assert (drift.changed_by, drift.changed_at) == ("ben@example.com", "2026-11-01T10:00:00Z")


@pytest.mark.parametrize(
    ("changes", "refreshed", "expected"),
    [
        ((), (), []),
        ((), (refresh(),), []),  # what the cloud computes, and the program would not change
        ((change(),), (), [("update", False)]),  # the program was changed and not deployed
        ((change(),), (refresh(paths=["updateTime"]),), [("update", False)]),
        ((change("create", ()),), (refresh("delete", ()),), [("create", True)]),  # deleted in the cloud
        ((change("create", ()),), (), [("create", False)]),
        ((change("delete", ()),), (), [("delete", False)]),
        ((), (refresh("delete", ()),), [("delete", True)]),  # only the state has it
        ((change("replace"),), (refresh(),), [("replace", True)]),
        ((replace(change("create", ()), urn="u::default_10", type="pulumi:providers:gcp"),), (), []),
    ],
)
def test_drift_is_what_a_deploy_would_change(changes, refreshed, expected):
    drifts = differences(Events(changes=changes, refreshed=refreshed))
    assert [(resource.op, resource.is_outside) for resource in drifts] == expected


@pytest.mark.parametrize(
    ("program", "paths", "follows"),
    [
        ("ours:2", [IMAGE], False),
        (None, [IMAGE], False),
        (min(UNKNOWN_MARKS), [IMAGE], True),
        ("ours:2", [], True),
    ],
)
def test_a_change_without_a_known_value_only_follows_from_another(program, paths, follows):
    (drift,) = differences(Events(changes=(change(paths=paths, program=program),)))
    assert drift.follows is follows
    assert ("depends on" in DriftReport((stack("drifted", resources=(drift,)),)).text()) is follows


@pytest.mark.parametrize(
    ("refreshed", "cause", "mending"),
    [
        (
            (refresh("delete", ()),),
            "deleted outside of the program",
            "`pulumi up --refresh --stack dev` would create it",
        ),
        ((), "changed in the program and not deployed", "a deploy would create it"),
    ],
)
def test_what_was_deleted_outside_names_the_command_that_mends_it(refreshed, cause, mending):
    (drift,) = differences(Events(changes=(change("create", ()),), refreshed=refreshed))
    report = DriftReport((stack("drifted", resources=(drift,)),))
    for text in (report.text(), report.markdown()):
        assert cause in text
        assert f"; {mending}" in text


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (IMAGE, "ben:1"),
        ('labels["a.b"]', "ben:1"),
        ("template.containers[7].image", None),
        ("template.containers", [{"image": "ben:1"}]),
        ("nothing.there", None),
    ],
)
def test_a_property_is_found_by_the_engine_s_path(path, value):
    (drift,) = differences(Events(changes=(change(paths=[path]),), refreshed=(refresh(paths=[path]),)))
    assert [item.cloud for item in drift.properties] == [value]


def test_an_undeclared_setting_is_shown_with_the_cloud_s_own_value():
    (drift,) = differences(
        Events(
            changes=(change(paths=["invokerIamDisabled"]),),
            refreshed=(
                Change("update", URN, TYPE, ("invokerIamDisabled",), new_outputs=CLOUD | {"invokerIamDisabled": True}),
            ),
        )
    )
    assert drift.properties == (PropertyDrift("invokerIamDisabled", True, None),)
    text = DriftReport((stack("drifted", resources=(drift,)),)).text()
    assert "invokerIamDisabled: cloud true, program not set" in text


def test_what_is_computed_from_other_properties_is_left_out():
    paths = ["effectiveLabels.owner", IMAGE]
    (drift,) = differences(Events(changes=(change(paths=paths),), refreshed=(refresh(),)))
    assert [item.path for item in drift.properties] == [IMAGE]


class Engine:
    """An engine whose run has a given result."""

    def __init__(self, run):
        self._run = run

    def run(self, operation, *, options):
        assert (operation, options) == ("preview", ["--refresh"])
        return self._run


@contextmanager
def unreadable():
    """A backend that cannot be read."""
    raise UserError("the backend does not respond")
    yield


def open_engine(run):
    """The engine of a deployed stack whose run has this result."""
    return nullcontext(StackEngine(Engine(run), {}))


def result(code=0, **events):
    return EngineRun(End(code, interrupted=False), Events(**{"complete": True} | events), 0)


FAILED = (Diagnostic("error", "googleapi: Error 403: denied"),)


@pytest.mark.parametrize(
    ("engine", "verdict"),
    [
        (open_engine(result()), "clean"),
        (open_engine(result(changes=(change(),))), "drifted"),
        (open_engine(result(complete=False)), "unknown"),
        (open_engine(result(255, diagnostics=FAILED)), "unknown"),
        (open_engine(result(255, diagnostics=FAILED, changes=(change(),))), "unknown"),
        (unreadable(), "unknown"),
        (nullcontext(), "not deployed"),
    ],
)
def test_only_a_complete_reading_says_that_there_is_no_drift(engine, verdict):
    drift = drift_of("dev", engine)
    assert drift.verdict == verdict
    assert bool(drift.problems) == (verdict == "unknown")


ROLLBACK = OutsideChange("service llm", "traffic", "100 % pinned to llm-1 since T", "newest", "rollback", "deploy.")
MOVED = ("traffics[0].revision", 'annotations["bezel-rollback"]', 'effectiveAnnotations["bezel-rollback"]')


@pytest.mark.parametrize(
    ("paths", "outside_changes", "cause"),
    [
        (MOVED, (ROLLBACK,), "differs by the rollback below"),
        # Whatever else differs is a change of another user's.
        ((*MOVED, IMAGE), (ROLLBACK,), "changed outside of the program"),
        (MOVED, (replace(ROLLBACK, kind="cost"),), "changed outside of the program"),
        (MOVED, (), "changed outside of the program"),
    ],
)
def test_a_rollback_is_named_as_the_cause_of_its_own_differences_alone(paths, outside_changes, cause):
    planned = change(paths=paths)
    run = result(changes=(planned,), refreshed=(refresh(paths=("traffics", "template", "effectiveAnnotations")),))
    drift = drift_of("dev", open_engine(run), lambda _entries: Findings(outside_changes))
    assert drift.verdict == "drifted"
    text = DriftReport((drift,)).text()
    assert f"llm (Service): {cause}" in text
    if outside_changes == (ROLLBACK,):
        assert "service llm: traffic: cloud 100 % pinned to llm-1 since T, program newest (a rollback)" in text
        assert ": a rollback" in DriftReport((drift,)).markdown()


def stack(verdict, **more):
    return StackDrift("dev", verdict, **more)


@pytest.mark.parametrize(
    ("verdicts", "code"),
    [
        ([], Exit.DONE),
        (["clean", "not deployed"], Exit.DONE),
        (["clean", "drifted"], Exit.DRIFTED),
        (["drifted", "unknown"], Exit.FAILED),
    ],
)
def test_an_unknown_stack_fails_the_report_whatever_the_others_are(verdicts, code):
    assert DriftReport(tuple(map(stack, verdicts))).exit_code == code


def test_the_report_shows_no_value_as_markup():
    hostile = "`</details> @team | <!-- bezel section end -->\n# x`"
    changed = change(cloud=hostile)
    resources = differences(Events(changes=(changed,), refreshed=(refresh(),)))
    report = DriftReport((stack("drifted", resources=resources), stack("unknown", problems=("# failed",))))
    text = report.markdown()
    assert "\n# " not in text
    assert "<code>" in text
    assert "ben@example.com" in text
    assert "changed outside of the program" in report.text()
    assert json.loads(json.dumps(report.as_json()))["stacks"][0]["resources"][0]["properties"][0]["program"] == "ours:2"
