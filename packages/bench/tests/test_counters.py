"""A server's counters: what is read of a real one's answer, and when a difference means something."""

from pathlib import Path

import pytest

from bezel_bench.result.document import Reading
from bezel_bench.server.counters import acceptance, counter_increase, reading, readings, running, series
from bezel_bench.server.drain import DrainClock, drain, read_metrics
from bezel_bench.server.http_probe import ProbeResponse

RECORDED = (Path(__file__).parent / "fixtures/vllm/metrics-mtp.txt").read_text(encoding="utf-8")
IDLE = 'vllm:num_requests_running{engine="0"} 0.0\nvllm:num_requests_waiting{engine="0"} 0.0\n'


def test_a_recorded_answer_is_read_whole():
    counters = reading(RECORDED)
    assert counters == Reading(
        process_started=1795221302.73, engines=1, requests=121, prompt_tokens=9031, cached_tokens=0,
        generated_tokens=1926, preemptions=0, drafts=1805, draft_tokens=5415, accepted_tokens=0,
        accepted_per_position=[0, 0, 0],
    )  # fmt: skip
    assert running(RECORDED) == (0, 0)


def test_engines_are_summed_and_dates_are_not():
    lines = [f'vllm:prompt_tokens_total{{engine="{engine}",model_name="a b}}"}} {10 + engine}.0' for engine in range(3)]
    lines += ['vllm:prompt_tokens_created{engine="0"} 1.7e+09', "vllm:generation_tokens_total NaN", "# a note", ""]
    counters = reading("\n".join(lines))
    assert (counters.prompt_tokens, counters.engines, counters.generated_tokens) == (33, 3, None)


def test_aborted_requests_are_no_successes():
    lines = [
        f'vllm:request_success_total{{finished_reason="{why}"}} 5.0' for why in ("stop", "length", "abort", "error")
    ]
    assert reading("\n".join(lines)).requests == 10


def test_another_servers_answer_has_no_counters():
    assert reading("http_requests_total 5\n") is None
    assert running("http_requests_total 5\n") is None
    assert list(series("{} 5\nno number\n")) == [("", {}, 5.0)]


def at(**counts: int) -> Reading:
    return Reading(process_started=1.0, **counts)


def test_a_difference_is_what_came_on_top():
    before = at(requests=10, drafts=100, accepted_tokens=30, accepted_per_position=[20, 10])
    after = at(requests=15, drafts=300, accepted_tokens=130, accepted_per_position=[100, 50])
    increase = counter_increase([before, before], [after, after], instances=1)
    assert (increase.gained.requests, increase.gained.accepted_per_position, increase.why) == (5, [80, 40], "")
    assert acceptance(increase.gained) == [0.4, 0.2]
    assert acceptance(at(requests=5)) is None


@pytest.mark.parametrize(
    ("before", "after", "instances", "why"),
    [
        ([at(requests=1)], [at(requests=2)], 3, "3 instances serve at"),
        ([at(requests=1), Reading(process_started=2.0, requests=1)], [at(requests=2)], None, "several processes"),
        ([at(requests=1)], [Reading(process_started=2.0, requests=2)], 1, "another process responded"),
        ([at(requests=5)], [at(requests=2)], 1, "requests fell from 5 to 2"),
        ([at(requests=5)], [at(requests=6, drafts=0)], 1, "drafts was counted at one end"),
        ([], [at(requests=6)], 1, "reports no counters"),
    ],
)
def test_counters_that_cannot_be_subtracted_are_not_trusted(before, after, instances, why):
    increase = counter_increase(before, after, instances=instances)
    assert increase.gained is None
    assert why in increase.why


class Server:
    """Answers /metrics with one text after the other, the last one for ever; time passes with each wait."""

    def __init__(self, *texts: str, status: int = 200) -> None:
        self.texts, self.status, self.asked, self.at = list(texts), status, 0, 0.0

    def ask(self, path: str, body: object) -> ProbeResponse:
        assert (path, body) == ("/metrics", None)
        text = self.texts[min(self.asked, len(self.texts) - 1)]
        self.asked += 1
        return ProbeResponse(self.status, text.encode())

    @property
    def clock(self) -> DrainClock:
        def sleep(seconds: float) -> None:
            self.at += seconds

        return DrainClock(lambda: self.at, sleep)


BUSY = 'vllm:num_requests_running{engine="0"} 3.0\nvllm:num_requests_waiting{engine="0"} 2.0\n'
WAITING = 'vllm:num_requests_running{engine="0"} 0.0\nvllm:num_requests_waiting{engine="0"} 1.0\n'


def test_a_busy_server_is_waited_for():
    server, messages = Server(BUSY, BUSY, WAITING, IDLE), []
    drained = drain(server.ask, messages.append, clock=server.clock)
    assert (drained.idle, server.asked) == (True, 4)
    assert messages[0] == "waits for an idle server: 3 requests run, 2 wait, 0 s so far"


def test_a_server_that_stays_busy_is_given_up():
    server = Server(BUSY)
    drained = drain(server.ask, lambda _: None, clock=server.clock, deadline_seconds=5)
    assert (drained.idle, drained.running, drained.waiting) == (False, 3, 2)
    assert 5 <= drained.seconds < 6


@pytest.mark.parametrize(
    ("server", "why"),
    [
        (Server("", status=404), "HTTP 404"),
        (Server("refused", status=0), "refused"),
        (Server("up 1"), "another server"),
    ],
)
def test_a_server_that_does_not_say_is_not_waited_for(server, why):
    drained = drain(server.ask, lambda _: None, clock=server.clock)
    assert (drained.idle, why in drained.why) == (None, True)
    assert readings(read_metrics(server.ask)) == []


def test_counters_are_looked_at_more_than_once():
    server = Server(RECORDED)
    assert [one.requests for one in readings(read_metrics(server.ask))] == [121, 121, 121]
