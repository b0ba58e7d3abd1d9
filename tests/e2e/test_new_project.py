"""A project that `bezel new` makes from installed wheels lives on localcloud: up, another environment, destroy."""

from __future__ import annotations

import json
import os
import subprocess
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from bezel.cli.new.template import template_files
from tests.support.tools.fresh_environment import FreshEnvironment, without_this_clone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow
SECONDS = 300
QUICK = ("--speed", "600")


@dataclass(frozen=True)
class Team:
    """The project's folder, in which `.venv` is an environment of wheels."""

    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the environment in the project's folder."""
        variables = without_this_clone(os.environ) | {"PATH": "/usr/bin:/bin"}
        program = str(self.folder / ".venv" / "bin" / command[0])
        return subprocess.run(
            [program, *command[1:]],
            cwd=self.folder,
            env=variables,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )

    def local(self, action: str, stack: str, *options: str) -> str:
        """The output of `bezel local`, which ends well."""
        ended = self.run("bezel", "local", action, stack, *QUICK, *(["--", *options] if options else []))
        assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
        return ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory, wheels: Path) -> Iterator[Team]:
    top = tmp_path_factory.mktemp("team")
    (top / "wheels").symlink_to(wheels)
    # Nothing but what a new project names.
    named = tomllib.loads(template_files()["pyproject.toml"])["project"]["dependencies"]
    requirements = [requirement.partition("==")[0] for requirement in named]
    environment = FreshEnvironment.make(top / "environment", wheels, *requirements)
    environment.add_pulumi()
    command = [environment.folder / "bin" / "bezel", "new", "chat", "--yes", "--packages", "wheels"]
    ended = subprocess.run(
        command, cwd=top, env=without_this_clone(), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 0, ended.stderr
    # In place of `uv sync`, which needs an index for what is not of this workspace.
    (top / "chat" / ".venv").symlink_to(environment.folder)
    project = Team(top / "chat")
    yield project
    project.run("bezel", "local", "stop")


@pytest.mark.timeout(600)
def test_a_fresh_project_is_previewed_within_its_limits(team: Team) -> None:
    packs = [f"--policy-pack=policies/{name}" for name in ("hardware_cost", "security")]
    output = team.local("preview", "dev", *packs)
    assert "chat-dev" in output
    assert "policies/hardware_cost.dev.json" in output
    assert "hardware-cost@v" in output
    checked = team.run("bezel", "upgrade", "--check")
    assert (checked.returncode, checked.stderr) == (0, "")


def test_the_foundations_program_is_installed_with_a_new_project(team: Team) -> None:
    script = "from bezel.gitops.project_setup.folder import program; print((program() / '__main__.py').is_file())"
    assert team.run("python", "-c", script).stdout == "True\n"


@pytest.mark.wide
def test_an_installed_library_without_a_source_says_that_none_is_named(team: Team) -> None:
    place = team.folder.parent
    command = [team.folder / ".venv" / "bin" / "bezel", "new", "other", "--yes"]
    ended = subprocess.run(
        command, cwd=place, env=without_this_clone(), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert "--packages WHERE names another" in ended.stdout
    assert "find-links" not in (place / "other" / "pyproject.toml").read_text()


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_change_of_a_project_is_judged_by_its_base(team: Team) -> None:
    team.local("up", "dev")
    author = ["-c", "user.name=team", "-c", "user.email=team@example.com"]
    edit = "sed -i 's/max_hourly_usd: 1.10/max_hourly_usd: 1.20/' Pulumi.dev.yaml"
    script = f"""set -e
        git init --quiet --initial-branch main && echo .venv >> .git/info/exclude
        git add --all && git {" ".join(author)} commit --quiet -m one
        git switch --quiet --create change && {edit} && git {" ".join(author)} commit --quiet --all -m two
        git worktree add --quiet --detach ../judge main && ln -s "$PWD/.venv" ../judge/.venv
        eval "$(.venv/bin/bezel local env)"
        ../judge/.venv/bin/bezel ci changed --base main
        ../judge/.venv/bin/bezel ci preview dev --base main
        """
    variables = without_this_clone(os.environ) | {"PATH": "/usr/bin:/bin"}
    ended = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=team.folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "dev: Pulumi.dev.yaml: the stack's own file" in ended.stdout
    assert "Pulumi.dev.yaml cost.max_hourly_usd 1.1 → 1.2" in ended.stdout
    team.local("down", "dev")
    file = team.folder / "Pulumi.dev.yaml"
    file.write_text(file.read_text().replace("1.20", "1.10"))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_project_lives_with_a_second_environment(team: Team) -> None:
    assert "dev is in service on localcloud" in team.local("up", "dev")
    copied = team.run("bezel", "new", "stack", "trial", "--from", "dev", "--environment", "staging")
    assert copied.returncode == 0, copied.stderr
    output = team.local("up", "trial", "--policy-pack=policies/hardware_cost")
    assert "trial is in service on localcloud" in output
    assert "policies/hardware_cost.staging.json" in output
    status = team.run("bezel", "local", "outputs", "trial")
    assert json.loads(status.stdout)["settings"]["environment"] == "staging"
    # In every environment but dev the service is protected from deletion.
    refused = team.run("bezel", "local", "down", "trial", *QUICK)
    assert refused.returncode != 0
    assert "deletion_protection: never" in refused.stdout + refused.stderr
    file = team.folder / "Pulumi.trial.yaml"
    file.write_text(f"{file.read_text()}  bezel:deletion_protection: never\n")
    team.local("up", "trial")
    team.local("down", "trial")
    team.local("down", "dev")
