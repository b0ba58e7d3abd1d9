"""Commands of a message are those that the shell has where it is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bezel.cli.local.typed_commands import as_typed

if TYPE_CHECKING:
    from pathlib import Path

TEXT = """\
deploy it first: `make up STACK=dev`; `.venv/bin/bezel status dev` shows it, `bezel plan dev` its values.
bezel reads `bezel:region`; `make up` and `make setup` again.
  eval "$(bezel local env)"
  .venv/bin/bezel query dev "hello"
  make down STACK=dev
"""
IN_PROJECT = TEXT.replace("`bezel plan", "`.venv/bin/bezel plan").replace("$(bezel", "$(.venv/bin/bezel")


def shell(folder: Path, *programs: str) -> dict[str, str]:
    """Variables of a shell whose PATH has these programs."""
    place = folder / "programs"
    place.mkdir()
    for name in programs:
        (place / name).write_text("#!/bin/sh\n")
        (place / name).chmod(0o755)
    return {"PATH": str(place)}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "chat"
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "bezel").touch()
    (folder / "Makefile").write_text("up: setup\n\ndown: setup\n\nsetup:\n")
    return folder


def test_a_project_has_its_own_program_and_recipes(project: Path, tmp_path: Path) -> None:
    assert as_typed(TEXT, project, shell(tmp_path)) == IN_PROJECT
    (project / "docs").mkdir()
    assert "`../.venv/bin/bezel plan dev`" in as_typed(TEXT, project / "docs", {"PATH": ""})


def test_a_command_that_the_shell_has_stays_as_it_is(project: Path, tmp_path: Path) -> None:
    assert as_typed(TEXT, project, shell(tmp_path, "bezel")) == TEXT


def test_a_folder_without_recipes_has_the_commands_that_they_call(tmp_path: Path) -> None:
    text = as_typed(TEXT, tmp_path, shell(tmp_path, "bezel"))
    assert "`bezel local up dev`" in text
    assert "  bezel local down dev\n" in text
    assert "`bezel local up STACK` and `make setup`" in text
    assert "bezel reads `bezel:region`" in text
    assert ".venv" not in text


def test_a_folder_without_any_program_keeps_the_usual_name(tmp_path: Path) -> None:
    assert "`bezel status dev`" in as_typed(TEXT, tmp_path, {"PATH": ""})
