"""`bezel keys` as a process: a key is on standard output once, and nothing is made without a confirmation."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bezel.engine.outcomes import Exit
from bezel_door.key_file import judge_key
from tests.support.e2e.warm_bezel import run_whole
from tests.support.operations.door_cloud import DoorCloud, door_cloud

pytestmark = pytest.mark.slow  # whole processes


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[DoorCloud]:
    with door_cloud(tmp_path) as deployed:
        yield deployed


def run(cloud: DoorCloud, *arguments: str) -> subprocess.CompletedProcess[str]:
    folder = cloud.deployed.folder
    environ = {"PATH": os.environ["PATH"], "HOME": str(folder), **cloud.context().environ}
    return run_whole(("keys", *arguments), folder, environ)


def test_a_key_is_on_standard_output_once_and_only_after_a_confirmation(cloud: DoorCloud) -> None:
    asked = run(cloud, "create", "dev", "--team", "search")
    assert asked.returncode == Exit.REFUSED
    assert "add --yes" in asked.stderr
    assert "keys.json" not in str([call.path for call in cloud.deployed.server.calls if call.method != "GET"])
    made = run(cloud, "create", "dev", "--team", "search", "--models", "gemma", "--yes", "--json")
    assert made.returncode == 0, made.stderr
    both = json.loads(made.stdout)
    text = both["outcome"]["key"]
    assert isinstance(judge_key(cloud.keys(), text, cloud.time()), tuple)
    assert (made.stdout.count(text), made.stderr.count(text)) == (1, 0)
    assert not list(cloud.deployed.folder.glob("home/bezel/keys/*"))
    listed = run(cloud, "list", "dev")
    assert both["outcome"]["key_id"] in listed.stdout
    assert text.split("-", 2)[2] not in listed.stdout + listed.stderr


def test_wrong_arguments_end_with_their_repairs_and_no_traceback(cloud: DoorCloud) -> None:
    for arguments, consequence in (
        (("create", "dev", "--tokens-per-day", "many"), "--tokens-per-day"),
        (("create", "dev", "--expires", "tomorrow"), "expected a duration"),
        (("revoke", "dev"), "name the ID of one key"),
        (("rotate", "dev"), "ID"),
    ):
        ran = run(cloud, *arguments)
        assert ran.returncode == Exit.USAGE
        assert consequence in ran.stderr
        assert "Traceback" not in ran.stderr
