"""Scaling and restarting a service on a real engine, by its file and a deploy in two steps; a kill loses nothing."""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bezel.engine.outcomes import LockedError
from bezel.operations.changes.basis import ChangedError
from bezel.operations.changes.plan import Plan
from bezel.operations.context import Context, NotDeployedError
from bezel.operations.deploy.deploy import DeployArguments, apply_deploy, plan_deploy
from bezel.operations.restart.restart import RestartArguments, apply_restart, plan_restart
from bezel.operations.scale.scale import NothingAskedError, ScaleArguments, apply_scale, plan_scale
from bezel_base.errors import UserError
from bezel_localcloud.core.paths import PROJECT
from tests.support.gitops.pipeline import Pipeline
from tests.support.operations.deployed import Deployed

pytestmark = pytest.mark.slow
STACK = "l4-qat"
SECONDS = 120.0


class Project:
    """The program with one deployed stack, its states in a folder."""

    def __init__(self, folder: Path) -> None:
        self.pipeline = Pipeline.whole(folder)
        states = folder / "states"
        states.mkdir()
        self.pipeline.environment["PULUMI_BACKEND_URL"] = f"file://{states}"
        self.pipeline.seed(STACK)
        self._request_gpus()
        self.file = self.pipeline.folder / f"Pulumi.{STACK}.yaml"
        self.locks = states / f".pulumi/locks/organization/bezel/{STACK}"
        assert apply_deploy(self.context(), self.deploy()).verdict == "done"

    def _request_gpus(self) -> None:
        """Request room for two instances beside those of older revisions, which hold theirs for 15 minutes.

        It is granted after five minutes of the simulated clock, long before the restart.
        """
        path = f"/cloudquotas/v1/projects/{PROJECT}/locations/global/quotaPreferences"
        body = {
            "service": "run.googleapis.com",
            "quotaId": "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion",
            "dimensions": {"region": "us-east4"},
            "quotaConfig": {"preferredValue": "9"},
            "contactEmail": "ada@example.com",
        }
        assert self.pipeline.cloud.post(path, body).status_code == 200

    def context(self, show: Callable[[str], None] = lambda _line: None) -> Context:
        return Context(self.pipeline.folder, self.pipeline.warm_environment, show=show)

    def deploy(self) -> Plan:
        return plan_deploy(self.context(), DeployArguments(stack=STACK, wait="0s"))

    def scale(self, **numbers: int) -> Plan:
        return plan_scale(self.context(), ScaleArguments(stack=STACK, wait="0s", **numbers))

    def restart(self) -> Plan:
        return plan_restart(self.context(), RestartArguments(stack=STACK, wait="0s"))

    def service(self) -> dict[str, Any]:
        service = self.context().deployment(STACK).service
        assert service is not None
        record: dict[str, Any] = self.pipeline.cloud.get(f"/run/v2/{service.id}").json()
        return record


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    made = Project(tmp_path_factory.mktemp("scale"))
    yield made
    made.pipeline.stop()


