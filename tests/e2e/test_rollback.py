"""Rollback under the real engine: everything tells of it, and the next deploy ends it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bezel.engine.outcomes import Exit
from bezel.operations.changes.plan import Outcome, Plan
from bezel.operations.context import Context
from bezel.operations.deploy.deploy import DeployArguments, apply_deploy, plan_deploy
from bezel.operations.destroy.destroy import DestroyArguments, apply_destroy, plan_destroy
from bezel.operations.rollback.rollback import RollbackArguments, apply_rollback, plan_rollback
from bezel.operations.status.status import StackStatus, StatusArguments, status
from bezel_base.errors import UserError
from tests.support.e2e.rehearsal import Run
from tests.support.gitops.pipeline import Pipeline

pytestmark = [pytest.mark.slow, pytest.mark.long]
STACK = "l4-qat"
SERVICE = f"bezel-{STACK}"
LOCATION = "projects/bezel-local/locations/us-east4"


@dataclass
class Life:
    """A stack that is deployed, rolled back and deployed again."""

    pipeline: Pipeline
    seats: int = 8

    def context(self) -> Context:
        return Context(self.pipeline.folder, self.pipeline.environment, show=lambda _line: None)

    def deploy(self, *, changed: bool = True) -> Outcome:
        if changed:
            self.seats -= 1
            file = self.pipeline.folder / f"Pulumi.{STACK}.yaml"
            file.write_text(file.read_text().replace(f"max-num-seqs: {self.seats + 1}", f"max-num-seqs: {self.seats}"))
        return apply_deploy(self.context(), self.plan())

    def plan(self) -> Plan:
        return plan_deploy(self.context(), DeployArguments(stack=STACK, wait="0s"))

    def rollback(self, to: str | None = None) -> Outcome:
        return apply_rollback(self.context(), self.plan_rollback(to))

    def plan_rollback(self, to: str | None = None) -> Plan:
        return plan_rollback(self.context(), RollbackArguments(stack=STACK, to=to, wait="0s"))

    def status(self) -> StackStatus:
        (stack_status,) = status(self.context(), StatusArguments(stack=STACK)).stacks
        return stack_status

    def drift(self) -> Run:
        return self.pipeline.bezel("ci", "drift", STACK)

    def service(self) -> dict[str, Any]:
        service = self.context().deployment(STACK).service
        assert service is not None
        answer: dict[str, Any] = self.pipeline.cloud.get(f"/run/v2/{service.id}").json()
        return answer

    def serving(self) -> dict[str, int]:
        """Short name of each revision that callers reach -> its percent."""
        answer = self.service()
        newest = answer["latestReadyRevision"]
        return {
            str(each.get("revision") or newest).rpartition("/")[2]: each["percent"]
            for each in answer["trafficStatuses"]
            if each.get("percent")
        }

    def move_by_hand(self, revision: str) -> None:
        """Move the traffic as somebody does with gcloud, without a record."""
        description = self.service()
        tags = [each for each in description["traffic"] if not each.get("percent")]
        pinned = {"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_REVISION", "revision": revision, "percent": 100}
        path = f"/run/v2/{description['name']}"
        answer = self.pipeline.cloud.patch(path, {"traffic": [pinned, *tags]}, updateMask="traffic")
        assert answer.status_code == 200, answer.text

    def fail_starts(self) -> None:
        """Let the next revision fail to start: its image cannot be pulled."""
        fault = {"kind": "image-missing", "parameters": {"seen": "deploy"}}
        assert self.pipeline.cloud.post("/localcloud/faults", fault).status_code == 200

    def clear_faults(self) -> None:
        """Take every fault off."""
        assert self.pipeline.cloud.delete("/localcloud/faults").status_code == 200

    def plan_rollback_is_refused(self, reason: str) -> bool:
        """Whether a rollback is refused for this reason."""
        with pytest.raises(UserError, match=reason):
            self.plan_rollback()
        return True

    def newest(self) -> str:
        return str(self.service()["latestReadyRevision"]).rpartition("/")[2]


@pytest.fixture
def life(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Life]:
    made = Pipeline.whole(tmp_path)
    made.set("bezel:rollout", request.param, STACK)
    made.set("bezel:smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32}, STACK)
    made.set("bezel:cost", {"max_hourly_usd": 9}, STACK)
    made.seed(STACK)
    made.commit()
    yield Life(made)
    made.stop()


@pytest.mark.timeout(1500)  # some fifteen runs of the engine, one after the other
@pytest.mark.parametrize("life", ["direct", "gated"], indirect=True)
def test_a_rollback_is_told_everywhere_and_ended_by_the_next_deploy(life: Life) -> None:
    assert life.deploy(changed=False).verdict == "done"
    first = life.newest()
    assert life.plan_rollback_is_refused("the service has no earlier revision")
    assert life.deploy().verdict == "done"
    second = life.newest()
    assert life.serving() == {second: 100}

    plan = life.plan_rollback()
    assert plan.summary == f"move the traffic from {second} to {first}, the last revision that passed its check"
    # The first revision's instance may still be there, unused since a moment.
    starts = ("(estimate of its plan)", "by Cloud Monitoring a moment ago: no start")
    assert any(text in note for note in plan.notes for text in starts), plan.notes
    assert f"differs: containers[vllm].args: --max-num-seqs={life.seats} serves" in plan.text()
    assert life.serving() == {second: 100}
    outcome = apply_rollback(life.context(), plan)
    assert outcome.verdict == "done", outcome
    assert life.serving() == {first: 100}

    # Status, drift and the next preview name it.
    stack_status = life.status()
    assert stack_status.rollback is not None
    assert (stack_status.rollback.revision, stack_status.rollback.origin) == (first, (second,))
    assert stack_status.outside == ()
    since = stack_status.rollback.since
    drift = life.drift()
    assert drift.code == Exit.DRIFTED, drift.text
    report = drift.text[drift.text.index(f"{STACK}: cloud and program differ") :]
    assert f"pinned to {first} since {since} by a rollback from {second}" in report
    assert "differs by the rollback below" in report
    assert "changed outside of the program" not in report
    again = life.plan()
    assert not again.is_empty
    assert any(
        text.startswith(f"rolled back: the traffic of {SERVICE} is pinned to {first}") for text in again.warnings
    )
    assert life.plan_rollback().is_empty
    assert life.rollback().verdict == "unchanged"

    # A deploy of the same file ends it, and nothing is left to do after it.
    assert life.deploy(changed=False).verdict == "done"
    assert life.serving() == {second: 100}
    assert life.status().rollback is None
    clean = life.drift()
    assert clean.code == Exit.DONE, clean.text

    # Once more, and the next revision gets the traffic.
    assert life.rollback().verdict == "done"
    assert life.serving() == {first: 100}
    # A revision that does not start leaves the traffic where it was rolled back to.
    life.fail_starts()
    failed = life.deploy()
    assert failed.verdict == "failed", failed
    assert life.serving() == {first: 100}
    assert life.status().rollback is not None
    life.clear_faults()
    assert life.deploy().verdict == "done"
    third = life.newest()
    assert life.serving() == {third: 100}
    assert life.status().rollback is None
    assert life.plan().is_empty
    drift = life.drift()
    assert drift.code == Exit.DONE, drift.text

    # What was left as bad is not what callers are sent back to; what somebody moves by hand is no rollback.
    plan = life.plan_rollback()
    assert f"to {first}, the last" in plan.summary
    assert f"passed over, as an earlier rollback has left them: {second}" in plan.warnings
    life.move_by_hand(first)
    stack_status = life.status()
    assert stack_status.rollback is None
    assert [each.setting for each in stack_status.outside] == ["traffic"]
    life.move_by_hand(third)

    gone = apply_destroy(life.context(), plan_destroy(life.context(), DestroyArguments(stack=STACK)))
    assert gone.verdict == "done", gone
    assert life.context().deployment(STACK).services == ()
    assert life.pipeline.cloud.get(f"/run/v2/{LOCATION}/services").json() == {}
