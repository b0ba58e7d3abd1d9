"""Metrics of a server over a load: what is read while it runs, and what becomes of reads that say nothing."""

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_bench.server.http_probe import ProbeResponse
from bezel_bench.server.sampling import MetricsSampler, Samples, values_of

REAL = (Path(__file__).parent / "fixtures/vllm/metrics-mtp.txt").read_bytes()
SECOND = 1_000_000_000


def metrics(running: int, generated: int = 0, *, cache: str = "0.5", started: float = 1.5) -> bytes:
    lines = [
        "# TYPE vllm:num_requests_running gauge",
        f'vllm:num_requests_running{{engine="0",model_name="a b}} c"}} {running}.0',
        'vllm:num_requests_running{engine="1"} 1.0',
        'vllm:num_requests_waiting{engine="0"} 2.0',
        'vllm:num_requests_waiting_by_reason{reason="capacity"} 9.0',
        f'vllm:kv_cache_usage_perc{{engine="0"}} {cache}',
        'vllm:kv_cache_usage_perc{engine="1"} 0.1',
        f"vllm:generation_tokens_total {generated}",
        f"vllm:generation_tokens_created {started}",
        f"process_start_time_seconds {started}",
    ]
    return "\n".join(lines).encode()


def test_engines_are_summed_and_the_share_of_their_caches_is_a_mean():
    values = values_of(metrics(3, 40))
    assert (values["running"], values["waiting"], values["generated_tokens"]) == (4, 2, 40)
    assert values["kv_cache_used"] == pytest.approx(0.3)


def test_what_a_real_vllm_writes_is_read():
    values = values_of(REAL)
    assert (values["running"], values["prompt_tokens"], values["generated_tokens"]) == (0, 9031, 1926)
    assert {"waiting", "kv_cache_used", "preemptions"} <= values.keys()


@pytest.mark.parametrize("body", [b"", b"<html>", b"up 1\n", b"vllm:num_requests_running many\n", b"\xff" * 40])
def test_a_response_that_is_not_vllms_is_no_sample(body: bytes):
    samples = Samples()
    samples.add(SECOND, body)
    assert samples.series(0) is None


def test_instants_count_from_the_loads_start_tokens_from_the_first_read():
    samples = Samples()
    for second, generated in ((9, 1), (11, 100), (12, 160)):
        samples.add(second * SECOND, metrics(second, generated))
    series = samples.series(10 * SECOND)
    assert series.at_seconds == [1.0, 2.0], "readings from before the load are left out"
    assert series.running == [12, 13]
    assert series.generated_tokens == [0, 60]
    assert series.prompt_tokens is None, "a counter that the server does not have is unknown, not 0"


def test_reads_of_several_processes_are_no_series():
    samples = Samples()
    samples.add(SECOND, metrics(1))
    samples.add(2 * SECOND, metrics(1, started=2.5))
    assert samples.series(0) is None


@pytest.mark.slow
@given(st.integers(2, 40), st.integers(1, 300))
def test_a_long_load_keeps_a_bounded_number_of_samples_over_its_whole_time(most: int, reads: int):
    samples = Samples(every_seconds=1.0, most=most)
    now = 0.0
    for _ in range(reads):
        now += samples.every_seconds
        samples.add(round(now * SECOND), metrics(1))
    at = samples.series(0).at_seconds
    assert len(at) <= most
    assert at == sorted(at)
    assert at[0] == 1.0
    assert at[-1] >= now - 2 * samples.every_seconds


class Server:
    """Answers `/metrics`, and says when that was asked often enough."""

    def __init__(self, status: int = 200, enough: int = 3) -> None:
        self.status, self.enough, self.asked, self.done = status, enough, 0, threading.Event()

    def ask(self, path: str, body: object) -> ProbeResponse:
        assert (path, body) == ("/metrics", None)
        self.asked += 1
        if self.asked >= self.enough:
            self.done.set()
        return ProbeResponse(self.status, metrics(self.asked))


def test_the_server_is_read_until_the_load_ends_and_not_after():
    server = Server()
    with MetricsSampler(server.ask, 0.001) as sampler:
        assert server.done.wait(20)
    asked = server.asked
    assert len(sampler.series(sampler.entered).at_seconds) >= 2
    assert sampler.series(sampler.entered).running[:2] == [2, 3]
    assert server.asked == asked


def test_a_server_without_metrics_has_no_series():
    server = Server(status=404)
    with MetricsSampler(server.ask, 0.001) as sampler:
        assert server.done.wait(20)
    assert sampler.series(sampler.entered) is None


def test_the_start_of_another_machines_clock_is_not_taken_for_this_ones():
    server = Server()
    with MetricsSampler(server.ask, 0.001) as sampler:
        assert server.done.wait(20)
    assert sampler.series(7).at_seconds[0] < 20, "7 ns after this machine's start no load began"


def test_a_short_load_is_not_read():
    server = Server()
    with MetricsSampler(server.ask):
        pass
    assert server.asked == 0
