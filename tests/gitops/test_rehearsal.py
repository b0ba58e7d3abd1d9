"""A rehearsal runs without credentials, says what became of the stack, and leaves nothing behind, however it ends."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from decimal import Decimal
from pathlib import Path

import pytest
import yaml

from bezel.engine.events.values import Violation
from bezel.engine.outcomes import Exit
from bezel.gitops.rehearsal import Rehearsal
from bezel.gitops.rehearsal_place import MARK, PREFIX, OutOfTimeError, Place, place
from bezel.planner.base.money import Priced
from bezel.resource_cost.stack_cost import StackCost
from bezel_base.process_status import has_ended, processes_with_variable
from bezel_localcloud import control
from tests.support.e2e.rehearsal import ROOT
from tests.support.e2e.rehearsal import Rehearsal as Checkout

SECRETS = {
    "GITHUB_TOKEN": "planted-1",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "planted-2",
    "ACTIONS_ID_TOKEN_REQUEST_URL": "http://planted-3",
    "ACTIONS_RUNTIME_TOKEN": "planted-4",
    "GOOGLE_APPLICATION_CREDENTIALS": "/planted-5",
    "GOOGLE_OAUTH_ACCESS_TOKEN": "planted-6",
    "CLOUDSDK_AUTH_ACCESS_TOKEN_FILE": "/planted-7",
    "AWS_SECRET_ACCESS_KEY": "planted-8",
    "HF_TOKEN": "planted-9",
    "PULUMI_ACCESS_TOKEN": "planted-10",
    "COMPANYS_OWN": "planted-11",
    "GITHUB_ENV": "/planted-12",
    "HOME": "/planted-13",
}


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files of the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_no_credential_of_the_job_reaches_what_is_rehearsed(temporary):
    with place(60) as rehearsal:
        environment = rehearsal.environment({**SECRETS, "PATH": "/bin", "LANG": "C.UTF-8"})
    assert "planted" not in json.dumps(environment)
    assert {name: environment[name] for name in ("PATH", "LANG")} == {"PATH": "/bin", "LANG": "C.UTF-8"}
    assert environment["HOME"].startswith(str(temporary))


@pytest.mark.slow
def test_processes_and_folder_are_gone_afterwards(temporary):
    with place(60) as rehearsal:
        script = "import subprocess; subprocess.Popen(['sleep', '600'], start_new_session=True, stdout=-3)"
        assert rehearsal.run([sys.executable, "-c", script], folder=temporary, output=subprocess.PIPE) == (0, "")
        assert len(processes_with_variable(MARK, rehearsal.mark)) == 1
    assert processes_with_variable(MARK, rehearsal.mark) == []
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_a_program_that_does_not_end_in_time_is_ended(temporary):
    with place(0.2) as rehearsal, pytest.raises(OutOfTimeError):
        rehearsal.run(["sleep", "600"], folder=temporary, output=subprocess.PIPE)
    assert processes_with_variable(MARK, rehearsal.mark) == []


_KILLED = """
import subprocess, sys
from bezel.gitops.rehearsal_place import place
with place(60) as own:
    print(own.mark, flush=True)
    own.run(["sh", "-c", "setsid sleep 600 & echo started >&2; sleep 600"], folder=own.folder, output=subprocess.PIPE)
