"""Rollback under the real engine: everything tells of it, and the next deploy ends it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bezel.operations.changes.plan import Outcome, Plan
from bezel.operations.context import Context
from bezel.operations.deploy import DeployArguments, apply_deploy, plan_deploy
from bezel.operations.destroy import DestroyArguments, apply_destroy, plan_destroy
from bezel.operations.rollback.rollback import RollbackArguments, apply_rollback, plan_rollback
from bezel.operations.status import StackStatus, StatusArguments, status
from tests.support.e2e.rehearsal import Run
from tests.support.gitops.pipeline import Pipeline

pytestmark = [pytest.mark.slow, pytest.mark.long]
STACK = "l4-qat"


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
        (found,) = status(self.context(), StatusArguments(stack=STACK)).stacks
        return found

    def drift(self) -> Run:
        return self.pipeline.bezel("ci", "drift", STACK)

    def service(self) -> dict[str, Any]:
        service = self.context().deployment(STACK).service
        assert service is not None
        found: dict[str, Any] = self.pipeline.cloud.get(f"/run/v2/{service.id}").json()
        return found

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


@pytest.mark.parametrize("life", ["direct", "gated"], indirect=True)
def test_a_rollback_is_told_everywhere_and_ended_by_the_next_deploy(life: Life) -> None:
    assert life.deploy(changed=False).verdict == "done"
    first = life.newest()
    outcome = life.deploy()
    assert outcome.verdict == "done", outcome
    second = life.newest()
    assert second != first

    plan = life.plan_rollback()
    print(plan.text())
    outcome = apply_rollback(life.context(), plan)
    print(outcome.text())
    print(life.service()["traffic"], life.service()["annotations"])
    print(status(life.context(), StatusArguments(stack=STACK)).text())
    drift = life.drift()
    print(drift.code, drift.text)
    print(life.plan().text())
    outcome = life.deploy()
    print(outcome.text())
    print(life.service()["traffic"], life.service()["annotations"])
    print(life.plan().text())
    drift = life.drift()
    print(drift.code, drift.text)
    print(life.plan_rollback().text())
    gone = apply_destroy(life.context(), plan_destroy(life.context(), DestroyArguments(stack=STACK)))
    print(gone.text())
    assert 0
