"""Runs of pytest in a folder of its own, as a project of its own has them."""

import os
import subprocess
import sys
from pathlib import Path

SECONDS = 100


def pytest_command(folder: Path, *options: str) -> list[str]:
    """The command line; temporary folders of the run are below the folder."""
    arguments = ("-q", "-p", "no:cacheprovider", f"--basetemp={folder / 'temporary'}", f"--rootdir={folder}", *options)
    return [sys.executable, "-m", "pytest", *arguments, str(folder)]


def environment() -> dict[str, str]:
    """The variables of this process without those by which pytest's own runs know each other."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "GOOGLE", "CLOUDSDK"))}


def write_tests(folder: Path, tests: str, ini: str = "") -> None:
    """Write a file of tests and the ini file."""
    (folder / "test_own.py").write_text(tests)
    (folder / "pytest.ini").write_text(f"[pytest]\n{ini}")


def run_pytest(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the tests of a folder to their end."""
    return subprocess.run(
        pytest_command(folder, *options),
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def processes_in(folder: Path) -> list[str]:
    """Command lines of the processes that name a folder, or work in it."""
    command_lines = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command_line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            place = str((entry / "cwd").readlink())
        except OSError:  # it has ended, or is another user's
            continue
        if str(folder) in command_line or place.startswith(str(folder)):
            command_lines.append(command_line)
    return command_lines
