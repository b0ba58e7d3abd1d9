"""Where an environment of packages gets its Pulumi CLI from: beside it, from PATH, from the cache, or from nowhere."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from bezel.engine.local.find_cli import find_cli
from bezel_base.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 60


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment whose interpreter has no CLI beside it, with a PATH without one."""
    (tmp_path / "environment" / "bin").mkdir(parents=True)
    monkeypatch.setattr("sys.executable", str(tmp_path / "environment" / "bin" / "python"))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return tmp_path / "environment"


def write_program(file: Path, text: str = "#!/bin/sh\necho $BEZEL_LANGUAGE_HOST $BEZEL_PYTHON $*\n") -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    file.chmod(0o755)
    return file


def test_one_on_the_path_is_used_and_no_script_is_written(
    environment: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = write_program(tmp_path / "official" / "pulumi")
    monkeypatch.setenv("PATH", str(program.parent))
    assert find_cli(environment, tmp_path / "cache") == str(program)
    assert [*(environment / "bin").iterdir()] == []


def test_one_of_the_cache_starts_with_the_language_host_of_the_environment(environment: Path, tmp_path: Path) -> None:
    write_program(tmp_path / "cache" / "pulumi-1.0.0-built-abc" / "pulumi")
    (tmp_path / "cache" / "pulumi-1.0.0-built-def.part-1").mkdir()
    script = find_cli(environment, tmp_path / "cache")
    assert script == str(environment / "bin" / "pulumi")
    variables = {"PATH": os.environ["PATH"]}
    ended = subprocess.run(
        [script, "up", "a b"], capture_output=True, text=True, check=True, timeout=SECONDS, env=variables
    )
    host, python, *arguments = ended.stdout.split()
    assert host.endswith("bezel_pulumi_offline/plugins/pulumi-language-python")
    assert python == str(environment / "bin" / "python")
    assert arguments == ["up", "a", "b"]
    assert find_cli(environment, tmp_path / "nothing") == script


def test_without_any_the_place_to_install_it_from_is_named(environment: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"install it: https://www\.pulumi\.com/docs/install/"):
        find_cli(environment, tmp_path / "cache")
    assert [*(environment / "bin").iterdir()] == []
