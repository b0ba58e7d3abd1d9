"""`bezel secret set` as a process: the value comes by a pipe, a descriptor or a terminal, and is left nowhere."""

import base64
import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.e2e.warm_bezel import run_whole
from tests.support.operations.project_cloud import OneProject, one_project
from tests.support.rest.fake_google import Answer, Call

pytestmark = pytest.mark.slow  # whole processes
ROOT = Path(__file__).parents[2]
BEZEL = Path(sys.executable).parent / "bezel"
SECRETS = "/secretmanager/v1/projects/bezel-local/secrets"
VALUE = "hf_PlantedPlantedPlanted123"


@pytest.fixture
def cloud(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[OneProject]:
    folder = tmp_path / "cloud"
    folder.mkdir()
    with one_project(folder, monkeypatch) as project_cloud:
        yield project_cloud


def environment(cloud: OneProject, folder: Path) -> dict[str, str]:
    home = folder / "home"
    home.mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in ("PATH",)}
    return {**kept, **cloud.environ, "HOME": str(home), "TMPDIR": str(home), "XDG_STATE_HOME": str(home)}


def run(cloud: OneProject, folder: Path, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [BEZEL, "secret", "set", "hf-token", *arguments]
    return subprocess.run(
        command,
        cwd=ROOT,
        env=environment(cloud, folder),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )


def stored_value_of(cloud: OneProject) -> str:
    version_content = cloud.project.ok("GET", f"{SECRETS}/hf-token/versions/latest:access")
    return base64.b64decode(version_content["payload"]["data"]).decode()


def test_a_piped_value_is_stored_and_in_no_output_file_or_process_list(cloud: OneProject, tmp_path: Path) -> None:
    seen: list[bytes] = []

    def look(call: Call) -> Answer | None:
        if call.path.endswith(":addVersion"):
            for process in Path("/proc").glob("[0-9]*"):
                for part in ("cmdline", "environ"):
                    try:
                        seen.append((process / part).read_bytes())
                    except OSError:
                        continue
        return None

    cloud.server.routes.insert(0, look)
    ran = run(cloud, tmp_path, input=f"{VALUE}\n")
    assert ran.returncode == 0, ran.stderr
    assert "version 1 of hf-token is the latest" in ran.stdout
    assert stored_value_of(cloud) == VALUE
    assert any(b"secret\x00set\x00hf-token" in part for part in seen)
    assert [part for part in seen if VALUE.encode() in part] == []
    assert VALUE not in ran.stdout + ran.stderr
    home = tmp_path / "home"
    assert [file for file in home.rglob("*") if file.is_file() and VALUE.encode() in file.read_bytes()] == []


def test_a_descriptor_is_read_in_place_of_standard_input(cloud: OneProject, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.write(writing, VALUE.encode())
    os.close(writing)
    ran = run(cloud, tmp_path, "--fd", str(reading), "--json", pass_fds=[reading], input="not this")
    os.close(reading)
    assert ran.returncode == 0, ran.stderr
    assert stored_value_of(cloud) == VALUE
    assert VALUE not in ran.stdout + ran.stderr


@pytest.mark.wide_except("arguments0-*", "arguments1-*")
@pytest.mark.parametrize(
    ("arguments", "typed", "says"),
    [
        ((), "", "the value is empty"),
        (("--fd", "77"), "x", "cannot be read"),
        (("--fd", "-1"), "x", "cannot be read"),
        ((VALUE,), "x", "unrecognized argument"),
    ],
)
def test_what_is_no_value_changes_nothing(
    cloud: OneProject, tmp_path: Path, arguments: tuple[str, ...], typed: str, says: str
) -> None:
    ran = run_whole(("secret", "set", "hf-token", *arguments), ROOT, environment(cloud, tmp_path), typed)
    assert ran.returncode in {1, 2}
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr
    assert VALUE not in ran.stderr
    assert cloud.changing_calls == []


def test_a_typed_value_is_not_echoed(cloud: OneProject, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [BEZEL, "secret", "set", "hf-token"]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment(cloud, tmp_path),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown, end = b"", time.monotonic() + 60
    while b"value (not shown" not in shown and time.monotonic() < end:
        shown += os.read(ours, 4096)
    os.write(ours, f"{VALUE}\n".encode())
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # the other side is closed
            break
        if not piece:
            break
        shown += piece
    assert process.wait(60) == 0, shown
    os.close(ours)
    assert stored_value_of(cloud) == VALUE
    assert VALUE.encode() not in shown
