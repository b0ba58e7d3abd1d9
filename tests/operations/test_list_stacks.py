"""List of stacks: files and backend side by side, and what cannot be read is not judged."""

import json
import os
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bezel.engine.locks.process import this_process
from bezel.engine.locks.record import Lock, Owner, to_json
from bezel.operations.context import Context
from bezel.operations.stack.list_stacks import ListStacksArguments, StackList, list_stacks
from bezel_base.errors import UserError
from tests.support.gitops.fake_bucket import fake_bucket
from tests.support.operations.deployed import Deployed, service_resource, state_of

SETTINGS = "config:\n  bezel:model: m\n  bezel:accelerator: nvidia-l4\n  bezel:region: us-east4\n"


def report_of(context: Context, stack: str | None = None) -> StackList:
    return list_stacks(context, ListStacksArguments(stack=stack))


def write(folder: Path, stack: str, *, more: str = "") -> None:
    (folder / f"Pulumi.{stack}.yaml").write_text(SETTINGS + more)


def lock_of_engine(cloud: Deployed, stack: str, pid: int) -> None:
    folder = cloud.folder / "state/.pulumi/locks/organization/bezel" / stack
    folder.mkdir(parents=True)
    content = {"pid": pid, "hostname": socket.gethostname(), "username": "ann", "timestamp": "2026-09-21T14:00:00Z"}
    (folder / "1.json").write_text(json.dumps(content))


def test_each_stack_shows_file_deploy_end_and_lock(cloud: Deployed) -> None:
    write(cloud.folder, "dev", more='  bezel:labels: {expires-at: "2026-09-20"}\n')
    write(cloud.folder, "new", more='  bezel:labels: {expires-at: "2026-09-21"}\n')
    service = service_resource() | {"outputs": {"latestReadyRevision": "llm-00002-abc"}}
    lease = {"name": "l", "active_at": "2026-09-21T12:00:00Z", "ends_at": "2026-09-21T16:00:00Z"}
    type_ = "pulumi-python:dynamic/components:TpuNode"
    node = {"urn": "urn:a", "type": type_, "custom": True, "id": "a", "outputs": lease}
    cloud.keep("dev", state_of(service, node, url="https://llm.example"))
    cloud.keep("old", state_of())
    lock_of_engine(cloud, "dev", os.getpid())
    dev, new, old = (report := report_of(cloud.context)).stacks
    assert (dev.deployed, dev.revision, dev.url) == (True, "llm-00002-abc", "https://llm.example")
    assert (str(dev.deployed_at), dev.interrupted) == ("2026-09-21 12:34:00+00:00", False)
    assert (dev.expires_at, dev.is_over, new.expires_at, new.is_over) == ("2026-09-20", True, "2026-09-21", False)
    assert str(dev.lease_ends_at) == "2026-09-21 16:00:00+00:00"
    assert (dev.lock or "").startswith(f"process {os.getpid()} on ")
    assert (new.deployed, new.lock, new.model) == (False, "free", "m")
    assert (old.has_file, old.deployed, old.model) == (False, False, None)
    assert "old (no file)" in report.text()
    assert [each.stack for each in report_of(cloud.context, "new").stacks] == ["new"]


def test_what_cannot_be_read_is_not_judged_and_the_rest_is_listed(cloud: Deployed) -> None:
    write(cloud.folder, "dev", more="  bezel:labels: {expires-at: soon}\n")
    (cloud.folder / "Pulumi.bad.yaml").write_text("config: [")
    cloud.keep("dev", state_of()).write_text("no state")
    bad, dev = report_of(cloud.context).stacks
    assert (bad.model, bad.deployed) == (None, False)
    assert "its file cannot be read" in bad.notes[0]
    assert (dev.model, dev.deployed, dev.is_over) == ("m", None, None)
    assert len(dev.notes) == 2
    nowhere = replace(cloud.context, environ={**cloud.context.environ, "PULUMI_BACKEND_URL": "gs://"})
    report = report_of(nowhere)
    assert [each.deployed for each in report.stacks] == [None, None]
    assert "not judged" in report.notes[0]


def test_stack_that_exists_nowhere_is_named_with_the_one_that_was_meant(cloud: Deployed) -> None:
    write(cloud.folder, "dev")
    for stack in ("dve", "../dev"):
        with pytest.raises(UserError, match="choose one of dev"):
            report_of(cloud.context, stack)


def test_caller_of_some_stacks_sees_no_other(cloud: Deployed) -> None:
    for stack in ("dev", "theirs"):
        write(cloud.folder, stack)
        cloud.keep(stack, state_of(service_resource()))
    scoped = replace(cloud.context, scope=("dev",))
    assert [each.stack for each in report_of(scoped).stacks] == ["dev"]
    with pytest.raises(UserError) as refused:
        report_of(scoped, "theirs")
    assert "theirs or" not in str(refused.value)
    assert "choose one of dev" in str(refused.value)


def test_list_is_bounded(cloud: Deployed) -> None:
    for number in range(103):
        write(cloud.folder, f"s{number:03}")
    report = report_of(cloud.context)
    assert (len(report.stacks), report.left_out) == (100, 3)
    assert "3 further stacks" in report.text()


def test_locks_of_a_bucket_name_their_owner(cloud: Deployed) -> None:
    for stack in ("dev", "free"):
        write(cloud.folder, stack)
    lock = Lock("bezel", "dev", "t" * 32, "2026-11-01T10:00:00Z", Owner("runner", "vm-1", this_process(), None))
    with fake_bucket() as bucket:
        bucket.objects["locks/bezel/dev.json"] = (to_json(lock), 1_700_000_000_000_000)
        environ: dict[str, Any] = {
            **cloud.context.environ,
            "PULUMI_BACKEND_URL": f"gs://{bucket.name}",
            "GOOGLE_STORAGE_CUSTOM_ENDPOINT": f"{bucket.server.url}/storage/v1/",
        }
        dev, free = report_of(replace(cloud.context, environ=environ)).stacks
    assert "runner" in (dev.lock or "")
    assert (free.lock, free.deployed) == ("free", False)
