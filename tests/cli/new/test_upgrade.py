"""`bezel upgrade --check`: what differs from the installed version, and that nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bezel.cli.main import main
from bezel.cli.new.upgrade import find_differences
from bezel.engine.outcomes import Exit

if TYPE_CHECKING:
    from pathlib import Path

    from bezel.engine.project.project import Project


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def differing(project: Project, version: str) -> dict[str, str]:
    differences, problems = find_differences(project, version)
    assert not problems
    return {each.where: each.text for each in differences}


@pytest.mark.usefixtures("project")
def test_a_fresh_project_has_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["upgrade", "--check"]) == Exit.DONE
    assert "nothing differs" in capsys.readouterr().out


def test_a_newer_version_differs_by_its_pins_alone(project: Project) -> None:
    before = contents(project.folder)
    (text,) = differing(project, "0.2.0").values()
    assert "-bezel==0.1.0\n+bezel==0.2.0" in text
    assert "-bezel-stacks==0.1.0\n+bezel-stacks==0.2.0" in text
    assert contents(project.folder) == before


CHANGED = {
    "a workflow": (".github/workflows/deploy.yml", "timeout-minutes: 120", "timeout-minutes: 1", "minutes: 120"),
    "a pack": ("policies/price/__main__.py", "serve(", "print(", "+serve("),
    "the plugin": ("plugins/pulumi-python/pulumi-resource-pulumi-python", "exec ", "echo ", "+exec "),
    "the schema": ("stack.schema.json", '"title": "Stack file of Bezel"', '"title": "Old"', '+  "title": "Stack file'),
    "a policy without a limit": (
        "policies/hardware_cost.dev.json", '  "always-on": {"limits": {"dev": 0}},\n', "", '+"always-on"'),
    "another release of vLLM": (
        "Pulumi.dev.yaml", "config:\n", 'config:\n  bezel:vllm_version: "0.31.0"\n', "-bezel:vllm_version: 0.31.0"),
    "a stack that is refused": ("Pulumi.dev.yaml", "max_hourly_usd: 1.10", "max_hourly_usd: 0.10", "above the limit"),
    "a stack that cannot be read": ("Pulumi.dev.yaml", "config:\n", "config: [\n", "it cannot be read"),
    "a program of one's own": ("__main__.py", "run()", "run()\nprint()", "-print()"),
    "no pin": ("pyproject.toml", "bezel", "other", "no dependency pins bezel"),
}  # fmt: skip


@pytest.mark.parametrize(("file", "old", "new", "phrase"), CHANGED.values(), ids=CHANGED)
def test_each_kind_of_difference_is_shown_and_nothing_is_written(
    project: Project, capsys: pytest.CaptureFixture[str], file: str, old: str, new: str, phrase: str
) -> None:
    path = project.folder / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    before = contents(project.folder)
    assert main(["upgrade", "--check"]) == Exit.DRIFTED
    output = capsys.readouterr().out
    assert file in output
    assert phrase in output
    assert contents(project.folder) == before


OWN = {
    "other limits": ("policies/hardware_cost.dev.json", '{"dev": 6}', '{"dev": 9}'),
    "another default of make": ("Makefile", "STACK ?= dev", "STACK ?= prod"),
    "another README": ("README.md", "# chat", "# Our chat"),
    "another description": ("Pulumi.yaml", "Gemma 4 on vLLM", "Ours"),
    "another file to ignore": (".gitignore", ".venv/", ".venv/\nnotes/"),
}


@pytest.mark.parametrize(("file", "old", "new"), OWN.values(), ids=OWN)
def test_what_belongs_to_the_project_is_no_difference(project: Project, file: str, old: str, new: str) -> None:
    path = project.folder / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    assert differing(project, "0.1.0") == {}


def test_a_missing_file_is_shown_whole(project: Project) -> None:
    (project.folder / "Makefile").unlink()
    assert "+up: setup ## deploy STACK (dev)" in differing(project, "0.1.0")["Makefile"]


WRONG = {
    "no TOML": ("pyproject.toml", "[", "it is not valid TOML"),
    "a project that is a number": ("pyproject.toml", "project = 3", "nothing pins the library"),
    "a text of dependencies": ("pyproject.toml", '[project]\ndependencies = "bezel"', "write a list of texts"),
    "a newer pin": ("pyproject.toml", '[project]\ndependencies = ["bezel==99.0"]', "99.0\n   it is newer than"),
    "no JSON": ("policies/security.prod.json", "{", "it is not valid JSON"),
    "a list of limits": ("policies/security.dev.json", "[]", "it configures no policy"),
    "a number of limits": ("policies/hardware_cost.dev.json", "3", "it configures no policy"),
    "another encoding": ("Makefile", "\udcff", "it cannot be read as text"),
    "a large workflow": (".github/workflows/deploy.yml", "#" * (1 << 18) + "\n", "comparing it could take hours"),
    "a large Makefile": ("Makefile", "a:\n" * (1 << 17), "comparing it could take hours"),
}


@pytest.mark.parametrize(("file", "content", "phrase"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_compared_is_named(
    project: Project, capsys: pytest.CaptureFixture[str], file: str, content: str, phrase: str
) -> None:
    (project.folder / file).write_text(content, errors="surrogateescape")
    before = contents(project.folder)
    assert main(["upgrade", "--check"]) == 1
    error = capsys.readouterr().err
    assert phrase in error
    assert "Repair: " in error
    assert contents(project.folder) == before


def test_all_that_cannot_be_compared_is_named_at_once(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    (project.folder / "pyproject.toml").unlink()
    (project.folder / "policies/security.prod.json").write_text("{")
    assert main(["upgrade", "--check"]) == 1
    error = capsys.readouterr().err
    assert error.count("Repair: ") == 2
    assert "pyproject.toml" in error
    assert "security.prod.json" in error


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("arguments", "phrase"),
    [([], "--check = (not set)"), (["--check", "dev"], "unrecognized"), (["--write"], "--write")],
)
def test_wrong_arguments_end_with_2(capsys: pytest.CaptureFixture[str], arguments: list[str], phrase: str) -> None:
    try:
        code = main(["upgrade", *arguments])
    except SystemExit as ended:
        code = int(ended.code or 0)
    assert code == 2
    assert phrase in capsys.readouterr().err


def test_a_folder_without_a_project_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["upgrade", "--check"]) == 1
    assert "no Pulumi project" in capsys.readouterr().err
