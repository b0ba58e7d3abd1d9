"""The verdict of a preview, and its document in its three forms."""

import json
import os
from decimal import Decimal
from pathlib import Path

import pytest

from bezel.engine.changes.preview import fill
from bezel.engine.changes.report import ChangeReport
from bezel.engine.events.reader import events_of
from bezel.engine.events.values import Change
from bezel.engine.run.engine import EngineRun
from bezel.engine.run.process import End
from bezel.planner.base.money import Priced
from bezel.resource_cost.stack_cost import StackCost
from tests.support.gitops.events import (
    BUCKET,
    OBJECT,
    STACK,
    analyzed_event,
    diagnostic_event,
    step,
    summary,
    urn,
    violation,
)
from tests.support.policies.harness import SERVICE, service

GOLDENS = Path(__file__).parent / "goldens"
OUTPUTS = {
    "resOutputsEvent": {
        "metadata": {"op": "create", "urn": STACK, "type": "pulumi:pulumi:Stack", "new": {"outputs": {}}}
    }
}
PACKS = [analyzed_event("hardware-cost"), analyzed_event("security")]
NOT_RUN = "can't run policy 'p' from policy pack 'mine@v0.1.0' during preview: string value at .x can't be known"
GPU = [{**event} for event in step("create", SERVICE, "service", None, service())]
UNPRICED = step("create", SERVICE, "service", None, service({"template.nodeSelector.accelerator": "nvidia-b200"}))
for event in (*GPU, *UNPRICED):
    next(iter(event.values()))["metadata"]["new"]["custom"] = True


def report() -> ChangeReport:
    return ChangeReport("preview", "dev", "a" * 40, "b" * 40, "sha256:11", project="bezel")


def report_of(events, code: int = 0, text: str = "", packs: int = 2, **facts: tuple[str, ...]) -> ChangeReport:
    made = report()
    read = events_of([*events, OUTPUTS, summary()])
    fill(made, EngineRun(End(code, interrupted=False), read, packs, text, facts=facts))
    return made


@pytest.mark.parametrize(
    ("events", "code", "verdict", "texts"),
    [
        (PACKS, 0, "allowed", ""),
        ([*PACKS, violation("advisory", "think again")], 0, "allowed", ""),
        ([*GPU, *PACKS], 0, "allowed", ""),
        ([*PACKS, violation("mandatory", "too dear")], 1, "refused", ""),
        ([*PACKS, violation("advisory", NOT_RUN)], 0, "refused", ""),
        (PACKS[:1], 0, "refused", "2 policy packs were given, and 1 evaluated"),
        (
            [diagnostic_event("error", "failed to run policy: error reading from server: EOF")],
            1,
            "refused",
            "nothing passes",
        ),
        ([*UNPRICED, *PACKS], 0, "refused", "the price is unknown, so nothing passes"),
        ([*PACKS, diagnostic_event("error", "boom")], 1, "failed", "boom"),
        (PACKS, 255, "failed", "exit code 255"),
    ],
)
def test_a_preview_is_allowed_only_if_all_of_it_was_judged(events, code, verdict, texts):
    """A preview is allowed only if all of it was judged and nothing refuses."""
    made = report_of(events, code)
    assert made.verdict == verdict
    assert texts in " ".join(made.problems)
    assert bool(made.problems) == bool(texts)


def test_a_pack_that_did_not_start_refuses_and_its_text_is_shown():
    made = report()
    text = 'error: policy pack "/p" failed to start: exit status 1'
    fill(made, EngineRun(End(1, interrupted=False), events_of([]), 2, text))
    assert made.verdict == "refused"
    assert text in made.problems[0]
    assert made.after is None


def test_the_price_of_a_program_that_failed_is_not_known():
    assert report_of([*GPU, diagnostic_event("error", "boom")], 1).after is None
    assert report_of([*GPU, *PACKS, violation("mandatory", "too dear")], 1).after is not None


def cost_of(hourly: str) -> StackCost:
    usd = Decimal(hourly)
    return StackCost(Priced(usd), Priced(usd * 730), Priced(Decimal(0)))


def example() -> ChangeReport:
    made = report()
    made.verdict, made.changes_digest = "refused", "sha256:22"
    made.changes = (
        Change("create", urn(BUCKET, "data"), BUCKET),
        Change("import", urn(BUCKET, "found"), BUCKET),
        Change("replace", urn(SERVICE, "service"), SERVICE, ("location", "template.containers[0].image")),
        Change("delete", urn(OBJECT, "note"), OBJECT),
        Change("create", urn("bezel:project:EnabledApis", "apis"), "bezel:project:EnabledApis", custom=False),
        Change("create", urn("pulumi:providers:gcp", "default_10_2_0"), "pulumi:providers:gcp"),
    )
    made.before, made.after = cost_of("0"), cost_of("1.0466")
    made.violations = events_of(
        [violation("mandatory", "Too dear.\n@team `look`\n<b>here</b>"), violation("advisory", "Think again.")]
    ).violations
    made.fit, made.quota = "9 GiB of weights and 9 GiB for the KV cache, of 21 GiB", ("L4 in us-east4: 1 of 3 in use",)
    made.problems, made.notes = ["it | failed"], ["not saved"]
    return made


@pytest.mark.parametrize("form", ["json", "text", "markdown"])
def test_the_report_reads_as_recorded(form):
    made = example()
    shown = json.dumps(made.as_json(), indent=2) + "\n" if form == "json" else getattr(made, form)()
    golden = GOLDENS / f"change_report.{ {'json': 'json', 'text': 'txt', 'markdown': 'md'}[form] }".replace(" ", "")
    if os.environ.get("BEZEL_RECORD"):
        golden.write_text(shown)
    assert shown == golden.read_text()


def test_a_report_without_changes_says_so():
    made = report_of(PACKS)
    assert made.text().startswith("dev: allowed; no changes\n")
    assert made.as_json()["changes"] == {}


USE = "L4 in us-east4: 1 GPU used, 3 GPUs allowed, 1 GPU needed."
FULL = "the quota L4 counted 3 GPUs in use,\n  of the 3 of this project"


def test_report_has_use_and_warnings_of_quotas():
    assert report_of(PACKS, quota_use=(USE,)).quota == (USE,)
    assert report_of(PACKS, quota_use=(USE,)).quota_warnings == ()
    made = report_of(PACKS, quota_use=(USE,), quota_warning=(FULL, FULL))
    assert made.quota_warnings == ("the quota L4 counted 3 GPUs in use, of the 3 of this project",)
    assert made.quota == (USE, *made.quota_warnings)


def test_report_notes_rollbacks_of_the_run():
    made = report_of(PACKS, rollback=("rolled back: the traffic of chat is pinned",))
    assert made.rollbacks == ("rolled back: the traffic of chat is pinned",)
    assert made.notes == list(made.rollbacks)


def test_log_lines_are_no_facts_of_a_report():
    lines = [
        diagnostic_event("info", f"quotas and their use:\n  {USE}"),
        diagnostic_event("warning", FULL),
        diagnostic_event("warning", "rolled back: x"),
    ]
    made = report_of([*PACKS, *lines])
    assert (made.quota, made.quota_warnings, made.rollbacks, made.notes) == ((), (), (), [])
