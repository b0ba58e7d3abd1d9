"""A deploy makes reviewed changes only; each reason to stop is named, with what differs."""

from dataclasses import replace

import pytest

from bezel.engine.changes.outcome import finish, smoke_of
from bezel.engine.changes.planned import digest, planned_changes
from bezel.engine.changes.report import ChangeReport
from bezel.engine.events.reader import events_of
from bezel.engine.events.values import Change, Violation
from bezel.engine.run.engine import EngineRun
from bezel.engine.run.process import End
from bezel.gitops.review import deploy_record
from bezel.gitops.review.approval import Decision, ReviewHistory, decide
from bezel.gitops.review.deploy import refuse
from bezel.gitops.review.reviews import Review
from tests.support.gitops.events import BUCKET, STACK, analyzed_event, step, summary, urn, violation
from tests.support.gitops.fake_bucket import fake_bucket

PLANNED = planned_changes(
    [Change("create", urn(BUCKET, "a"), BUCKET, new={"n": "1"}), Change("create", urn(BUCKET, "b"), BUCKET, new={})]
)
REST = PLANNED[1:]
MORE = planned_changes([Change("delete", urn(BUCKET, "c"), BUCKET, old={})])
REVIEW = Review("allowed", digest(PLANNED), PLANNED)
OTHER = Review("allowed", digest(MORE), MORE)
UNSOUND = Review("allowed", digest(PLANNED), PLANNED, is_sound=False)
REFUSED = Review("refused", digest(PLANNED), PLANNED)


@pytest.mark.parametrize(
    ("planned", "history", "approved", "allowed", "reason", "differs"),
    [
        (PLANNED, ReviewHistory(REVIEW), "", True, "as reviewed", False),
        (PLANNED, ReviewHistory(), digest(PLANNED), True, "approved", False),
        (PLANNED, ReviewHistory(OTHER), digest(PLANNED), True, "approved", False),
        (PLANNED, ReviewHistory(REVIEW), digest(MORE), False, "--approve", False),
        (PLANNED, ReviewHistory(), "sha256:0", False, "--approve", False),
        (PLANNED, ReviewHistory(OTHER), "sha256:0", False, "--approve", True),
        (PLANNED, ReviewHistory(), "", False, "was not previewed", False),
        (PLANNED, ReviewHistory(OTHER), "", False, "differ from the reviewed ones", True),
        (PLANNED, ReviewHistory(UNSOUND), "", False, "not one that a preview wrote", False),
        (PLANNED, ReviewHistory(REFUSED), "", False, "the review says refused", False),
        (PLANNED, ReviewHistory(None, [REVIEW]), "", False, "the state has changed", True),
        (PLANNED, ReviewHistory(None, [OTHER, REVIEW]), "", False, "the state has changed", True),
        (REST, ReviewHistory(None, [REVIEW], PLANNED), "", True, "the rest of the reviewed changes", False),
        (REST, ReviewHistory(OTHER, (), PLANNED), "", False, "differ from the reviewed ones", True),
        (MORE, ReviewHistory(None, [REVIEW], PLANNED), "", False, "not what is left of it", True),
    ],
)
def test_only_what_was_reviewed_or_is_left_of_it_is_made(planned, history, approved, allowed, reason, differs):
    decision = decide(planned, history, approved)
    assert (decision.allowed, bool(decision.difference)) == (allowed, differs)
    assert reason in decision.reason


def report() -> ChangeReport:
    return ChangeReport("deployment", "dev", "a" * 40, "b" * 40, "sha256:11", digest(PLANNED), "allowed")


def test_a_stopped_deploy_shows_the_difference_and_the_digest():
    stopped = report()
    refuse(stopped, Decision(False, "the changes differ from the reviewed ones", ["new: create a"]))
    assert stopped.verdict == "refused"
    assert "nothing was changed" in stopped.problems[0]
    assert stopped.problems[1] == "difference: new: create a"
    assert f"--approve {digest(PLANNED)}" in stopped.problems[2]


def outputs(smoke, **more):
    made = {"smoke": smoke, "simulated": True, **more}
    content = {"op": "update", "urn": STACK, "type": "pulumi:pulumi:Stack", "old": {}, "new": {"outputs": made}}
    return {"resOutputsEvent": {"metadata": content}}


