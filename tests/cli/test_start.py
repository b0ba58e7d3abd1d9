"""Scripts of the programs: an interrupt while they are imported ends them without a traceback, other errors stay."""

from __future__ import annotations

import importlib
import signal
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bezel_base.ending_signals import INTERRUPTED
from bezel_base.start import import_and_run

if TYPE_CHECKING:
    from collections.abc import Sequence

ROOT = Path(__file__).parents[2]
PROJECTS = {"bezel": ".", "bezel-bench": "packages/bench", "localcloud": "packages/localcloud"}


class InterruptedImport:
    """The user's Ctrl-C while a module is looked for."""

    def __init__(self, module: str) -> None:
        self.module = module

    def find_spec(self, name: str, _path: Sequence[str] | None, _target: object = None) -> None:
        if name == self.module:
            signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize("program", [*PROJECTS])
def test_an_interrupt_of_the_import_ends_a_program(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    project = tomllib.loads((ROOT / PROJECTS[program] / "pyproject.toml").read_text())["project"]
    module, _, function = project["scripts"][program].partition(":")
    start = importlib.import_module(module)
    imported = f"{module.rpartition('.')[0]}.main"
    monkeypatch.delitem(sys.modules, imported, raising=False)
    monkeypatch.setattr(sys, "meta_path", [InterruptedImport(imported), *sys.meta_path])
    assert getattr(start, function)() == INTERRUPTED


def test_the_exit_code_is_that_of_the_program_and_an_error_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ended_program.py").write_text("def main(): return 3\n")
    (tmp_path / "broken_program.py").write_text("raise ValueError('broken')\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert import_and_run("ended_program") == 3
    with pytest.raises(ValueError, match="broken"):
        import_and_run("broken_program")