"""


def start(temporary: Path) -> "tuple[subprocess.Popen[str], str]":
    process = subprocess.Popen(
        [sys.executable, "-c", _KILLED], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
        env=os.environ | {"TMPDIR": str(temporary)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    mark = process.stdout.readline().strip()
    assert process.stderr.readline() == "started\n"
    return process, mark


@pytest.mark.slow
def test_sigterm_leaves_nothing_behind(temporary):
    process, mark = start(temporary)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert processes_with_variable(MARK, mark) == []
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_the_next_rehearsal_removes_only_what_a_killed_one_left(temporary):
    (killed, gone), (living, mark) = start(temporary), start(temporary)
    killed.kill()
    killed.wait(timeout=60)
    try:
        with place(60) as rehearsal:
            assert processes_with_variable(MARK, gone) == []
            assert processes_with_variable(MARK, mark) != []
            folders = {folder.name for folder in temporary.glob(f"{PREFIX}*")}
            assert len(folders) == 2
            assert rehearsal.folder.name in folders
    finally:
        living.terminate()
        living.communicate(timeout=60)


def test_a_folder_of_somebody_else_is_left_alone(temporary):
    (temporary / "target").mkdir()
    (temporary / "target" / "lock").write_text("")
    (temporary / f"{PREFIX}link").symlink_to(temporary / "target")
    (temporary / f"{PREFIX}other").mkdir()
    with place(60):
        assert (temporary / "target" / "lock").exists()
        assert (temporary / f"{PREFIX}other").exists()


COST = StackCost(Priced(Decimal(1)), Priced(Decimal(730)), Priced(Decimal(0)), (), 1)
VIOLATION = Violation(
    "hardware-cost", "most-instances", "mandatory", "urn:pulumi:a::b::c::service", "3 of 2 `@team`\n# x"
)


def test_the_report_has_one_content_in_three_forms():
    figures = {"ttft_ms": {"p50": 5.0}, "tpot_ms": {"p50": None}, "output_tokens_per_second": 7}
    smoke = {"ok": True, "checks": {"health": {"ok": True}}}
    report = Rehearsal("l4-qat", "passed", 36.4, smoke, figures, COST)
    assert (report.exit_code, report.as_json()["kind"], report.as_json()["verdict"]) == (
        Exit.DONE,
        "rehearsal",
        "passed",
    )
    assert report.as_json()["price"] == COST.as_json()
    assert report.as_json()["figures"]["kind"] == "simulated"
    for text in (report.text(), report.markdown()):
        assert "1.00 USD/h, 730.00 USD/month at most, idle 0.00 USD/h" in text
        assert "figures (simulated): ttft p50 5.0 ms, tpot p50 not measured" in text
        assert text.endswith("\n")


def test_a_refusal_names_the_policy_and_can_forge_no_markup():
    report = Rehearsal("l4-qat", "refused", violations=(VIOLATION,))
    assert "judge" not in report.as_json()
    assert report.exit_code == Exit.REFUSED
    assert "most-instances, service" in report.text()
    assert "\n- `` [mandatory] most-instances, service: 3 of 2 `@team` # x ``\n" in report.markdown()


@pytest.mark.slow
def test_a_stack_that_a_policy_refuses_ends_with_3_and_its_violation(tmp_path):
    checkout = Checkout.new(tmp_path / "program", tmp_path / "cloud")
    file = checkout.folder / "Pulumi.l4-e2b.yaml"
    content = yaml.safe_load(file.read_text())
    content["config"] |= {"bezel:scaling": {"max_instances": 3}, "bezel:cost": {"max_hourly_usd": 9}}
    file.write_text(yaml.safe_dump(content))
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    run = checkout.bezel(
        "ci", "rehearse", "l4-e2b", "--speed", "2000", "--out", str(tmp_path / "report.json"), TMPDIR=str(temporary)
    )
    assert run.code == Exit.REFUSED, run.text
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["verdict"] == "refused"
    assert {violation["policy"] for violation in report["violations"]} >= {"most-instances"}
    assert list(temporary.iterdir()) == []


def rehearse(folder: Path, temporary: Path, stack: str) -> "subprocess.Popen[str]":
    temporary.mkdir(exist_ok=True)
    command = [str(Path(sys.executable).parent / "bezel"), "ci", "rehearse", stack, "--format", "json"]
    return subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=os.environ | {"TMPDIR": str(temporary)} | SECRETS,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.long
def test_two_rehearsals_at_once_pass_one_of_them_of_a_protected_stack(tmp_path):
    checkout = Checkout.new(tmp_path / "program", tmp_path / "cloud")
    stacks = ("l4-qat", "rtx6000-fp8")
    processes = [rehearse(checkout.folder, tmp_path / "tmp", stack) for stack in stacks]
    ended = [process.communicate(timeout=400) for process in processes]
    for process, (out, errors), stack in zip(processes, ended, stacks, strict=True):
        assert process.returncode == 0, errors[-4000:]
        report = json.loads(out)
        assert (report["stack"], report["verdict"], report["smoke"]["ok"]) == (stack, "passed", True)
        assert "planted" not in out + errors
    assert list((tmp_path / "tmp").iterdir()) == []


@pytest.mark.slow
@pytest.mark.long
def test_a_rehearsal_stopped_by_sigterm_amid_its_deploy_leaves_nothing(tmp_path):
    checkout = Checkout.new(tmp_path / "program", tmp_path / "cloud")
    process = rehearse(checkout.folder, tmp_path / "tmp", "l4-qat")
    assert process.stderr is not None
    for line in process.stderr:
        if "creating" in line:
            break
    (folder,) = (tmp_path / "tmp").glob(f"{PREFIX}*")
    endpoint = control.status(folder / "cloud")
    assert endpoint is not None
    mark = Place(folder, time.monotonic(), (folder / "lock").read_text()).mark
    process.terminate()
    process.communicate(timeout=100)
    assert process.returncode == 128 + signal.SIGTERM
    assert processes_with_variable(MARK, mark) == []
    assert has_ended(endpoint.pid)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_rehearsal_names_what_its_change_does_to_the_judge():
    report = Rehearsal("l4-qat", "passed", judge={"said": "the base judges", "changes": ["a.json b 1 → 2"]})
    assert report.text().splitlines()[1:3] == ["judge: the base judges:", "  a.json b 1 → 2"]
    assert report.as_json()["judge"] == report.judge
    assert "a.json b 1 → 2" in report.markdown()
