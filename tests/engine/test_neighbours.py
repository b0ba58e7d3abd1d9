"""Two projects of `bezel new` on one localcloud: each has its own files, and neither takes the other's resources."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from bezel.cli.main import main
from bezel.cli.new.choice import DEFAULT_MODEL, choose
from bezel.cli.new.folder import make_folder
from bezel.cli.new.stack_text import stack_text
from bezel.cli.new.template import Source, project_files
from bezel.engine.local.engine import LocalEngine
from bezel.engine.local.neighbours import check_neighbours, planned_ids
from bezel.engine.project.project import Project
from bezel.engine.state.folder import is_stack
from bezel.planner import make_plan
from bezel_base.errors import UserError
from bezel_localcloud import control

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from bezel.planner import AnyPlan

STACK = "dev"


def new_project(folder: Path) -> Project:
    text = stack_text(choose(DEFAULT_MODEL, "", "", {}))
    make_folder(folder, project_files(folder.name, Source(), STACK, text), with_git=False)
    return Project(folder)


def plan_of(project: Project, stack: str = STACK) -> AnyPlan:
    return make_plan(project.configuration(STACK), project="bezel-local", stack=stack)


def write_state(state: Path, project: str, ids: Iterable[str]) -> None:
    file = state / ".pulumi" / "stacks" / project / f"{STACK}.json"
    file.parent.mkdir(parents=True)
    resources = [{"type": "gcp:of/it:It", "id": each} for each in ids]
    file.write_text(json.dumps({"checkpoint": {"latest": {"resources": resources}}}))


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "cloud"
    control.stop(tmp_path / "cloud")


def test_a_stack_named_as_anothers_is_refused_with_its_owner(tmp_path: Path) -> None:
    plan = plan_of(new_project(tmp_path / "talk"))
    write_state(tmp_path / "state", "chat", ["other", *planned_ids(plan)])
    with pytest.raises(UserError) as refused:
        check_neighbours(tmp_path / "state", "talk", plan)
    for text in ("stack dev", "the project chat has its stack dev", "services/bezel-dev", "bezel new stack NAME"):
        assert text in str(refused.value)


@pytest.mark.parametrize(
    ("owner", "stack", "ids"),
    [("talk", STACK, None), ("chat", "speech", None), ("chat", STACK, ["projects/bezel-local/locations/a/services/b"])],
    ids=["the project itself", "another name", "a program of other resources"],
)
def test_a_stack_with_names_of_its_own_is_accepted(
    tmp_path: Path, owner: str, stack: str, ids: list[str] | None
) -> None:
    project = new_project(tmp_path / "talk")
    write_state(tmp_path / "state", owner, ids or planned_ids(plan_of(project)))
    check_neighbours(tmp_path / "state", "talk", plan_of(project, stack))


def test_a_state_that_cannot_be_read_refuses_nothing(tmp_path: Path) -> None:
    plan = plan_of(new_project(tmp_path / "talk"))
    write_state(tmp_path / "state", "chat", planned_ids(plan))
    (tmp_path / "state" / ".pulumi" / "stacks" / "chat" / f"{STACK}.json").write_text("{")
    check_neighbours(tmp_path / "state", "talk", plan)


@pytest.mark.slow
def test_two_projects_have_a_stack_of_one_name_each_of_its_own(
    tmp_path: Path, cloud: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    projects = [new_project(tmp_path / name) for name in ("chat", "talk")]
    engines = [LocalEngine(project, cloud, {"GOOGLE_PROJECT": "bezel-local"}) for project in projects]
    for engine in engines:
        engine.prepare(STACK)
        assert is_stack(cloud / "state", engine.project.name, STACK)
    chat, talk = (engine.stack_copy(STACK).read_text() for engine in engines)
    assert chat != talk, "each has a salt of its own"
    engines[0].stack_copy(STACK).unlink()
    engines[0].prepare(STACK)
    assert engines[0].stack_copy(STACK).read_text() == chat, "the state has the salt too"
    file = cloud / "state" / ".pulumi" / "stacks" / "chat" / f"{STACK}.json"
    file.unlink()
    write_other = [{"type": "gcp:of/it:It", "id": each} for each in planned_ids(plan_of(projects[0]))]
    file.write_text(json.dumps({"checkpoint": {"latest": {"resources": write_other}}}))
    monkeypatch.chdir(tmp_path / "talk")
    assert main(["local", "preview", STACK, "--dir", str(cloud)]) == 1
    assert "the project chat has its stack dev on this localcloud" in capfd.readouterr().err
