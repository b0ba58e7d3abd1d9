"""A mixed load on a vLLM server, simulated or real, and what its client measures: the truth that figures are judged by.

Kinds of calls: answers of one token, streams, n > 1, lists of prompts, beam searches, a prompt twice, a stream that the
client leaves, refused calls.
"""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import httpx

from bezel.operations.vllm_metrics.sample import Sample, parse

if TYPE_CHECKING:
    from collections.abc import Callable

_LOOK_SECONDS = 0.02


@dataclass
class Sequence:
    """One answer: the seconds from its call to each of its events, and its tokens by the server's count."""

    arrivals: list[float] = field(default_factory=list)
    tokens: int = 0

    @property
    def span(self) -> float:
        return self.arrivals[-1] - self.arrivals[0]


@dataclass
class Truth:
    """What the client saw of its calls.

    Attributes:
        statuses: HTTP statuses of all calls; of a stream that ended with an error the error's.
        sequences: Answers of streams that ran to their end.
        left: Seconds to the first token of answers whose stream the client left.
        prompt_tokens: Tokens of the prompts, once for each answer.
        output_tokens: Tokens of the answers.
        cached_tokens: Tokens of the prompts that the server says it had cached, of calls with one answer.
    """

    statuses: list[int] = field(default_factory=list)
    sequences: list[Sequence] = field(default_factory=list)
    left: list[float] = field(default_factory=list)
    prompt_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0

    @property
    def tpot(self) -> float:
        """Mean over the answers of more than one token."""
        each = [one.span / (one.tokens - 1) for one in self.sequences if one.tokens > 1]
        return sum(each) / len(each)

    @property
    def itl(self) -> float:
        """Mean over the gaps between tokens."""
        several = [one for one in self.sequences if one.tokens > 1]
        return sum(one.span for one in several) / sum(one.tokens - 1 for one in several)

    @property
    def ttft(self) -> float:
        """Mean over all answers that began, also those that the client left."""
        each = [one.arrivals[0] for one in self.sequences] + self.left
        return sum(each) / len(each)


class Client:
    """A client of one server."""

    def __init__(self, url: str, model: str, shown: Truth | None = None) -> None:
        self.http = httpx.Client(base_url=url, timeout=120, limits=httpx.Limits(max_connections=64))
        self.model, self.truth = model, shown or Truth()
        self._lock = threading.Lock()

    def sample(self) -> Sample:
        parsed = parse(self.http.get("/metrics").text, time.monotonic())
        assert parsed is not None
        return parsed

    def at_rest(self) -> Sample:
        """A sample after every sequence has ended."""
        deadline = time.monotonic() + 60
        while True:
            sample = self.sample()
            if sample.sums["vllm:num_requests_running"] + sample.sums["vllm:num_requests_waiting"] == 0:
                return sample
            assert time.monotonic() < deadline

    def body(self, **fields: Any) -> dict[str, Any]:
        return {"model": self.model, "prompt": "Say it", "temperature": 0.5, "ignore_eos": True, **fields}

    def whole(self, **fields: Any) -> dict[str, Any]:
        """A call without a stream."""
        answer = self.http.post("/v1/completions", json=self.body(**fields))
        document: dict[str, Any] = answer.json()
        with self._lock:
            self.truth.statuses.append(answer.status_code)
            if answer.status_code == 200:
                self._count(document["usage"], 1 if fields.get("use_beam_search") else fields.get("n", 1))
        return document

    def stream(self, leave_after: int = 0, **fields: Any) -> None:
        """A call with a stream; left after so many events."""
        options = {"stream": True, "stream_options": {"include_usage": True}}
        answers: dict[int, Sequence] = {}
        sent, seen = time.monotonic(), 0
        with self.http.stream("POST", "/v1/completions", json=self.body(**options, **fields)) as response:
            with self._lock:
                self.truth.statuses.append(response.status_code)
            if response.status_code != 200:
                return
            usage: dict[str, Any] = {}
            for line in response.iter_lines():
                if not line.startswith("data: {"):
                    continue
                event = json.loads(line[6:])
                if "error" in event:  # vLLM checks its queue again after the status line
                    with self._lock:
                        self.truth.statuses[self.truth.statuses.index(200)] = int(event["error"]["code"])
                    return
                usage = event.get("usage") or usage
                for choice in event["choices"]:
                    answers.setdefault(choice["index"], Sequence()).arrivals.append(time.monotonic() - sent)
                seen += 1
                if seen == leave_after:
                    with self._lock:
                        self.truth.left += [one.arrivals[0] for one in answers.values()]
                    return
        with self._lock:
            self._count(usage, fields.get("n", 1))
            for one in answers.values():
                one.tokens = usage["completion_tokens"] // len(answers)
                self.truth.sequences.append(one)

    def _count(self, usage: dict[str, Any], answers: int) -> None:
        self.truth.prompt_tokens += usage["prompt_tokens"] * answers
        self.truth.output_tokens += usage["completion_tokens"]
        self.truth.cached_tokens += (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0


def at_once(*calls: Callable[[], object]) -> list[threading.Thread]:
    """Start calls at the same time."""
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def join_threads(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(300)
        assert not thread.is_alive()


class Stalls:
    """What this process was held up while the context lasted: it adds to the times that its clients measure.

    Attributes:
        longest: Seconds that a thread woke too late, at worst.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        before = time.monotonic()
        while not self._is_over.wait(_LOOK_SECONDS):
            now = time.monotonic()
            self.longest, before = max(self.longest, now - before - _LOOK_SECONDS), now
