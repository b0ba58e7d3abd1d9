"""What is left on a localcloud after a stack was destroyed: every other stack that exists there, of any project."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from bezel.engine.local.cloud_stacks import cloud_stacks

if TYPE_CHECKING:
    from pathlib import Path

PLACE = "projects/bezel-local"
SERVICE, QUEUED = f"{PLACE}/locations/us-east4/services/llm", f"{PLACE}/locations/us-east5-a/queuedResources/llm"
ACCOUNT = f"{PLACE}/serviceAccounts/llm@bezel-local.iam.gserviceaccount.com"
PENDING = [{"type": "creating"}]
WEIGHTS = {"buckets": ["models"], "enabledApis": ["run.googleapis.com"]}


def write_state(state: Path, name: str, *ids: str, pending: Any = ()) -> None:
    file = state / ".pulumi" / "stacks" / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    resources = [{"type": "pulumi:pulumi:Stack"}, *({"type": "gcp:of/it:It", "id": each} for each in ids)]
    latest = {"resources": resources, "pending_operations": list(pending)}
    file.write_text(json.dumps({"checkpoint": {"latest": latest}}))


@pytest.mark.parametrize(
    ("ids", "pending", "inventory"),
    [
        ((SERVICE,), (), {"services": [SERVICE]}),
        ((ACCOUNT,), (), {"accounts": ["llm@bezel-local.iam.gserviceaccount.com"]}),
        (("state-bucket",), (), {"buckets": ["state-bucket"]}),
        ((), PENDING, {}),
    ],
    ids=["serving", "made in part", "no server", "interrupted at its first resource"],
)
def test_a_stack_that_exists_is_left(
    tmp_path: Path, ids: tuple[str, ...], pending: Any, inventory: dict[str, list[str]]
) -> None:
    write_state(tmp_path, "chat/dev", *ids, pending=pending)
    present = cloud_stacks(tmp_path, WEIGHTS | inventory)
    assert (present.stacks, present.others) == ((("chat", "dev"),), ())
    assert present.text("chat") == "dev is deployed on it"
    assert present.text("talk") == "dev of the project chat is deployed on it"


@pytest.mark.parametrize("ids", [(), (SERVICE, ACCOUNT)], ids=["destroyed", "of a cloud that was reset"])
def test_a_stack_of_which_nothing_exists_is_not_left(tmp_path: Path, ids: tuple[str, ...]) -> None:
    write_state(tmp_path, "chat/dev", *ids)
    (tmp_path / ".pulumi" / "stacks" / "chat" / "cut.json").write_text("{")
    present = cloud_stacks(tmp_path, WEIGHTS)
    assert (present.stacks, present.others, present.text("chat")) == ((), (), "")


def test_what_runs_without_a_state_here_is_left(tmp_path: Path) -> None:
    present = cloud_stacks(tmp_path / "none", WEIGHTS | {"queuedResources": [QUEUED]})
    assert present.text("chat") == f"{QUEUED} (in no stack's state) is deployed on it"


def test_machines_of_a_left_stack_are_not_named_besides(tmp_path: Path) -> None:
    write_state(tmp_path, "chat/dev", SERVICE)
    write_state(tmp_path, "chat/trial", ACCOUNT.replace("llm@", "trial@"))
    other = SERVICE.replace("/llm", "/other")
    present = cloud_stacks(tmp_path, {"services": [SERVICE, other], "queuedResources": [QUEUED]})
    assert (present.stacks, present.others) == ((("chat", "dev"),), (other,))
