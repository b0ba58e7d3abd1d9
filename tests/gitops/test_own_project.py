"""A project of `bezel new` on a forge: the steps that are printed for its owner lead from a branch to a deploy."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.gitops.programs import program
from tests.support.gitops.team import running_team
from tools.forge.place import Place
from tools.forge.project import BRANCH, problem_of, project_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.gitops.team import Team

PASSWORD = "not-a-secret-1"
SECONDS = 600.0
LOOK_SECONDS = 2.0
# Its owner's, who may have no settings of git.
OWNER = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in
         (("NAME", "you"), ("EMAIL", "you@acme.example"))}  # fmt: skip


def new_project(folder: Path, wheels: Path) -> Path:
    command = [Path(sys.executable).parent / "bezel", "new", "chat", "--yes", "--packages", wheels]
    subprocess.run(command, cwd=folder, capture_output=True, timeout=120, check=True)
    return folder / "chat"


def begin_repository(project: Path) -> None:
    for arguments in (["init", "--quiet", "--initial-branch", "main"], ["add", "--all"], ["commit", "-qm", "Begin"]):
        subprocess.run(["git", "-C", project, *arguments], env=os.environ | OWNER, timeout=60, check=True)


def steps(text: str) -> list[str]:
    """The indented paragraphs of a text: what is pasted at once."""
    parts = [part for part in text.split("\n\n") if part.strip()]
    return [part.strip("\n") for part in parts if all(line.startswith("  ") for line in part.strip("\n").splitlines())]


def problem_after(change: str, tmp_path: Path) -> str:
    """What is said about a project without a needed thing, or with a change."""
    project = tmp_path / "chat"
    (project / ".github" / "workflows").mkdir(parents=True)
    for name in ("Pulumi.yaml", "bezel.toml", ".github/workflows/preview.yml"):
        (project / name).write_text("name: chat\n")
    if change == "no commit":
        return problem_of(project)
    begin_repository(tmp_path if change == "inside" else project)
    if change == "changed":
        (project / "bezel.toml").write_text("")
    if change == "no workflow":
        (project / ".github" / "workflows" / "preview.yml").unlink()
    return problem_of(project)


@pytest.mark.parametrize(
    ("change", "phrase"),
    [
        ("none", ""),
        ("no commit", "git -C"),
        ("changed", "changes that are in no commit"),
        ("inside", "top of a repository"),
        ("no workflow", "no .github/workflows/preview.yml"),
    ],
)
def test_a_folder_that_no_forge_can_have_is_refused_with_its_repair(change: str, phrase: str, tmp_path: Path) -> None:
    problem = problem_after(change, tmp_path)
    assert phrase in problem
    assert bool(problem) == bool(phrase)


@pytest.fixture
def team(tmp_path: Path, act: Path, wheels: Path) -> Iterator[Team]:
    project = new_project(tmp_path, wheels)
    subprocess.run(["make", "--silent", "setup"], cwd=project, capture_output=True, timeout=300, check=True)
    begin_repository(project)
    with running_team(program("gitea"), act, tmp_path / "forge", PASSWORD, project=project) as team:
        yield team


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.gitops
@pytest.mark.timeout(1200)
def test_the_printed_steps_lead_from_a_branch_to_a_deploy(team: Team) -> None:
    project = team.copy.folder
    page, change, look, approve, operate, approve_judge, _ = steps(
        project_text(team.forge.url, PASSWORD, project, Place(team.folder))
    )
    assert page.strip() == f"{team.forge.url}/team/chat"
    see_state, see_comment = (line for line in look.splitlines())
    *decide, see_deploy = approve.splitlines()

    def run_commands(commands: str) -> str:
        function = change[change.index("  forge() {") : change.index("; }") + 3]
        ended = subprocess.run(
            ["bash", "-ec", f"{function}\n{commands}"],
            cwd=project,
            env=os.environ | OWNER,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    def await_success(command: str, workflow: str) -> None:
        end = time.monotonic() + SECONDS
        while (state := run_commands(command).strip()) in {"", "pending"} and time.monotonic() < end:
            time.sleep(LOOK_SECONDS)
        assert state == "success", "".join(team.log(run) for run in team.forge.runs(workflow))

    run_commands(change)
    await_success(see_state, "preview.yml")
    comment = run_commands(see_comment)
    assert "Preview: **allowed**" in comment
    assert "USD/h" in comment
    assert team.services("dev") == []
    run_commands(decide[0])
    team.forge.wait_for("the merge", lambda: has_merged(team, run_commands, decide[1]))
    await_success(see_deploy, "deploy.yml")
    assert team.services("dev") != []
    assert "model        gemma-4-12b-it-qat-w4a16" in run_commands(operate)
    *_, deploy = approve_judge.splitlines()
    deploys = f"{operate}\n{deploy.replace(' --approve-judge DIGEST', '')}"
    assert "address: http://" in run_commands(deploys), "the branch has the tree that was merged"
    assert '"owner": "speech"' in json.dumps(team.pipeline.read(".pulumi/stacks/chat/dev.json"))
    assert BRANCH in team.copy.git("branch", "--show-current")


def has_merged(team: Team, run_commands: Callable[[str], str], command: str) -> bool:
    """Merge unless it is merged; the forge may still be checking the branch."""
    if team.forge.repository("GET", "/pulls/1")["merged"]:
        return True
    try:
        run_commands(command)
    except AssertionError:
        return False
    return bool(team.forge.repository("GET", "/pulls/1")["merged"])
