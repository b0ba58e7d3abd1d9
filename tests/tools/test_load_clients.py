"""Clients that the benchmark is compared with: their own results are read as they mean them."""

import json
from pathlib import Path

import pytest

from bench_support.runs import BEGAN, MS, SECOND, failed_sample, good_sample
from bezel_bench.result.columns import Columns
from bezel_bench.result.sample import HTTP_5XX
from bezel_bench.result.sample_file import write_samples
from tools.bench.clients.aiperf_client import Aiperf
from tools.bench.clients.bezel_client import Bezel
from tools.bench.clients.guidellm_client import Guidellm
from tools.bench.clients.load_client import Client, Load
from tools.bench.clients.vllm_clients import Vllm, VllmRs

# What each client wrote of 96 requests of 16 tokens, cut to two of them.
WRITTEN = Path(__file__).with_name("load_clients")
PROGRAM, TOKENIZER = Path("/opt/program"), Path("/opt/tokenizer")
BEZEL, VLLM_RS = Bezel(PROGRAM), VllmRs(PROGRAM, TOKENIZER)
AIPERF, GUIDELLM = Aiperf(PROGRAM, TOKENIZER), Guidellm(PROGRAM, TOKENIZER)


@pytest.mark.parametrize(
    ("client", "folder", "ttft", "tpot", "itl"),
    [
        (VLLM_RS, "vllm-rs", [6.167304, 6.326561], [0.954505, 1.033533], 1.033533),
        (Vllm(PROGRAM, TOKENIZER), "vllm", [12.163655, 12.905428], [0.988328, 1.057493], 1.057493),
        (AIPERF, "aiperf", [14.395155, 14.833377], [0.954125, 1.216927], 1.216927),
        (GUIDELLM, "guidellm", [18.313885, 22.252083], [1.004839, 1.522382], None),
    ],
)
def test_a_clients_result_is_read_in_milliseconds(
    client: Client, folder: str, ttft: list[float], tpot: list[float], itl: float | None
) -> None:
    """The mean of a request's times from token to token is its TPOT; guidellm writes none of them."""
    measured = client.read(WRITTEN / folder)
    assert (measured.answered, measured.tokens, measured.state) == (2, 32, "")
    assert measured.ttft_ms == pytest.approx(ttft, abs=1e-6)
    assert measured.tpot_ms == pytest.approx(tpot, abs=1e-6)
    assert len(measured.itl_ms) == (0 if itl is None else 30)
    if itl is not None:
        assert sum(measured.itl_ms[15:]) / 15 == pytest.approx(itl, abs=2e-6)


def test_a_failed_request_of_vllm_counts_in_no_latency(tmp_path: Path) -> None:
    report = json.loads((WRITTEN / "vllm-rs" / "result.json").read_text())
    report |= {"errors": ["", "HTTP 500"], "completed": 1, "total_output_tokens": 16}
    (tmp_path / "result.json").write_text(json.dumps(report))
    measured = VLLM_RS.read(tmp_path)
    assert (measured.answered, len(measured.ttft_ms), len(measured.itl_ms)) == (1, 1, 15)


def test_the_own_result_is_read_from_its_samples(tmp_path: Path) -> None:
    rows = [good_sample(0, BEGAN + MS), good_sample(1, BEGAN + 2 * MS, tokens=1), failed_sample(2, BEGAN, HTTP_5XX)]
    write_samples(tmp_path / "result.samples.npz", {"run": (Columns.of(rows), BEGAN)})
    (tmp_path / "result.json").write_text(json.dumps({"cells": [{"id": "run", "state": "failed"}]}))
    measured = BEZEL.read(tmp_path)
    assert (measured.answered, measured.tokens, measured.state) == (2, 12, "failed")
    assert (measured.ttft_ms, measured.tpot_ms, measured.itl_ms) == ([100.0, 100.0], [10.0], [10.0] * 10)
    assert measured.instants[0] == [BEGAN + MS, BEGAN + 101 * MS, BEGAN + 201 * MS]
    assert measured.seconds == pytest.approx(201 * MS / SECOND)


CLOSED = Load("http://127.0.0.1:1", 256, 1536, 64, ramp=0.6, ca_file="/ca.pem")
OPEN = Load("http://127.0.0.1:1", 0, 40, 32, rate=2.5, model="tiny", seed=3)


@pytest.mark.parametrize(
    ("client", "closed", "open_loop", "never"),
    [
        (
            BEZEL,
            "--users 256 --requests 1536 --ramp 0.6 --ca-file /ca.pem",
            "--rate 2.5 --seed 3 --requests 40",
            "--users",
        ),
        (
            VLLM_RS,
            "--max-concurrency 256 --burstiness inf",
            "--request-rate 2.5 --seed 3 --num-prompts 40",
            "--burstiness",
        ),
        (AIPERF, "--concurrency 256 --concurrency-ramp-duration 0.6", "--request-rate 2.5", "--concurrency"),
        (
            GUIDELLM,
            "kind=concurrent,streams=256,rampup_duration=0.6 kind=max_requests,count=1536",
            "kind=poisson,rate=2.5",
            "kind=concurrent",
        ),
    ],
)
def test_a_clients_command_has_users_or_a_rate(
    client: Client, closed: str, open_loop: str, never: str, tmp_path: Path
) -> None:
    users, rate = (client.command(load, tmp_path) for load in (CLOSED, OPEN))
    assert users[0] == str(PROGRAM)
    assert not set(closed.split()) - set(users)
    assert not set(open_loop.split()) - set(rate)
    assert not any(word.startswith(never) for word in rate)
