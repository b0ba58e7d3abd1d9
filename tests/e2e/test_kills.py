"""A kill in the middle: the next command goes on, and nothing that was there is lost."""

import os
import signal

import httpx
from rehearsal import SECONDS, Rehearsal

from bezel.localcloud import control


def test_a_killed_cloud_goes_on_with_its_data(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32})
    assert rehearsal.local("up", "l4-qat").code == 0
    before = rehearsal.outputs()
    found = control.status(rehearsal.cloud)
    assert found is not None
    os.kill(found.pid, signal.SIGKILL)

    run = rehearsal.local("preview", "l4-qat", "--", "--refresh", "--expect-no-changes")
    assert run.code == 0, run.text
    headers = {"Authorization": f"Bearer {rehearsal.token(before['url'])}"}
    assert httpx.get(f"{before['url']}/health", headers=headers, timeout=60).status_code == 200


def test_a_killed_engine_locks_nobody_out(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32})
    # Nothing is under way in the cloud yet, while the program is still being looked at.
    process = rehearsal.start("up", "l4-qat")
    rehearsal.kill_engine(process, when="Updating")
    run = rehearsal.local("up", "l4-qat")
    assert run.code == 0, run.text
    assert "unlocking the stack" in run.text
    assert rehearsal.outputs()["smoke"]["verdict"]["ok"] is True


def test_an_engine_that_still_runs_keeps_its_lock(rehearsal: Rehearsal) -> None:
    assert rehearsal.local("preview", "l4-qat").code == 0
    process = rehearsal.start("up", "l4-qat")
    rehearsal.wait_for(process, "Updating")
    second = rehearsal.local("up", "l4-qat")
    rest, _ = process.communicate(timeout=SECONDS)
    assert second.code != 0, second.text
    assert "currently locked" in second.text
    assert process.returncode == 0, rest
