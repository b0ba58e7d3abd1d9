"""A project that `bezel new` makes from installed wheels lives on localcloud: up, another environment, destroy."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.support.tools.fresh_environment import FreshEnvironment, build_wheels, without_this_clone

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
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    top = tmp_path_factory.mktemp("team")
    wheels = build_wheels(top / "wheels")
    environment = FreshEnvironment.make(top / "environment", wheels, "bezel", "bezel-policies", "bezel-stacks")
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
