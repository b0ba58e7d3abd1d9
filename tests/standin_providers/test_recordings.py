"""The stand-in against recordings of the published provider, which are not in the repository.

BEZEL_TRAFFIC names their folder. What the comparison refuses is tested on a recording of our own making.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bezel_base.errors import Problem
from bezel_pulumi_offline.fidelity.comparison import Comparison
from bezel_pulumi_offline.fidelity.recordings import RecordingsError, read_recordings

ROOT = Path(__file__).parents[2]
TRAFFIC = os.environ.get("BEZEL_TRAFFIC")
SECONDS = 300
URN = "urn:pulumi:a::b::gcp:secretmanager/secret:Secret::s"
NEWS: dict[str, object] = {"secretId": "s", "replication": {"auto": {}}}
FILLED = {**NEWS, "replication": {"auto": {"__defaults": []}, "__defaults": []}, "__defaults": []}


def run_module(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=SECONDS)


def compare(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return run_module("bezel_pulumi_offline.fidelity", str(folder), *options)


def record_checks(folder: Path, **answers: dict[str, object]) -> None:
    """Write a recording of a check for each answer, by the name of its resource."""
    (folder / "state").mkdir(exist_ok=True)
    for name, answer in answers.items():
        call = {"phase": "create", "rpc": "Check", "request": {"urn": URN, "news": NEWS, "name": "s"}}
        recording = {"name": name, "calls": [{**call, "response": {"inputs": answer}}]}
        (folder / "state" / f"secretmanager.Secret.{name}.json").write_text(json.dumps(recording))


@pytest.mark.slow
@pytest.mark.timeout(SECONDS)
@pytest.mark.skipif(not TRAFFIC, reason="BEZEL_TRAFFIC does not name a folder with recordings")
def test_every_difference_from_the_recordings_is_explained() -> None:
    done = run_module("tools.traffic.results", str(TRAFFIC))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_a_difference_is_found_and_an_equal_answer_counted(tmp_path: Path) -> None:
    record_checks(tmp_path, right=FILLED, wrong={**FILLED, "secretId": "t"})
    done = compare(tmp_path)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines() == [
        'unexplained difference: calls of secretmanager.Secret, create Check: .inputs.secretId: recorded "t", ours "s"',
        "calls: 1 different",
        "calls: 1 equal",
    ]


@pytest.mark.slow
def test_own_recordings_need_not_be_complete(tmp_path: Path) -> None:
    record_checks(tmp_path, right=FILLED)
    other = tmp_path / "state" / "sql.Instance.db.json"
    other.write_text("{}")
    done = compare(tmp_path, "--show", "Secret")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "calls of secretmanager.Secret, create Check: equal" in done.stdout
    assert "not compared, as the stand-in has no such type: sql.Instance" in done.stdout
    complete = compare(tmp_path, "--complete")
    assert complete.returncode == 1
    lines = complete.stdout.splitlines()
    assert any(line.startswith("explains nothing: calls, cloudrunv2.Service, ") for line in lines)
    assert "neither recorded nor explained, or both: requests of storage.Bucket" in lines


@pytest.mark.slow
def test_the_documents_need_all_recordings(tmp_path: Path) -> None:
    record_checks(tmp_path, right=FILLED)
    done = run_module("tools.traffic.results", str(tmp_path))
    assert done.returncode == 1
    assert "neither recorded nor explained, or both: requests of storage.Bucket" in done.stdout.splitlines()


CALL = {"phase": "create", "rpc": "Check", "request": {}, "response": {}}
EXCHANGE = {"method": "GET", "path": "/", "query": {}, "status": 200, "answer": {}}
STATE, HTTP = "state/secretmanager.Secret.x.json", "http/secretmanager.Secret.create.lro-done.json"
REFUSED = {
    "no JSON": (STATE, "{", "it cannot be read as JSON"),
    "a list": (STATE, [], "expected an object, got list"),
    "no calls": (STATE, {"name": "x"}, "the recording has no calls"),
    "calls of text": (STATE, {"name": "x", "calls": ["a"]}, "expected calls[0] to be an object, got str"),
    "no request": (STATE, {"name": "x", "calls": [CALL, {"rpc": "Check", "phase": "x"}]}, "calls[1] has no request"),
    "unknown call": (STATE, {"name": "x", "calls": [{**CALL, "rpc": "Guess"}]}, "the engine has no call 'Guess'"),
    "exchanges of a number": (HTTP, {"exchanges": 3}, "expected exchanges to be a list, got int"),
    "no answer": (HTTP, {"exchanges": [{**EXCHANGE, "answer": {}}, {"method": "GET"}]}, "exchanges[1] has no path"),
    "provider": ("provider/CheckConfig.create.json", {"request": {}}, "the recording has no response, errors"),
    "diffs": ("provider/Diff.nochange.json", {"urn": "x"}, "expected the list to be a list, got dict"),
    "a fault without a resource": ("faults/x.json", {"rpc": [{"rpc": "Create", "response": {}}]}, "rpc[0] has no urn"),
}


@pytest.mark.parametrize(("path", "content", "reason"), REFUSED.values(), ids=REFUSED)
def test_recordings_that_cannot_be_compared_are_refused(
    tmp_path: Path, path: str, content: object, reason: str
) -> None:
    record_checks(tmp_path, right=FILLED)
    (tmp_path / path).parent.mkdir(exist_ok=True)
    (tmp_path / path).write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(RecordingsError) as refused:
        read_recordings(tmp_path)
    (problem,) = refused.value.problems
    assert isinstance(problem, Problem)
    assert (problem.key, refused.value.exit_code) == (path, 2)
    assert reason in problem.consequence


def test_all_refused_recordings_are_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "http").mkdir()
    for path in (STATE, HTTP):
        (tmp_path / path).write_text("{")
    with pytest.raises(RecordingsError) as refused:
        read_recordings(tmp_path)
    assert len(refused.value.problems) == 2


def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none"):
        with pytest.raises(RecordingsError, match="it holds no recordings"):
            read_recordings(folder)


@pytest.mark.slow
def test_a_failure_without_the_life_of_its_type_is_refused(tmp_path: Path) -> None:
    record_checks(tmp_path, right=FILLED)
    (tmp_path / "faults").mkdir()
    fault = {"http": [], "rpc": [{"rpc": "Create", "urn": URN, "response": {}, "errors": ["x"]}]}
    (tmp_path / "faults" / "create-errors.json").write_text(json.dumps(fault))
    with (
        Comparison(read_recordings(tmp_path)) as comparison,
        pytest.raises(RecordingsError, match=r"secretmanager\.Secret is recorded without its create Create"),
    ):
        list(comparison.everything())


@pytest.mark.slow
def test_a_request_of_another_form_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    call = {"phase": "create", "rpc": "Check", "request": {"urn": 3}, "response": {}}
    (tmp_path / STATE).write_text(json.dumps({"name": "x", "calls": [call]}))
    with (
        Comparison(read_recordings(tmp_path)) as comparison,
        pytest.raises(RecordingsError, match="the request of a recorded Check cannot be sent"),
    ):
        list(comparison.everything())


def test_the_stand_in_is_configured_as_the_recorded_provider_was(tmp_path: Path) -> None:
    (tmp_path / "provider").mkdir()
    configured = {"request": {"args": {"project": "shop", "region": "us-east4"}}, "response": {}, "errors": []}
    (tmp_path / "provider" / "Configure.create.json").write_text(json.dumps(configured))
    assert read_recordings(tmp_path).place == {"project": "shop", "region": "us-east4", "zone": "us-east5-a"}
