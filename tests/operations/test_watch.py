"""The page about a stack: what it does and costs, in 80 columns; a part that cannot be read leaves the other."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bezel.operations.context import NotDeployedError
from bezel.operations.watch.page import WIDTH, Watch, WatchArguments, watch
from bezel_base.ending_signals import INTERRUPTED
from tests.support.operations.deployed import SERVICE, Deployed, live_service
from tests.support.operations.model_server import ModelServer
from tests.support.rest.fake_google import Answer

METRICS = (Path(__file__).parents[2] / "packages/simulated-vllm/tests/fixtures/vllm" / "metrics.txt").read_text()
SECONDS = 60.0


def page(cloud: Deployed, **arguments: Any) -> Watch:
    return watch(cloud.context, WatchArguments(stack="dev", interval=1, **arguments))


def serving(cloud: Deployed, **options: Any) -> ModelServer:
    server = ModelServer(cloud, **options)
    server.answers["/metrics"] = Answer(text=METRICS)
    return server


@pytest.mark.slow
def test_a_page_has_state_load_cost_and_no_line_over_eighty_columns(cloud: Deployed) -> None:
    serving(cloud)
    view = page(cloud)
    text = view.text()
    for word in ("ready", "simulated server", "revision", "price", "running", "waiting", "KV cache", "TTFT", "USD/h"):
        assert word in text
    assert "tokens/s" in text
    assert (view.exit_code, view.notes) == (0, ())
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "\x1b" not in text
    assert "planted" not in view.model_dump_json()


def test_a_service_without_an_instance_is_not_asked(cloud: Deployed) -> None:
    server = serving(cloud, minimum=0)
    view = page(cloud)
    assert server.calls == []
    assert "--wake asks nevertheless" in " ".join(view.text().split())
    assert view.metrics is not None
    assert not view.metrics.is_read


@pytest.mark.slow
def test_metrics_that_cannot_be_read_are_a_note_and_the_state_is_shown(cloud: Deployed) -> None:
    server = serving(cloud)
    server.answers["/metrics"] = Answer(status=500, text="planted hf_AbcdefghijklmnopAbcdefgh " + "x" * 900)
    view = page(cloud)
    assert view.metrics is None
    assert "the metrics could not be read" in view.notes[0]
    assert view.exit_code == 1
    assert "revision" in view.text()
    assert "hf_Abcdef" not in view.text()
    assert max(map(len, view.text().splitlines())) <= WIDTH


@pytest.mark.slow
def test_a_state_that_cannot_be_read_is_a_note(cloud: Deployed) -> None:
    serving(cloud)
    cloud.live[SERVICE] = Answer(
        status=403, json={"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}}
    )
    view = page(cloud, wake=True)
    assert view.status is None
    assert any("the status could not be read" in note for note in view.notes)
    assert view.exit_code == 1


@pytest.mark.slow
def test_a_failed_service_says_why_on_the_page(cloud: Deployed) -> None:
    serving(cloud)
    reason = "The user-provided container failed to start and listen on the port. " * 4
    condition = {"state": "CONDITION_FAILED", "message": reason}
    cloud.requests = []
    cloud.live[SERVICE] = live_service(terminalCondition=condition, scaling={"minInstanceCount": 1})
    view = page(cloud)
    assert "because: The user-provided container failed" in view.text()
    assert " ".join(view.text().split()).count("listen on the port") == 4
    assert max(map(len, view.text().splitlines())) <= WIDTH


def test_a_stack_that_is_not_deployed_is_an_error(cloud: Deployed) -> None:
    with pytest.raises(NotDeployedError):
        page(cloud)


def shown_until_ctrl_c(cloud: Deployed) -> tuple[int, bytes]:
    """The exit code of a command that shows pages on a terminal and gets Ctrl-C after some, and what it has shown."""
    ours, theirs = pty.openpty()
    command = [str(Path(sys.executable).parent / "bezel"), "watch", "dev", "--interval", "1"]
    environ = {**os.environ, **cloud.context.environ, "NO_COLOR": "1", "COLUMNS": "60", "LINES": "12"}
    process = subprocess.Popen(command, cwd=cloud.folder, env=environ, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    shown, end = b"", time.monotonic() + SECONDS
    try:
        while shown.count(b"TTFT") < 2:
            assert time.monotonic() < end, shown
            shown += os.read(ours, 65536)
        process.send_signal(signal.SIGINT)
        while b"\x1b[?25h" not in shown:  # the cursor is shown again
            assert time.monotonic() < end, shown
            shown += os.read(ours, 65536)
        return process.wait(SECONDS), shown
    finally:
        process.kill()
        process.wait()
        os.close(ours)


@pytest.mark.slow
def test_a_terminal_shows_page_after_page_until_ctrl_c(cloud: Deployed) -> None:
    serving(cloud)
    for _ in range(3):
        code, shown = shown_until_ctrl_c(cloud)
        if code != INTERRUPTED:  # as a page ends that a busy machine does not make within 3 s
            break
    assert code == 0
    plain = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown).replace(b"\r", b"")
    assert max(map(len, plain.splitlines())) <= 60
    assert b"Traceback" not in plain