@pytest.mark.wide
def test_a_service_is_scaled_by_its_file_and_a_deploy(project: Project) -> None:
    written = project.file.read_text()

    # What the stack's own limit refuses, with the number that it allows.
    with pytest.raises(UserError, match=r"lower `bezel:scaling.max_instances` to 1"):
        project.scale(max=2)
    with pytest.raises(UserError, match=r"it is above max_instances=1"):
        project.scale(min=2)
    assert project.file.read_text() == written
    written = written.replace("max_hourly_usd: 1.10", "max_hourly_usd: 9.50")
    project.file.write_text(written)

    # A plan changes nothing: neither the file nor the cloud.
    plan = project.scale(max=2)
    assert (plan.refusals, plan.confirm_name) == ((), None)
    assert project.file.read_text() == written
    assert [change.op for change in plan.changes if change.name == "vllm-service-service"] == ["update"]
    assert plan.file_change is not None
    assert "+    max_instances: 2" in plan.file_change
    assert [text for text in plan.warnings if "have changed" in text] == [], plan.changes
    # What every plan says of quotas that have room asks for nothing.
    assert any("allowed, " in text for text in plan.notes), plan
    assert not any("allowed, " in text for text in plan.warnings), plan.warnings
    assert plan.price_before is not None
    assert plan.price_after is not None
    assert plan.price_after.usd_per_hour == pytest.approx(2 * (plan.price_before.usd_per_hour or 0))

    # Another file than the planned one.
    project.file.write_text(f"{written}# later\n")
    with pytest.raises(ChangedError, match="the stack's file"):
        apply_scale(project.context(), plan)
    project.file.write_text(written)

    # Another engine takes the stack during the preview: the file stays as it was.
    lock = project.locks / "other.json"
    lock.parent.mkdir(parents=True, exist_ok=True)
    owner = '{"pid": 1, "username": "ada", "hostname": "elsewhere", "timestamp": "2026-11-24T00:00:00Z"}'

    def take_lock(_line: str) -> None:
        lock.write_text(owner)

    with pytest.raises(LockedError, match="ada@elsewhere"):
        apply_scale(project.context(take_lock), plan)
    lock.unlink()
    assert project.file.read_text() == written

    outcome = apply_scale(project.context(), plan)
    assert (outcome.verdict, outcome.details[-1]) == ("done", f"Pulumi.{STACK}.yaml has the new values")
    scaled = project.service()
    assert scaled["template"]["scaling"]["maxInstanceCount"] == 2
    assert "    max_instances: 2" in project.file.read_text()
    assert project.deploy().is_empty
    assert project.scale(max=2).is_empty


@pytest.mark.long
def test_a_restart_makes_an_equal_revision_that_the_next_deploy_knows(project: Project) -> None:
    """The next deploy has nothing to change, and a further restart is possible."""
    before = project.service()
    plan = project.restart()
    assert plan.file_change is not None
    assert "bezel:restarted_at" in plan.file_change
    assert [text for text in plan.warnings if "have changed" in text] == [], plan.changes
    assert apply_restart(project.context(), plan).verdict == "done"
    restarted = project.service()
    assert restarted["latestReadyRevision"] != before["latestReadyRevision"]
    assert restarted["template"]["scaling"] == before["template"]["scaling"]
    assert project.deploy().is_empty
    assert not project.restart().is_empty


@pytest.mark.long
def test_a_kill_after_the_file_was_written_leaves_a_change_to_deploy(project: Project) -> None:
    """The next deploy shows the change of the file."""
    limits = project.file.read_text()
    run = project.pipeline.start("scale", STACK, "--max", "1", "--yes")
    end = time.monotonic() + SECONDS
    while project.file.read_text() == limits and run.poll() is None:
        assert time.monotonic() < end
    run.send_signal(signal.SIGKILL)
    output, _ = run.communicate(timeout=SECONDS)
    assert "    max_instances: 1" in project.file.read_text(), output
    recovered = project.pipeline.bezel("recover", STACK, "--yes")
    assert recovered.code == 0, recovered.text
    plan = project.deploy()
    if not plan.is_empty:  # the engine may have come to its end by itself
        assert apply_deploy(project.context(), plan).verdict == "done"
    assert project.service()["template"]["scaling"]["maxInstanceCount"] == 1


def test_what_cannot_be_scaled_is_refused_before_anything_runs(cloud: Deployed) -> None:
    (cloud.folder / "Pulumi.new.yaml").write_text("config: {}\n")
    with pytest.raises(NothingAskedError, match="add --min N, --max N or both"):
        plan_scale(cloud.context, ScaleArguments(stack="new"))
    with pytest.raises(NotDeployedError, match="the backend has no state of it"):
        plan_scale(cloud.context, ScaleArguments(stack="new", max=2))
    assert cloud.server.calls == []
