"""A project that `bezel new` has made, as the working folder."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bezel.cli.new.choice import DEFAULT_MODEL, choose
from bezel.cli.new.folder import make_folder
from bezel.cli.new.stack_text import stack_text
from bezel.cli.new.template import Source, project_files
from bezel.engine.project.project import Project

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    text = stack_text(choose(DEFAULT_MODEL, "", "", {}))
    make_folder(tmp_path / "chat", project_files("chat", Source(), "dev", text), with_git=False)
    monkeypatch.chdir(tmp_path / "chat")
    return Project(tmp_path / "chat")
