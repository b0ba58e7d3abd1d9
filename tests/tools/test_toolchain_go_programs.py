"""`tools/toolchain/go_programs.py`: programs from pinned Go modules, whole or not at all; skipped without Go."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAKE_GO = """#!/bin/sh
case "$1" in
  list) echo "$FAKE_MODULE" ;;
  build)
    echo "$*" >> "$FAKE_CALLS"
    if [ -e "$FAKE_FAILS" ]; then echo "403 Forbidden"; exit 1; fi
    while [ "$1" != -o ]; do shift; done
    printf '#!/bin/sh\\necho "called with $*"\\nexit 4\\n' > "$2"; chmod +x "$2" ;;
esac
"""


@pytest.fixture
def clone(tmp_path):
    """A clone with the pins of the programs, and a Go that notes its builds."""
    shutil.copytree(ROOT / "tools" / "toolchain", tmp_path / "tools" / "toolchain")
    shutil.copytree(ROOT / "tools" / "go", tmp_path / "tools" / "go")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "go").write_text(FAKE_GO)
    (tmp_path / "bin" / "go").chmod(0o755)
    for folder in ("templates", "options"):
        (tmp_path / "module" / folder).mkdir(parents=True)
        (tmp_path / "module" / folder / "some").write_text(folder)
        (tmp_path / "module" / folder / "some").chmod(0o444)
    return tmp_path


def run(clone: Path, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {
        "PATH": f"{clone / 'bin'}:/usr/bin:/bin",
        "XDG_CACHE_HOME": str(clone / "cache"),
        "FAKE_MODULE": str(clone / "module"),
        "FAKE_CALLS": str(clone / "calls"),
        "FAKE_FAILS": str(clone / "fails"),
    }
    return subprocess.run(
        [sys.executable, "tools/toolchain/go_programs.py", *arguments],
        cwd=clone, env=environment | variables, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


def without_go(clone: Path) -> dict[str, str]:
    (clone / "bin" / "go").unlink()
    return {"PATH": str(clone / "bin")}


@pytest.mark.slow
def test_a_program_is_built_once_and_again_when_its_pins_change(clone):
    first = run(clone, "actionlint")
    assert first.returncode == 0, first.stderr
    assert os.access(Path(first.stdout.strip()) / "actionlint", os.X_OK)
    assert run(clone, "actionlint").stdout == first.stdout
    assert len((clone / "calls").read_text().splitlines()) == 1
    (clone / "tools" / "go" / "actionlint" / "go.sum").write_text("")
    assert run(clone, "actionlint").stdout not in {"", first.stdout}


@pytest.mark.slow
def test_the_forge_brings_the_files_that_it_reads_at_run_time(clone):
    folder = Path(run(clone, "gitea").stdout.strip())
    assert (folder / "templates" / "some").read_text() == "templates"
    assert (folder / "options" / "some").stat().st_mode & 0o200


@pytest.mark.slow
def test_a_failed_build_leaves_nothing_and_gives_the_reason(clone):
    (clone / "fails").touch()
    ended = run(clone, "act")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "403 Forbidden" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert [entry for entry in (clone / "cache" / "bezel").iterdir() if entry.is_dir()] == []


@pytest.mark.slow
def test_a_program_that_runs_gives_its_own_exit_code(clone):
    ended = run(clone, "actionlint", "--", "one", "two")
    assert (ended.returncode, ended.stdout) == (4, "called with one two\n")


@pytest.mark.slow
def test_where_go_is_missing_a_run_is_skipped_with_the_reason(clone):
    ended = run(clone, "actionlint", "--", "one", **without_go(clone))
    assert (ended.returncode, ended.stdout) == (0, "")
    assert "actionlint: skipped, Go is not installed" in ended.stderr


@pytest.mark.slow
def test_in_ci_a_missing_go_is_an_error(clone):
    ended = run(clone, "actionlint", "--", "one", CI="true", **without_go(clone))
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "Go is not installed" in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("other",), ("act", "more")])
def test_wrong_arguments_show_how_it_is_called(clone, arguments):
    ended = run(clone, *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "go_programs.py NAME" in ended.stderr
