"""The completion scripts: bash completes commands, options, choices and stacks; each shell gets a script."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bezel.cli.command_table import root_parser
from bezel.cli.main import main

BASH = shutil.which("bash")
# Completes a line as bash does when the key is pressed, and prints the candidates.
COMPLETE = """
source ./script
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_shtab_bezel bezel "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""


@pytest.fixture
def folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["completion", "bash"]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    for stack in ("l4-qat", "l4-fp8", "v6e4.moe"):
        (tmp_path / f"Pulumi.{stack}.yaml").write_text("")
    return tmp_path


@pytest.mark.slow
@pytest.mark.skipif(BASH is None, reason="needs bash")
@pytest.mark.parametrize(
    ("arguments", "candidates"),
    [
        (["be"], {"bench"}),
        (["pl"], {"plan"}),
        (["local", ""], {"up", "preview", "refresh", "down", "outputs", "start", "stop", "status", "env", "recover"}),
        (["local", "fault", "cl"], {"clear"}),
        (["plan", "l4"], {"l4-qat", "l4-fp8"}),
        (["local", "up", "v"], {"v6e4.moe"}),
        (["bench", "run", "--stack", ""], {"l4-qat", "l4-fp8", "v6e4.moe"}),
        (["bench", "run", "--arr"], {"--arrivals"}),
        (["bench", "run", "--arrivals", "p"], {"poisson"}),
        (["--errors", ""], {"text", "json"}),
        (["catalog", "show", "mo"], {"models"}),
        (["completion", "f"], {"fish"}),
        (["plan", "no-such"], set()),
    ],
)
def test_bash_completes(folder: Path, arguments: list[str], candidates: set[str]) -> None:
    command = ["bash", "--norc", "-c", COMPLETE, "-", "bezel", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    completions = {word for word in done.stdout.split("\n") if word}
    assert candidates <= completions if arguments[-1] == "" else candidates == completions


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_script_names_every_command_and_every_option(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for command in root_parser().fill()._subparsers._group_actions[0].choices:
        assert re.search(rf"\b{command}\b", script)
    for option in ("requests-per-user", "service-account", "of-stack", "adopt"):
        assert option in script
