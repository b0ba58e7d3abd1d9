"""Time to the first token at the caller and at the server, side by side, and what lies between them.

The server's own time is the growth of its TTFT over one request: readings of `/metrics` before and after it, of one
process, in which no other sequence had its first token. Anything else is not judged. Owns the readings and the rule;
leaves the request to its caller.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from bezel.operations.metrics.metrics import read_samples
from bezel.operations.redaction import clean_text
from bezel.operations.serving.server import DeployedServer
from bezel.operations.serving.streams import Stream, read_stream
from bezel.operations.vllm_metrics import sample as names
from bezel.operations.vllm_metrics.sample import Sample, why_not_comparable
from bezel_base.errors import UserError, one_line

SLOW_SECONDS = 1.0
"""Time outside of the server from which a path is called slow, if it is half of the caller's TTFT or more."""
_SHARE = 0.5
_CLOCKS = 5.0  # seconds by which the clocks of caller and server may differ
_NOTE = 300
_KEEP = "keep an instance with scaling.min_instances, which costs money all the time; `bezel plan` shows both prices."
_LOOK_BETWEEN = "look at what lies between: network, proxy, gateway, load balancer; the server itself is fast."
_LOOK_BEFORE = (
    "look at what holds requests to the model: Cloud Run while its instances are at scaling.request_concurrency or one "
    "starts, a gateway or proxy that queues them; raise scaling.max_instances or scaling.request_concurrency."
)
_CHAT, _PROBE_SECONDS = "/v1/chat/completions", 300.0


@dataclass(frozen=True)
class Reading:
    """One reading of a server's metrics on a connection of its own.

    Attributes:
        seconds: How long it took; None where there is none.
        sample: The metrics; None where they were not read.
        why: Why there is none, "" otherwise.
    """

    seconds: float | None = None
    sample: Sample | None = None
    why: str = ""


@dataclass(frozen=True)
class FirstToken:
    """The time to a first token, at the caller and at the server.

    Attributes:
        seconds: At the caller; None without a token.
        server_seconds: At the server, from the request's arrival at vLLM; None where not judged.
        not_judged: Why the server's time is unknown, "" where it is known.
        between: What lies between both, where that is slow; "" otherwise.
        repair: What to do about it.
    """

    seconds: float | None
    server_seconds: float | None = None
    not_judged: str = ""
    between: str = ""
    repair: str = ""

    def line(self) -> str:
        """Both times, for people."""
        here = "unknown" if self.seconds is None else f"{self.seconds:.3g} s"
        if self.server_seconds is None:
            return f"{here} here; at the server not judged: {self.not_judged}"
        return f"{here} here, {self.server_seconds:.3g} s at the server"


@dataclass
class Measurement:
    """The readings around a request; `result` is what they say of its first token."""

    before: Reading
    sent_unix: float = field(default_factory=time.time)
    after: Reading = field(default_factory=Reading)

    def result(self, stream: Stream) -> FirstToken:
        """What the readings say of a stream's first token."""
        seconds = None if stream.first_at is None else stream.first_at - stream.sent_at
        return first_token(
            seconds, self.before, self.after, sent_unix=self.sent_unix, prompt_tokens=stream.prompt_tokens
        )


@contextmanager
def readings_around(
    server: DeployedServer, *, is_awake: bool, seconds: float, reads: bool = True
) -> Iterator[Measurement]:
    """Read the metrics around the requests of a block. A server without an instance is not read before them.

    Args:
        server: The deployed server.
        is_awake: Whether an instance runs: reading would start one otherwise, and hide the cold start.
        seconds: Time limit of each reading.
        reads: Whether to read at all.
    """
    asleep = Reading(why="no instance ran before")
    measurement = Measurement(_reading(server, seconds) if reads and is_awake else asleep)
    yield measurement
    if reads:
        measurement.after = _reading(server, seconds)


def probe(server: DeployedServer, model: str, *, is_awake: bool, seconds: float) -> FirstToken:
    """The first token of a short request of its own.

    Raises:
        ServerError: The server refused, or did not answer.
        RestError: There is no identity token for it.
    """
    body = {
        "model": model,
        "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": 1,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    with readings_around(server, is_awake=is_awake, seconds=seconds) as readings:
        stream = read_stream(server, _CHAT, body, seconds=_PROBE_SECONDS, max_characters=_NOTE)
    return readings.result(stream)


def first_token(
    seconds: float | None, before: Reading, after: Reading, *, sent_unix: float, prompt_tokens: int | None
) -> FirstToken:
    """The first token's time by two readings. Pure.

    Args:
        seconds: Its time at the caller; None without a token.
        before: The reading before the request.
        after: The reading after it.
        sent_unix: When it was sent, in Unix seconds.
        prompt_tokens: Its tokens by the server's count; None if unknown.
    """
    if seconds is None:
        return FirstToken(None, not_judged="no token came")
    if after.sample is None:
        return FirstToken(seconds, not_judged=after.why)
    first, last = before.sample, after.sample
    started = last.started is not None and last.started > sent_unix - _CLOCKS
    if first is None and not started:
        return FirstToken(seconds, not_judged=before.why or "no reading before the request")
    if first is not None and (why := why_not_comparable(first, last)):
        return FirstToken(seconds, not_judged=why)
    count, total, prompts = (
        (last.get(name) or 0.0) - ((first.get(name) or 0.0) if first else 0.0)
        for name in (f"{names.TTFT}_count", f"{names.TTFT}_sum", names.PROMPT)
    )
    if count != 1 or (prompt_tokens is not None and prompts != prompt_tokens):
        others = "another instance answered" if count == 0 else f"{count:g} sequences began in that time"
        if count == 1:
            others = "the sequence that began in that time was another one"
        return FirstToken(seconds, not_judged=others)
    between, repair = _between(seconds - total, seconds, before, after, sent_unix if first is None else None)
    return FirstToken(seconds, total, between=between, repair=repair)


def _between(gap: float, seconds: float, before: Reading, after: Reading, cold_since: float | None) -> tuple[str, str]:
    """What took the time outside of the server, and what to do; "" where it is not slow."""
    if gap < SLOW_SECONDS or gap < _SHARE * seconds:
        return "", ""
    outside = f"{gap:.3g} s passed outside of the server"
    if cold_since is not None and after.sample is not None and after.sample.started is not None:
        begun = max(0.0, after.sample.started - cold_since)
        return f"a cold start: {outside}, whose process began {begun:.3g} s after the request", _KEEP
    path = min(each.seconds for each in (before, after) if each.seconds is not None)
    if path >= _SHARE * gap:
        return f"the path: {outside}, and a reading of its metrics took {path:.3g} s as well", _LOOK_BETWEEN
    return f"a queue before the server: {outside}, though a reading of its metrics took {path:.2g} s", _LOOK_BEFORE


def _reading(server: DeployedServer, seconds: float) -> Reading:
    begin = time.monotonic()
    try:
        sample = read_samples(server, reads=1, seconds=seconds)[-1]
    except UserError as error:
        return Reading(why=clean_text(f"the metrics could not be read: {one_line(error)}", _NOTE))
    return Reading(time.monotonic() - begin, sample)