PASSED = {"verdict": {"ok": True, "checks": {"health": {"ok": True}}}, "figures": {"ttft_ms": {"p50": 12.5}}}
FAILED = {"verdict": {"ok": False, "checks": {"health": {"ok": False, "detail": "HTTP 500"}}}, "figures": {}}


@pytest.mark.parametrize(
    ("events", "code", "verdict", "phrase"),
    [
        ([outputs(PASSED), analyzed_event(), summary()], 0, "deployed", ""),
        ([analyzed_event(), summary()], 0, "deployed", ""),
        ([outputs(FAILED), analyzed_event(), summary()], 0, "failed", "health: HTTP 500"),
        ([outputs(PASSED), analyzed_event(), summary()], 1, "failed", "exit code 1"),
        ([violation("mandatory", "too dear"), analyzed_event(), summary()], 1, "refused", ""),
        ([summary()], 0, "refused", "did not evaluate the stack"),
    ],
)
def test_a_deploy_ends_well_only_if_engine_packs_and_smoke_check_say_so(events, code, verdict, phrase):
    made = report()
    finish(
        made, EngineRun(End(code, interrupted=False), events_of([*step("create", BUCKET, "a", None, {}), *events]), 1)
    )
    assert made.verdict == verdict
    assert phrase in " ".join(made.problems)


def test_the_smoke_check_is_published_and_simulated_figures_say_so():
    made = report()
    finish(made, EngineRun(End(0, interrupted=False), events_of([outputs(PASSED), analyzed_event(), summary()]), 1))
    assert made.as_json()["smoke"]["figures"] == {"ttft_ms": {"p50": 12.5}}
    assert "smoke: passed (health); ttft_ms p50 12.5 (simulated)\n" in made.text()
    assert "Smoke: passed (health); ttft\\_ms p50 12.5 (simulated)" in made.markdown()
    assert smoke_of({}) is None
    assert smoke_of({"smoke": {"verdict": {"checks": None}}})["ok"] is None
    assert "smoke" not in report().text()


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("https://service-1.us-east4.run.app", "https://service-1.us-east4.run.app"),
        ("http://127.0.0.1:1/", "http://127.0.0.1:1/"),
        ("[secret]", None),
        ("javascript:alert(1)", None),
        ("https://", None),
        ("", None),
        (7, None),
        (None, None),
        ({"url": "https://x"}, None),
    ],
)
def test_the_report_of_a_deploy_names_the_address(url, address):
    made = report()
    finish(
        made,
        EngineRun(End(0, interrupted=False), events_of([outputs(PASSED, url=url), analyzed_event(), summary()]), 1),
    )
    assert made.as_json()["url"] == address
    for text, line in ((made.text(), f"address: {address}\n"), (made.markdown(), f"Address: `{address}`\n")):
        assert (line in text) is (address is not None)
        assert "ddress:" in text or address is None


def test_a_failed_deploy_and_a_preview_have_no_address():
    made = report()
    finish(made, EngineRun(End(1, interrupted=False), events_of([analyzed_event(), summary()]), 1))
    assert (made.as_json()["url"], "ddress" in made.text()) == (None, False)
    assert "url" not in replace(made, kind="preview").as_json()


def test_a_violation_that_could_not_be_evaluated_refuses():
    assert Violation("p", "x", "advisory", "u", "m", not_run=True).refuses
    assert not Violation("p", "x", "advisory", "u", "m").refuses


def test_only_a_deploy_of_the_same_tree_that_did_not_end_is_continued():
    with fake_bucket() as served:
        bucket, names = served.client(), ("small", "a/b", "tree")
        assert deploy_record.begun_changes(bucket, *names) is None
        deploy_record.write(bucket, *names, PLANNED, ended=False)
        assert deploy_record.begun_changes(bucket, *names) == PLANNED
        assert deploy_record.begun_changes(bucket, "small", "a/b", "other tree") is None
        assert deploy_record.begun_changes(bucket, "small", "a", "tree") is None
        deploy_record.write(bucket, *names, PLANNED, ended=True)
        assert deploy_record.begun_changes(bucket, *names) is None
        assert list(served.objects) == ["deploys/small/a%2Fb.json"]
        bucket.replace("deploys/small/a%2Fb.json", b"{}", next(iter(served.objects.values()))[1])
        assert deploy_record.begun_changes(bucket, *names) is None
