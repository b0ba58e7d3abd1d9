"""Each figure of `metrics`, `watch` and `advise` under a mixed load, beside what the client of that load measured.

The simulated server and a real one pass the same checks: BEZEL_REAL_VLLM names a folder with a real one (see
test_real_vllm.py); without it that half is skipped.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from bezel.operations.vllm_metrics.figures import Figure, figures_of, notes_of
from bezel.operations.vllm_metrics.sample import QUEUE, TTFT
from simulated_vllm_support.process import NAME, simulated_vllm
from tests.support.operations.mixed_load import Client, Stalls, Truth, at_once, join_threads
from tests.support.real_vllm import TIMEOUT, real_vllm

pytestmark = [pytest.mark.slow, pytest.mark.timeout(TIMEOUT)]
SEQUENCES, MOST = 8, 20
MOST_STALLED = 0.1  # seconds; the answers whose times are compared take five times as long
OPTIONS = ("--enable-prompt-tokens-details", f"--max-num-queued-reqs={MOST}")


@pytest.fixture(scope="module", params=["simulated", "real"])
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp(request.param)
    if request.param == "real":
        with real_vllm(folder, *OPTIONS) as (url, _):
            yield warm_up(Client(url, "tiny-gemma4"))
    else:
        limits = (f"--max-num-seqs={SEQUENCES}", "--max-model-len=4096")
        with simulated_vllm(folder, *limits, *OPTIONS) as url:
            yield warm_up(Client(url, NAME))


def warm_up(client: Client) -> Client:
    client.whole(max_tokens=4)
    return client


class Window:
    """The time of a load: the figures of it, and its truth."""

    def __init__(self, client: Client) -> None:
        self.client = client
        client.truth = self.truth = Truth()
        self.first = client.at_rest()

    def end(self) -> dict[str, Figure]:
        self.last = self.client.at_rest()
        self.seconds = self.last.read_at - self.first.read_at
        return {figure.name: figure for figure in figures_of(self.last, self.first)}

    def count(self, histogram: str) -> float:
        """Observations of a histogram in that time."""
        name = f"{histogram}_count"
        return self.last.sums[name] - self.first.sums[name]


def measure(client: Client, load: Callable[[], bool]) -> tuple[Window, dict[str, Figure]]:
    """A load and its figures; done again, twice at most, where this machine stalled meanwhile.

    Args:
        client: The client.
        load: Sends the load; False where the machine was too slow for the load that was meant.
    """
    for _ in range(3):
        window = Window(client)
        with Stalls() as stalls:
            is_as_meant = load()
            figures = window.end()
        if is_as_meant and stalls.longest < MOST_STALLED:
            break
    return window, figures


def test_each_mean_is_the_one_that_clients_see_among_answers_of_one_token(client: Client) -> None:
    def load() -> bool:
        for number in range(5):
            client.stream(prompt=f"Tell {number}", max_tokens=200)
            for _ in range(3):
                client.stream(prompt=f"Ask {number}", max_tokens=1)
        client.stream(max_tokens=200, n=3)
        client.stream(prompt=["One and two", "Three or four"], max_tokens=200)
        client.stream(max_tokens=800, leave_after=3)
        assert client.whole(prompt="word " * 9000, max_tokens=4)["error"]
        return True

    window, figures = measure(client, load)
    truth = window.truth
    naive = sum(one.span / max(1, one.tokens - 1) for one in truth.sequences) / len(truth.sequences)
    tpot = figures["tpot"].value
    assert tpot == pytest.approx(truth.tpot, rel=0.4)
    assert naive < 0.6 * truth.tpot  # what a mean over all answers would be
    assert figures["itl"].value == pytest.approx(truth.itl, rel=0.4)
    # A busy machine adds to the client's time: connection, threads, its share of the processor.
    ttft, queued = figures["ttft"].value, figures["queue_time"].value
    assert ttft is not None
    assert queued is not None
    assert ttft < truth.ttft < ttft + 0.5
    # Each answer waits in the queue before its first token, so the sums compare, however long this machine holds one
    # up. The means do not: an answer that the client left counts in that of the first tokens alone.
    assert 0 <= queued * window.count(QUEUE) < ttft * window.count(TTFT)
    # What was generated for the client that left is known to the server alone.
    rate = figures["generation_throughput"].value
    assert rate is not None
    assert truth.output_tokens <= rate * window.seconds <= truth.output_tokens + 300
    assert figures["requests_rate"].value == pytest.approx(truth.statuses.count(200) / window.seconds)
    assert figures["success_rate"].value == 1.0
    assert figures["preemptions"].value == 0
    assert notes_of(window.last, window.first) == ()


def test_prompts_count_once_for_each_answer_and_their_cached_part_is_known(client: Client) -> None:
    window = Window(client)
    for _ in range(3):
        client.whole(prompt="again and again " * 60, max_tokens=2)
    client.whole(prompt="short", max_tokens=2, n=2)
    figures, truth = window.end(), window.truth
    assert truth.cached_tokens > 0
    assert figures["prefix_cache_hit_rate"].value == pytest.approx(truth.cached_tokens / truth.prompt_tokens)
    rate = figures["prompt_throughput"].value
    assert rate is not None
    assert rate * window.seconds == pytest.approx(truth.prompt_tokens)


def test_a_queue_is_seen_while_it_waits_and_its_time_afterwards(client: Client) -> None:
    queued: dict[str, float | None] = {}

    def load() -> bool:
        threads = at_once(*[partial(client.stream, prompt=f"Long {number}", max_tokens=600) for number in range(12)])
        while any(thread.is_alive() for thread in threads):
            now = {figure.name: figure.value for figure in figures_of(client.sample())}
            if (now["running"], now["waiting"]) == (SEQUENCES, 12 - SEQUENCES):
                queued.update(now)
                break
        join_threads(threads)
        return bool(queued)

    window, figures = measure(client, load)
    truth = window.truth
    assert (queued["running"], queued["waiting"]) == (SEQUENCES, 12 - SEQUENCES)
    assert queued["kv_cache_usage"]
    assert (figures["running"].value, figures["waiting"].value, figures["kv_cache_usage"].value) == (0, 0, 0)
    first = sorted(one.arrivals[0] for one in truth.sequences)
    waited = sum(first[SEQUENCES:]) / 12  # of the mean over 12, what those who waited add
    assert figures["queue_time"].value == pytest.approx(waited, rel=0.4)


def test_refused_calls_lower_the_share_of_success_as_clients_count_it(client: Client) -> None:
    def load() -> bool:
        client.whole(max_tokens=2, n=6)
        calls = [partial(client.stream, prompt=f"Many {number}", max_tokens=150) for number in range(MOST + 8)]
        join_threads(at_once(*calls))
        return 503 in client.truth.statuses

    window, figures = measure(client, load)
    statuses = window.truth.statuses
    assert statuses.count(503) > 0
    assert figures["success_rate"].value == pytest.approx(statuses.count(200) / len(statuses))
    assert figures["requests_rate"].value == pytest.approx(len(statuses) / window.seconds)


def test_beam_searches_do_not_sink_a_mean(client: Client) -> None:
    def load() -> bool:
        for _ in range(2):
            client.stream(prompt="Beside it", max_tokens=200)
        client.whole(prompt="Search", max_tokens=5, n=3, use_beam_search=True)
        return True

    window, figures = measure(client, load)
    gained = window.last.sums["vllm:request_params_n_count"] - window.first.sums["vllm:request_params_n_count"]
    assert gained == 2 + 1 + 4 * 3
    assert figures["ttft"].value is figures["queue_time"].value is None
    assert "steps of a beam search" in notes_of(window.last, window.first)[0]
    assert figures["tpot"].value == pytest.approx(window.truth.tpot, rel=0.4)
    assert figures["requests_rate"].value == pytest.approx(3 / window.seconds)


SPECULATING = (
    '--speculative-config={"method":"ngram","num_speculative_tokens":3,"prompt_lookup_max":3,"prompt_lookup_min":1}',
    "--per-request-spec-decode-metrics=summary",
    "--no-enable-prefix-caching",
)


def test_acceptance_is_that_of_the_answers(tmp_path: Path) -> None:
    """On a real server alone: the simulated one reports no speculation by request."""
    with real_vllm(tmp_path, *SPECULATING) as (url, _):
        client = warm_up(Client(url, "tiny-gemma4"))
        window = Window(client)
        speculations = [
            client.whole(prompt=f"{word} " * 40, max_tokens=60, temperature=0)["metrics"]["speculative_decoding"]
            for word in ("one", "two", "three")
        ]
        figures = window.end()
        steps, drafted, accepted = (
            sum(each[name] for each in speculations)
            for name in ("num_spec_steps", "num_draft_tokens", "num_accepted_draft_tokens")
        )
        assert accepted > 0
        assert figures["acceptance_rate"].value == pytest.approx(accepted / drafted)
        assert figures["acceptance_length"].value == pytest.approx(1 + accepted / steps)
        assert figures["preemptions"].value == 0
        assert figures["prefix_cache_hit_rate"].value is None
