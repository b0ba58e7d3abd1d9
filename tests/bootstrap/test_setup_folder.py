"""Folder of a set-up: what a killed engine has half written there does not stop the next run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bezel.foundation.settings import NAMESPACE
from bezel.gitops.project_setup.folder import SetupFolder
from bezel_base.errors import UserError
from tests.support.bootstrap.project import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

STATE = json.dumps({"version": 3, "checkpoint": {"stack": PROJECT, "latest": {"resources": []}}})


@pytest.fixture
def folder(tmp_path: Path) -> SetupFolder:
    made = SetupFolder(tmp_path, PROJECT)
    made.prepare({"gcp:project": PROJECT})
    return made


def file_of(folder: SetupFolder) -> Path:
    file = folder.state / ".pulumi" / "stacks" / NAMESPACE / f"{folder.stack}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def test_truncated_files_are_removed_and_an_earlier_state_is_restored(folder: SetupFolder) -> None:
    """Truncated attributes are removed and a truncated state is the previous one."""
    file, before = file_of(folder), file_of(folder).with_suffix(".json.bak")
    attributes = file.with_name(f"{file.name}.attrs")
    file.write_text(STATE)
    attributes.write_text("")
    folder.prepare({})
    assert (file.read_text(), attributes.exists()) == (STATE, False)

    file.write_text(STATE[:20])
    before.write_text(STATE)
    folder.prepare({})
    assert file.read_text() == STATE
    assert folder.configuration() == {"gcp:project": PROJECT}


def test_a_complete_state_stays_and_one_that_nothing_replaces_is_an_error(folder: SetupFolder) -> None:
    file = file_of(folder)
    file.write_text(STATE)
    file.with_suffix(".json.bak").write_text("{}")
    folder.prepare({})
    assert file.read_text() == STATE
    file.write_text("")
    with pytest.raises(UserError, match="truncated"):
        folder.prepare({})
