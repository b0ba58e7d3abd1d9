"""The stand-in against recordings of the published provider, which are not in the repository.

BEZEL_TRAFFIC names their folder. What the comparison refuses is tested on a recording of our own making.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRAFFIC = os.environ.get("BEZEL_TRAFFIC")


def compare(folder: Path | str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tools.traffic.compare", str(folder)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(not TRAFFIC, reason="BEZEL_TRAFFIC does not name a folder with recordings")
def test_every_difference_from_the_recordings_is_explained() -> None:
    done = compare(str(TRAFFIC))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_difference_or_an_explanation_too_many_is_refused(tmp_path: Path) -> None:
    urn = "urn:pulumi:a::b::gcp:secretmanager/secret:Secret::s"
    news = {"secretId": "s", "replication": {"auto": {}}}
    filled = {**news, "replication": {"auto": {"__defaults": []}, "__defaults": []}, "__defaults": []}
    asked = {"phase": "create", "rpc": "Check", "request": {"urn": urn, "news": news, "name": "s"}}
    for state, told in {"right": filled, "wrong": {**filled, "secretId": "t"}}.items():
        folder = tmp_path / "state"
        folder.mkdir(exist_ok=True)
        recording = {"name": state, "calls": [{**asked, "response": {"inputs": told}}]}
        (folder / f"secretmanager.Secret.{state}.json").write_text(json.dumps(recording))
    done = compare(tmp_path)
    lines = done.stdout.splitlines()
    assert done.returncode == 1
    wrong = [line for line in lines if line.startswith("unexplained difference: ")]
    assert wrong == [
        'unexplained difference: calls of secretmanager.Secret, create Check: .inputs.secretId: recorded "t", ours "s"'
    ]
    assert any(line.startswith("explains nothing: calls, cloudrunv2.Service, ") for line in lines)
    assert "neither recorded nor explained, or both: requests of storage.Bucket" in lines
    assert "calls: 1 equal" in lines
