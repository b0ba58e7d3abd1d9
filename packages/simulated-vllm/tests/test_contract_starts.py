"""A start as seen from outside, against the recordings of a real vLLM 0.32.0: what /health says, how a start fails.

Both the simulated server and a real one (`tools/vllm/contract.py`) pass these tests.
"""

from __future__ import annotations

import os
import re
import subprocess

import httpx
import pytest

from simulated_vllm_support.process import held_start, server_process
from simulated_vllm_support.samples import text_of
from simulated_vllm_support.servers import real_configuration, real_url

pytestmark = pytest.mark.slow  # whole processes

FAILING = re.findall(r"^### vllm serve (.*)\n((?:(?!###).*\n?)*)", text_of("failing-starts"), re.MULTILINE)
# They failed for want of what a server on CPU lacks and the simulated one has: an extra, a backend for GPUs.
ON_CPU = ("--load-format runai_streamer", "--attention-backend FLASHINFER")


@pytest.fixture
def first_answers(environment, tmp_path):
    """What /health answered from the process's start until it was healthy, each answer once."""
    if real_url():
        if real_configuration() != "plain":
            pytest.skip("looked at once")
        return os.environ["BEZEL_VLLM_STARTUP"].split()
    faults = tmp_path / "faults.json"
    os.mkfifo(faults)
    env = os.environ | environment() | {"LOCALCLOUD_FAULTS": str(faults)}
    with server_process(["/mnt/models/tiny"], env, subprocess.DEVNULL) as (port, process):
        with held_start(faults):
            answers = [health(port)]
        while answers[-1] != "200" and process.poll() is None:
            answer = health(port)
            answers += [] if answer == answers[-1] else [answer]
    return answers


def health(port):
    """What /health answers."""
    try:
        return str(httpx.get(f"http://127.0.0.1:{port}/health", timeout=60).status_code)
    except httpx.ConnectError:
        return "refused"


def test_nothing_listens_until_the_server_is_healthy(first_answers):
    recorded = [
        "refused" if " 7\n" in line else "200" for line in text_of("startup-health-transition").splitlines(True)
    ]
    assert first_answers == recorded == ["refused", "200"]


@pytest.mark.parametrize(("command", "recording"), FAILING, ids=[command for command, _ in FAILING])
def test_a_failing_start_ends_as_recorded(container, command, recording):
    if real_url() and real_configuration() != "starts":
        pytest.skip("starts servers of its own")
    if not real_url() and command.endswith(ON_CPU):
        pytest.skip("starts on an accelerator")
    arguments = command.replace("models/tiny-gemma4", os.environ.get("BEZEL_VLLM_MODEL", "/mnt/models/tiny")).split()
    ended = container(*arguments, variables={"HF_HUB_OFFLINE": "1"})  # as the recorded one
    assert ended.returncode == int(re.search(r"rc=(\d+)", recording)[1]) == 1
    # The interpreter may warn of what the engine's process has left behind, after the exception.
    last = [line for line in ended.stderr.splitlines() if re.match(r"[\w.]+Error: ", line)][-1]
    recorded = recording.rstrip().splitlines()[-1]
    # The process that has failed is named if it has been reaped by then; the recording was cut in the list of parsers.
    last, recorded = (line.partition("Failed core proc(s)")[0] for line in (last, recorded))
    assert last[:300] == recorded[:300]
