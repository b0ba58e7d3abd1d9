"""`tools/toolchain/clients.py`: outside clients from their pins, whole or not at all."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FAKE_UV = """#!/bin/sh
echo "$*" >> "$FAKE_CALLS"
case "$1" in
  venv) for folder; do :; done; mkdir -p "$folder/bin" && : > "$folder/bin/python" ;;
  pip) if [ -e "$FAKE_FAILS" ]; then echo "no route to host" >&2; exit 2; fi ;;
esac
"""


@pytest.fixture
def clone(tmp_path):
    """A clone with the pins of one environment, and a uv that notes its calls."""
    shutil.copytree(ROOT / "tools" / "toolchain", tmp_path / "tools" / "toolchain")
    pins = tmp_path / "tests" / "clients" / "requirements"
    pins.mkdir(parents=True)
    (pins / "some.txt").write_text("some==1\n")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "uv").write_text(FAKE_UV)
    (programs / "uv").chmod(0o755)
    return tmp_path


def run(clone: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "tools/toolchain/clients.py", *arguments],
        cwd=clone,
        env={
            "PATH": f"{clone / 'bin'}:/usr/bin:/bin",
            "XDG_CACHE_HOME": str(clone / "cache"),
            "FAKE_CALLS": str(clone / "calls"),
            "FAKE_FAILS": str(clone / "fails"),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def made_programs(clone: Path) -> list[str]:
    return sorted(entry.name for entry in (clone / "cache" / "bezel").iterdir() if entry.is_dir())


@pytest.mark.slow
def test_an_environment_is_made_once_and_again_when_its_pins_change(clone):
    first = run(clone, "python", "some")
    assert first.returncode == 0, first.stderr
    assert (Path(first.stdout.strip()) / "bin" / "python").exists()
    assert run(clone, "python", "some").stdout == first.stdout
    assert len((clone / "calls").read_text().splitlines()) == 2
    (clone / "tests" / "clients" / "requirements" / "some.txt").write_text("some==2\n")
    assert run(clone, "python", "some").stdout not in {"", first.stdout}
    assert len(made_programs(clone)) == 2


FAKE_MVN = """#!/bin/sh
for word; do case "$word" in
  -Dmaven.repo.local=*) mkdir -p "${word#*=}" ;;
  -DoutputDirectory=*) mkdir -p "${word#*=}" && : > "${word#*=}/some.jar" ;;
esac; done
if [ -e "$FAKE_FAILS" ]; then echo "Could not resolve some" >&2; exit 1; fi
"""


@pytest.mark.slow
def test_maven_s_packages_are_kept_without_its_repository(clone):
    project = clone / "tests" / "clients" / "maven" / "some"
    project.mkdir(parents=True)
    (project / "pom.xml").write_text("<project/>")
    (clone / "bin" / "mvn").write_text(FAKE_MVN)
    (clone / "bin" / "mvn").chmod(0o755)
    (clone / "fails").touch()
    ended = run(clone, "maven", "some")
    assert (ended.returncode, made_programs(clone)) == (1, [])
    assert "Could not resolve some" in ended.stderr
    (clone / "fails").unlink()
    folder = Path(run(clone, "maven", "some").stdout.strip())
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == ["jars"]
    assert (folder / "jars" / "some.jar").exists()


def test_a_failed_installation_leaves_nothing_and_gives_the_reason(clone):
    (clone / "fails").touch()
    ended = run(clone, "python", "some")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "no route to host" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert made_programs(clone) == []


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [("python", "other"), ("npm", "some"), ("go", "some"), ("maven", "some")])
def test_a_client_without_pins_is_refused_by_the_file_that_is_missing(clone, arguments):
    ended = run(clone, *arguments)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert "is missing" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("arguments", [(), ("python",), ("ruby", "some"), ("python", "some", "more")])
def test_wrong_arguments_show_how_it_is_called(clone, arguments):
    ended = run(clone, *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "python|npm|go|maven|debian NAME" in ended.stderr
