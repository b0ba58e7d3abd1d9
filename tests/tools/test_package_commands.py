"""The commands in a package's README, typed in an environment with that package's wheel and what it needs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from typing import TYPE_CHECKING

import pytest

from bezel_base.loopback.listeners import free_port
from tests.support.docs.markdown import ROOT
from tests.support.tools.fresh_environment import FreshEnvironment, without_this_clone

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow
SECONDS = 100


def shell_blocks(package: str) -> list[str]:
    """The commands of a package's README, without the installation."""
    text = (ROOT / "packages" / package / "README.md").read_text(encoding="utf-8")
    return [
        block
        for block in re.findall(r"^```sh\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
        if not block.startswith("pip ")
    ]


def type_commands(environment: FreshEnvironment, block: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a block as a script that ends at the first failure; whatever it started has ended after it."""
    path = f"{environment.folder / 'bin'}:/usr/bin:/bin"
    with subprocess.Popen(
        ["bash", "-euc", block],
        cwd=folder,
        env=without_this_clone() | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as script:
        try:
            out, err = script.communicate(timeout=SECONDS)
        finally:
            if script.poll() is None:
                os.killpg(script.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(script.args, script.returncode, out, err)


def test_simulated_server_runs_as_its_readme_says(tmp_path: Path, wheels: Path) -> None:
    environment = FreshEnvironment.make(tmp_path / "environment", wheels, "bezel-simulated-vllm")
    assert not environment.installed & {"bezel", "bezel-localcloud", "pulumi"}
    [block] = shell_blocks("simulated-vllm")
    assert ":8000/" in block
    ended = type_commands(environment, block.replace("8000", str(free_port())), tmp_path)
    assert ended.returncode == 0, ended.stderr + (tmp_path / "server.log").read_text()
    assert '"object":"chat.completion"' in ended.stdout
    assert "Application shutdown complete" in ended.stderr


def test_failing_command_of_a_block_is_noticed(tmp_path: Path) -> None:
    environment = FreshEnvironment(tmp_path, frozenset())
    assert type_commands(environment, "simulated-vllm --version\necho went on\n", tmp_path).returncode == 127
