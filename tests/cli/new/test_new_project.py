"""`bezel new`: the folder that it makes, with and without questions."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from bezel.cli.main import main
from bezel.cli.new.choice import choose
from bezel.cli.new.folder import checked_target
from bezel.cli.new.stack_text import stack_text
from bezel.cli.new.template import Source, fill_in, project_files, template_files
from bezel.engine.project.pipeline_file import read_pipeline
from bezel.engine.project.project import Project
from bezel.planner import make_plan
from bezel_base.errors import WrongValueError
from bezel_catalog import models
from tools.docs import project_template
from tools.release.version import versions

ROOT = Path(__file__).parents[3]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
SECONDS = 60


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels" / f"bezel-{VERSION}-py3-none-any.whl").touch()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def new(*arguments: str) -> int:
    return main(["new", *arguments, "--packages", "../wheels"])


def files_below(folder: Path) -> dict[str, str]:
    return {file.relative_to(folder).as_posix(): file.read_text() for file in folder.rglob("*") if file.is_file()}


def test_the_files_of_a_project_are_those_of_the_template(here: Path) -> None:
    assert new("chat", "--yes") == 0
    made = files_below(here / "chat")
    wanted = {path: fill_in(text, "chat") for path, text in template_files().items()}
    pyproject = made.pop("pyproject.toml")
    wheels = json.dumps(str(here.parent / "wheels"))
    assert pyproject.removeprefix(wanted.pop("pyproject.toml")) == f"find-links = [{wheels}]\n"
    assert made == wanted
    assert tomllib.loads(pyproject)["tool"]["uv"]["find-links"] == [str(here.parent / "wheels")]
    assert os.access(here / "chat" / "plugins" / "pulumi-python" / "pulumi-resource-pulumi-python", os.X_OK)
    assert [entry.name for entry in here.iterdir()] == ["chat"]


def test_copies_in_the_template_are_up_to_date() -> None:
    repair = "python -m tools.docs.project_template --write"
    template = template_files(project_template.TEMPLATE)
    for path, text in project_template.made_files().items():
        assert template[path] == text, f"{path}: {repair}"
    assert [*versions(ROOT)] == [VERSION]
    assert f'"bezel=={VERSION}"' in template["pyproject.toml"]


@pytest.mark.parametrize("model", sorted(models()))
def test_the_stack_file_of_each_checkpoint_is_planned_as_it_was_chosen(model: str) -> None:
    choice = choose(model, "", "", {"allowed-accelerators": {"limits": {"dev": ["nvidia-l4"]}}})
    text = stack_text(choice)
    config = {key.removeprefix("bezel:"): value for key, value in yaml.safe_load(text)["config"].items()}
    plan = make_plan(config, project="my-project", stack=choice.stack)
    assert (plan.model, plan.environment) == (model, "dev" if choice.accelerator == "nvidia-l4" else "prod")
    assert f"{choice.hourly.usd:.4f} USD per hour" in text


@pytest.mark.slow
def test_a_dearer_accelerator_than_the_cheapest_is_never_chosen() -> None:
    price = {
        name: choose("gemma-4-12b-it", name, "", {}).hourly.usd for name in ("v6e-1", "v6e-4", "nvidia-rtx-pro-6000")
    }
    chosen = choose("gemma-4-12b-it", "", "", {})
    assert price[chosen.accelerator] == min(price.values())


def test_a_project_of_another_environment_names_its_stack_everywhere(here: Path) -> None:
    assert new("gpu", "--yes", "--accelerator", "nvidia-rtx-pro-6000") == 0
    project = Project(here / "gpu")
    assert project.stacks() == ["prod"]
    assert read_pipeline(project).stacks == {"prod": "prod"}
    assert "STACK ?= prod" in (here / "gpu" / "Makefile").read_text()
    assert "dev" not in re.findall(r"\w+", (here / "gpu" / "README.md").read_text())


def test_an_empty_folder_becomes_the_project(here: Path) -> None:
    assert new(".", "--yes") == 0
    assert Project(here).name == "work"
    assert [entry for entry in here.parent.iterdir() if entry.name.startswith(".")] == []


@pytest.mark.slow
def test_git_makes_a_repository_without_a_commit(here: Path) -> None:
    assert new("chat", "--yes", "--git") == 0
    head = subprocess.run(["git", "-C", "chat", "symbolic-ref", "HEAD"], capture_output=True, text=True, check=True)
    assert head.stdout == "refs/heads/main\n"
    assert new("plain", "--yes") == 0
    assert not (here / "plain" / ".git").exists()


@pytest.mark.slow
def test_a_person_is_asked_for_what_is_missing_until_an_answer_can_be_used(here: Path) -> None:
    output = typed_at(here, "bad name\nchat\ngemma-4-12b-it-fp9\ngemma-4-12b-it-fp8\n\nmars\nus-east4\n")
    for text in ("NAME = bad name", "--model = gemma-4-12b-it-fp9", "gemma-4-12b-it-fp8", "--region = mars"):
        assert text in output, output
    assert Project(here / "chat").configuration("dev")["region"] == "us-east4"


@pytest.mark.slow
@pytest.mark.parametrize("answers", ["", "chat\n", "bad name\n" * 5, "chat\n" + "\x04"])
def test_answers_that_end_too_early_leave_nothing(
    here: Path, answers: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    controller, terminal = pty.openpty()
    with os.fdopen(controller, "wb", buffering=0) as keyboard, os.fdopen(terminal, encoding="utf-8") as standard_input:
        keyboard.write((answers + "\x04" * 10).encode())  # several ends, so that no further question waits
        monkeypatch.setattr(sys, "stdin", standard_input)
        assert new() != 0
    assert "so nothing was made" in "".join(capsys.readouterr())
    assert [*here.iterdir()] == []


def typed_at(here: Path, answers: str) -> str:
    """The output of `bezel new` on a terminal at which this is typed."""
    controller, terminal = pty.openpty()
    command = [sys.executable, "-c", "from bezel.cli.main import main; main(['new', '--packages', '../wheels'])"]
    try:
        os.write(controller, answers.encode())
        ended = subprocess.run(
            command, stdin=terminal, capture_output=True, text=True, timeout=SECONDS, check=False, cwd=here
        )
    finally:
        os.close(controller)
        os.close(terminal)
    return ended.stdout + ended.stderr


@pytest.mark.slow
@given(st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=110))
def test_whatever_name_is_accepted_is_one_that_pulumi_accepts(name: str) -> None:
    try:
        target = checked_target(name, Path("/nonexistent"))
    except WrongValueError:
        return
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", target.name)
    files = project_files(target.name, Source(), "dev", "config: {}\n")
    assert yaml.safe_load(files["Pulumi.yaml"])["name"] == target.name
    assert tomllib.loads(files["pyproject.toml"])["project"]["name"] == "deployment"


@pytest.mark.parametrize("name", ["on", "1.0", "0x1f", "null", "2030-01-01", "1e5", "bezel", "pulumi", "A_b.c-9", "~"])
def test_names_that_yaml_reads_as_something_else_stay_names(name: str) -> None:
    if name == "~":
        with pytest.raises(WrongValueError):
            checked_target(name, Path("/nonexistent"))
        return
    files = project_files(checked_target(name, Path("/nonexistent")).name, Source(), "dev", "config: {}\n")
    assert yaml.safe_load(files["Pulumi.yaml"])["name"] == name


@pytest.mark.parametrize(
    ("place", "read"),
    [
        ("", {"package": False}),
        ('/dist of "me"\\', {"package": False, "find-links": ['/dist of "me"\\']}),
        ("https://packages.example/simple", {"package": False, "index": [
            {"name": "bezel", "url": "https://packages.example/simple"}]}),
    ],
)  # fmt: skip
def test_the_source_of_the_library_is_read_by_uv_as_it_was_given(place: str, read: dict[str, object]) -> None:
    files = project_files("chat", Source(place), "dev", "config: {}\n")
    assert tomllib.loads(files["pyproject.toml"])["tool"]["uv"] == read


@pytest.mark.parametrize("page", ["docs/start.md", "templates/gemma/README.md"])
def test_pages_name_each_file_that_belongs_to_bezel_or_its_owner(page: str) -> None:
    text = (ROOT / page).read_text()
    entries = {path.partition("/")[0] for path in template_files()} - {"README.md", ".gitignore", "Pulumi.yaml"}
    assert {entry for entry in entries if f"`{entry}" not in text} == set()
