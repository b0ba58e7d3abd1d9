"""The process as a container runs it: refused connections, log, signals, clients that go away, speeds."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import contextmanager, suppress

import httpx
import pytest

from simulated_vllm_support.arguments import L4_QAT
from simulated_vllm_support.process import held_start, server_process

pytestmark = pytest.mark.slow  # whole processes


@contextmanager
def run_instance(environment, folder):
    """A started instance: its client and its process; the log is on the process's standard output."""
    faults = folder / "faults.json"
    os.mkfifo(faults)
    env = os.environ | environment() | {"LOCALCLOUD_SERVING_SPEED": "50", "LOCALCLOUD_FAULTS": str(faults)}
    with (
        server_process(["/mnt/models/qat", *L4_QAT], env) as (port, process),
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client,
    ):
        with held_start(faults), pytest.raises(httpx.ConnectError):
            client.get("/health")
        while process.poll() is None:
            with suppress(httpx.ConnectError):
                assert client.get("/health").status_code == 200
                break
            time.sleep(0.02)
        yield client, process


@pytest.fixture(scope="module")
def instance(environment, tmp_path_factory):
    """One that all of them ask, and none ends."""
    with run_instance(environment, tmp_path_factory.mktemp("instance")) as pair:
        yield pair


def test_a_started_instance_answers_under_its_served_name(instance):
    client, _ = instance
    model = client.get("/v1/models").json()["data"][0]
    assert (model["id"], model["root"], model["max_model_len"]) == ("gemma", "/mnt/models/qat", 32768)


def test_a_body_too_large_for_cloud_run_is_not_read_to_the_end(instance):
    client, _ = instance
    pieces = (b" " * (1 << 20) for _ in range(33))
    assert client.post("/v1/completions", content=pieces).status_code == 413
    with socket.create_connection((client.base_url.host, client.base_url.port), 10) as connection:
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 209715200\r\n\r\n")
        assert connection.recv(1000).startswith(b"HTTP/1.1 413 ")


def metric(client: httpx.Client, name: str) -> float:
    lines = client.get("/metrics").text.splitlines()
    return next(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name + "{"))


def test_a_stream_arrives_piece_by_piece(instance):
    client, _ = instance
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 30_000, "ignore_eos": True, "stream": True}
    with client.stream("POST", "/v1/chat/completions", json=body) as response:
        pieces = (line for line in response.iter_lines() if line.startswith("data: "))
        first = [next(pieces) for _ in range(10)]
        # The first pieces are here while the server works on the others.
        assert metric(client, "vllm:num_requests_running") == 1
    assert len(set(first)) > 1


def go_away(client, streamed):
    """Ask, and do not wait for the end of the answer, which the server works on."""
    wait_until(lambda: metric(client, "vllm:num_requests_running") == 0)
    body = {"prompt": "hi", "max_tokens": 30_000, "ignore_eos": True, "stream": streamed}
    data = client.build_request("POST", "/v1/completions", json=body).read()
    head = f"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(data)}"
    with socket.create_connection((client.base_url.host, client.base_url.port), 60) as connection:
        connection.sendall(head.encode() + b"\r\n\r\n" + data)
        wait_until(lambda: metric(client, "vllm:num_requests_running") == 1)
        if streamed:
            assert connection.recv(1000).startswith(b"HTTP/1.1 200 ")


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("streamed", [True, False])
def test_a_client_that_goes_away_stops_its_request(instance, streamed):
    client, _ = instance
    go_away(client, streamed)
    wait_until(lambda: metric(client, "vllm:num_requests_running") == 0)
    assert metric(client, "vllm:kv_cache_usage_perc") == 0


def test_sigterm_ends_it_and_the_log_has_the_start(environment, tmp_path):
    with run_instance(environment, tmp_path) as (client, process):
        client.get("/v1/models")
        for streamed in (True, False):
            go_away(client, streamed)
        client.close()
        process.send_signal(signal.SIGTERM)
        log = process.communicate(timeout=60)[0]
    assert process.returncode == 0
    for text in (
        "simulated server, timings from a model of 1 x nvidia-l4",
        "Using max model len 32768",
        "forcing TRITON_ATTN backend",
        "Loading weights took 32.60 seconds",
        "Maximum concurrency for 32,768 tokens per request",
        "Starting vLLM server on http://127.0.0.1:",
        '"GET /v1/models HTTP/1.1" 200 OK',
    ):
        assert text in log
    # Clients that went away are no failures of the server.
    assert "Exception in ASGI application" not in log
    assert "ERROR" not in log
