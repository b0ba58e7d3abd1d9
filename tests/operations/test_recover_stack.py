"""Recovery in two steps: the plan names what is unlocked and looked for, and only exactly that is done."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bezel.engine.outcomes import LockedError, RefusedError
from bezel.operations.changes.plan import Plan
from bezel.operations.context import Context, NotDeployedError
from bezel.operations.recover.recover_stack import RecoverArguments, apply_recover, plan_recover
from tests.support.gitops.pipeline import PLUGINS
from tests.support.operations.deployed import Deployed, state_of

ROOT_URN = "urn:pulumi:dev::bezel::pulumi:pulumi:Stack::bezel-dev"
SERVICE = "gcp:cloudrunv2/service:Service"
CHECK = "pulumi-python:dynamic/smoke:HealthCheck"


@pytest.fixture
def context(cloud: Deployed) -> Context:
    (cloud.folder / "Pulumi.dev.yaml").write_text("config: {}\n")
    added = {"PULUMI_CONFIG_PASSPHRASE": "not a secret", "HOME": str(cloud.folder), "PATH": f"{PLUGINS}:/usr/bin:/bin"}
    return Context(cloud.folder, {**cloud.context.environ, **added}, show=lambda _line: None)


def pending(type_: str, kind: str = "creating", **inputs: Any) -> dict[str, Any]:
    urn = f"urn:pulumi:dev::bezel::{type_}::thing"
    return {"type": kind, "resource": {"urn": urn, "type": type_, "custom": True, "inputs": inputs, "parent": ROOT_URN}}


def keep(cloud: Deployed, *operations: dict[str, Any]) -> Path:
    state = state_of()
    state["checkpoint"]["latest"]["resources"] = [{"urn": ROOT_URN, "type": "pulumi:pulumi:Stack"}]
    state["checkpoint"]["latest"]["pending_operations"] = [*operations]
    return cloud.keep("dev", state)


def lock(cloud: Deployed, pid: int, host: str = "") -> Path:
    folder = cloud.folder / "state/.pulumi/locks/organization/bezel/dev"
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "pid": pid,
        "username": "ann",
        "hostname": host or socket.gethostname(),
        "timestamp": "2026-09-21T14:00:00Z",
    }
    (folder / "1.json").write_text(json.dumps(content))
    return folder / "1.json"


def dead_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        return process.pid


def plan_of(context: Context) -> Plan:
    return plan_recover(context, RecoverArguments(stack="dev"))


def test_plan_names_what_is_looked_for_and_changes_nothing(cloud: Deployed, context: Context) -> None:
    file = keep(cloud, pending(SERVICE, project="acme", location="us-east4", name="llm"), pending(CHECK))
    before = file.read_text()
    plan = plan_of(context)
    assert plan.summary == "reads 2 unfinished changes from the cloud into the state"
    assert any("looks for projects/acme/locations/us-east4/services/llm" in note for note in plan.notes)
    assert (plan.refusals, plan.is_empty) == ((), False)
    assert file.read_text() == before
    keep(cloud)
    assert (plan_of(context).is_empty, plan_of(context).summary) == (True, "no open changes")


def test_dead_engine_is_unlocked_and_a_living_one_waited_for(cloud: Deployed, context: Context) -> None:
    keep(cloud)
    lock(cloud, dead := dead_process())
    plan = plan_of(context)
    assert (plan.summary, plan.is_empty) == ("unlocks the stack", False)
    assert f"the engine of process {dead} on this machine is gone" in plan.notes[0]
    for pid, host in ((os.getpid(), ""), (dead, "another-host")):
        lock(cloud, pid, host)
        assert any(f"locked by process {pid} on" in refusal for refusal in plan_of(context).refusals)
    with pytest.raises(LockedError, match="locked by the engine of process"):
        apply_recover(context, plan)


def test_resource_without_a_derivable_id_is_left_to_a_person(cloud: Deployed, context: Context) -> None:
    keep(cloud, pending("gcp:compute/unknown:Unknown", name="x"))
    (refusal,) = plan_of(context).refusals
    assert "delete those that exist, then `pulumi refresh --clear-pending-creates`" in refusal


@pytest.mark.slow  # the engine
def test_recovery_does_what_was_planned_and_refuses_after_a_change(cloud: Deployed, context: Context) -> None:
    file = keep(cloud, pending(CHECK))
    lock_file = lock(cloud, dead_process())
    plan = plan_of(context)
    changed = keep(cloud, pending(CHECK), pending(SERVICE, project="acme", location="us-east4", name="llm")).read_text()
    with pytest.raises(RefusedError, match="the stack's state"):
        apply_recover(context, plan)
    assert (file.read_text(), lock_file.exists()) == (changed, True)
    keep(cloud, pending(CHECK))
    outcome = apply_recover(context, plan)
    assert (outcome.verdict, outcome.problems) == ("done", ())
    assert "the stack is unlocked" in outcome.details
    assert not lock_file.exists()
    assert not json.loads(file.read_text())["checkpoint"]["latest"].get("pending_operations")
    assert apply_recover(context, plan_of(context)).verdict == "unchanged"


@pytest.mark.slow  # the engine says that there is none
def test_stack_without_a_state_or_a_file_is_named(context: Context) -> None:
    (context.folder / "state").mkdir()
    with pytest.raises(NotDeployedError, match="the backend has no state of it"):
        plan_of(context)
