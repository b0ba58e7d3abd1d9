"""Faults ordered in the file that LOCALCLOUD_FAULTS names, and the same server without them."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import pytest

from bezel_base.errors import UserError
from bezel_simulated_vllm.configuration.failures import StartError
from bezel_simulated_vllm.configuration.faults import ServingFaults, StartFaults, start_faults
from bezel_simulated_vllm.configuration.hardware import machine_from_environment
from bezel_simulated_vllm.configuration.options import parse
from bezel_simulated_vllm.scheduling.virtual_load import Rig
from bezel_simulated_vllm.startup import start
from simulated_vllm_support.arguments import L4_QAT
from simulated_vllm_support.process import server_process
from simulated_vllm_support.samples import FIXTURES, events, sample

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.slow  # whole processes

STARTED = "Application startup complete"
TINY = ("/mnt/models/tiny", "--served-model-name=tiny-gemma4", "--max-model-len=4096")


@pytest.fixture
def order(tmp_path):
    """Write faults; the variable that names them."""

    def write(*faults: dict) -> dict[str, str]:
        path = tmp_path / "faults.json"
        before = path.stat().st_mtime_ns if path.exists() else 0
        path.write_text(json.dumps(faults))
        os.utime(path, ns=(before + 10**9, before + 10**9))
        return {"LOCALCLOUD_FAULTS": str(path)}

    return write


def last_line(ended: subprocess.CompletedProcess[str]) -> str:
    return ended.stderr.rstrip().splitlines()[-1]


def test_a_load_without_memory_ends_as_a_failing_engine_does(container, order):
    """Its cause is logged above the last line."""
    ended = container(*TINY, variables=order({"kind": "out-of-memory"}))
    recorded = (FIXTURES / "failing-starts.txt").read_text(encoding="utf-8").rstrip().splitlines()[-1]
    assert (ended.returncode, last_line(ended)) == (1, recorded)
    assert "Loading weights took" in ended.stdout
    assert "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate" in ended.stdout
    assert "Starting vLLM server" not in ended.stdout


def test_a_full_disk_ends_the_engine_when_it_has_compiled(environment, order, capsys):
    faults = start_faults(order({"kind": "disk-full"}))
    with pytest.raises(StartError, match="No space left on device") as caught:
        start(parse(TINY), machine_from_environment(environment()), {}, lambda _: None, faults)
    output = capsys.readouterr()
    assert caught.value.status == 1
    assert "Loading weights took" in output.out
    assert "torch.compile took" not in output.out
    assert "EngineCore failed to start." in output.out
    assert "Engine core initialization failed. See root cause above." in output.err


def test_an_unknown_argument_of_this_image_is_refused_by_its_parser(container, order):
    ended = container(
        *TINY, "--max_num_seqs=4", variables=order({"kind": "unknown-argument", "argument": "--max-num-seqs"})
    )
    assert ended.returncode == 2
    assert last_line(ended) == "vllm: error: unrecognized arguments: --max-num-seqs=4"


def test_an_unknown_argument_that_is_not_given_does_no_harm():
    space = parse(TINY, frozenset({"--quantization", "--enable-prefix-caching"}))
    assert (space.quantization, space.max_model_len) == (None, 4096)
    with pytest.raises(SystemExit):  # nor is it taken for the start of a longer one
        parse([*TINY, "--quantization=x"], frozenset({"--quantization"}))


def test_a_slow_start_takes_its_factor_of_loading_and_compiling_only(environment, order):
    waits: dict[float, list[float]] = {1: [], 20: []}
    for factor, waited in waits.items():
        faults = start_faults(order({"kind": "slow-start", "factor": factor}))
        machine = machine_from_environment(environment())
        start(parse(["/mnt/models/qat", *L4_QAT]), machine, {}, waited.append, faults)
    grown = [slow / usual for slow, usual in zip(waits[20], waits[1], strict=True)]
    assert sorted(grown) == pytest.approx([1, 1, 1, 20, 20])


def test_without_the_variable_or_its_file_nothing_is_ordered(tmp_path):
    assert start_faults({}) == start_faults({"LOCALCLOUD_FAULTS": str(tmp_path / "none")}) == StartFaults()


@pytest.mark.parametrize("text", ['{"kind": "out-of-memory"}', "[", '["out-of-memory"]'])
def test_a_file_that_holds_no_faults_is_named(tmp_path, text):
    (tmp_path / "faults.json").write_text(text)
    with pytest.raises(UserError, match=r"(?s)LOCALCLOUD_FAULTS=.*faults.json\n   the file is not .* write a list"):
        start_faults({"LOCALCLOUD_FAULTS": str(tmp_path / "faults.json")})


@contextmanager
def running(environment, variables, wait=STARTED):
    """A process up to a line of its log; ends with it."""
    env = os.environ | environment() | {"LOCALCLOUD_SERVING_SPEED": "2"} | variables
    with (
        server_process(TINY, env) as (port, process),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        for line in process.stdout:
            if wait in line:
                break
        while wait == STARTED and process.poll() is None:  # it listens a moment after that line
            with suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", port), 60):
                break
        yield client, process


def test_a_server_that_is_never_healthy_lives_and_does_not_listen(environment, order):
    with running(environment, order({"kind": "never-healthy"}), wait="init engine") as (client, process):
        with pytest.raises(httpx.ConnectError):
            client.get("/health")
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM


def test_a_crash_loop_counts_from_the_first_answer_to_a_probe(order):
    moment = [0.0]
    path = Path(order({"kind": "crash-loop", "after_seconds": 0.5})["LOCALCLOUD_FAULTS"])
    probed, unasked = (ServingFaults(path, lambda: moment[0]) for _ in range(2))
    moment[0] = 14.0  # a busy machine
    assert not probed.crashes()
    for answer in (14.0, 14.4):
        moment[0] = answer
        probed.note_answer()
    assert not probed.crashes()
    moment[0] = 14.6
    assert (probed.crashes(), unasked.crashes()) == (True, False)
    moment[0] = 15.6
    assert unasked.crashes(), "a probe that only connects asks nothing"


def test_a_crash_loop_serves_and_then_exits_with_status_1(environment, order):
    with running(environment, order({"kind": "crash-loop", "after_seconds": 3600})) as (client, process):
        assert client.get("/health").status_code == 200
        order({"kind": "crash-loop", "after_seconds": 0})
        assert process.wait(60) == 1
        with pytest.raises(httpx.TransportError):
            client.get("/health")


ENDLESS = {"prompt": "a", "max_tokens": 4000, "ignore_eos": True}


def test_a_dying_engine_breaks_its_requests_and_ends_the_server(environment, order):
    with (
        running(environment, order({"kind": "engine-death", "after_requests": 3})) as (client, process),
        ThreadPoolExecutor(1) as pool,
    ):
        assert client.post("/v1/completions", json=ENDLESS | {"max_tokens": 2}).status_code == 200
        waiting = pool.submit(client.post, "/v1/completions", json=ENDLESS)
        while 'vllm:num_requests_running{engine="0",model_name="tiny-gemma4"} 1.0' not in client.get("/metrics").text:
            assert not waiting.done()
        with client.stream("POST", "/v1/completions", json=ENDLESS | {"stream": True}) as response:
            assert response.status_code == 200
            *_, token, error, done = events(response.read().decode())
        assert token["object"] == "text_completion"
        assert (error, done) == (sample("chat-engine-dead").json, "[DONE]")
        answer = waiting.result(60)
        assert (answer.status_code, answer.text) == (500, sample("chat-engine-dead").answer)
        assert process.wait(60) == 0
        assert "EngineCore encountered a fatal error." in process.stdout.read()


def test_a_server_set_to_outlive_its_engine_answers_as_recorded(environment, order):
    variables = order() | {"VLLM_KEEP_ALIVE_ON_ENGINE_DEATH": "1"}
    with running(environment, variables) as (client, process):
        assert client.get("/health").status_code == 200
        order({"kind": "engine-death"})  # while it serves
        deadline = time.monotonic() + 60
        while client.post("/v1/completions", json=ENDLESS | {"max_tokens": 2}).status_code == 200:
            assert time.monotonic() < deadline
        for name in ("chat-engine-dead", "health-engine-dead", "models-engine-dead"):
            recorded = sample(name)
            answer = client.request(
                recorded.method, recorded.path, content=recorded.body, headers={"content-type": "application/json"}
            )
            assert answer.status_code == recorded.status
        assert process.poll() is None


def test_an_engine_dies_at_the_call_that_is_named_and_not_before(settings, order):
    path = Path(order({"kind": "engine-death", "after_requests": 3})["LOCALCLOUD_FAULTS"])
    rig = Rig(settings(*TINY), ServingFaults(path, lambda: 0.0))
    first = [rig.ask(10, 4) for _ in range(2)]
    rig.run()
    assert [outcome.finish for outcome in first] == ["length", "length"]
    third = rig.ask(10, 4)
    while third.finish is None:
        assert rig.step()
    assert (third.finish, len(third.tokens)) == ("error", 1)


def test_calls_from_before_the_order_do_not_count(order):
    now = 0.0
    path = Path(order()["LOCALCLOUD_FAULTS"])
    faults = ServingFaults(path, lambda: now)
    assert [faults.take() for _ in range(5)] == [1, 2, 3, 4, 5]
    order({"kind": "engine-death", "after_requests": 2})
    assert not faults.kills_engine(5)  # the file is not looked at more often than every fifth of a second
    now = 0.3
    assert [faults.kills_engine(faults.take()) for _ in range(2)] == [False, True]
