"""The remote that the printed steps add to a project goes with the forge; a remote of its owner stays."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from tools.forge.place import REMOTE, Place
from tools.forge.project import project_text

if TYPE_CHECKING:
    from pathlib import Path

PASSWORD = "not-a-secret-1"


def run_git(project: Path, *arguments: str) -> str:
    command = ["git", "-C", project, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "chat"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text("name: chat\nruntime: python\n")
    (folder / "Pulumi.dev.yaml").write_text("config: {}\n")
    run_git(folder, "init", "--quiet")
    return folder


@pytest.fixture
def place(tmp_path: Path, project: Path) -> Place:
    place = Place.at(str(tmp_path / "forge"))
    place.prepare()
    place.write_project(project)
    place.ready.write_text(project_text("http://127.0.0.1:4000", PASSWORD, project, place))
    return place


def test_the_end_of_a_forge_removes_its_remote_with_the_password(place: Place, project: Path) -> None:
    run_git(project, "remote", "add", REMOTE, place.remote())
    assert PASSWORD in (project / ".git" / "config").read_text()
    place.clear()
    assert run_git(project, "remote") == ""
    assert PASSWORD not in (project / ".git" / "config").read_text()


@pytest.mark.parametrize("address", ["https://forge.example/acme/chat.git", ""])
def test_a_remote_of_the_owner_stays(place: Place, project: Path, address: str) -> None:
    if address:
        run_git(project, "remote", "add", REMOTE, address)
    run_git(project, "remote", "add", "origin", place.remote())
    place.clear()
    assert run_git(project, "remote").split() == ([REMOTE] if address else []) + ["origin"]
    assert not place.folder.exists()
