"""Measurement of a load: one `Sample` a request, one `Measured` a load.

Raw facts only: instants, counts that the server reported and the kind of each failure. Nothing is computed here that a
reader might define differently (`ttft`, `tpot` and the rest are metrics), and nothing but the standard library is
imported, because the sender of a load must start fast.

Instants are integer nanoseconds of CLOCK_MONOTONIC, 0 where a request did not get that far. Counts are -1 where the
server did not report them.
"""

from array import array
from dataclasses import dataclass

REFUSED = "refused"
"""No connection: refused, no route, no such name, or a failed TLS handshake or verification."""
RESET = "reset"
"""The connection broke before any byte of a response."""
TIMEOUT = "timeout"
"""The request's deadline passed after a response had begun."""
NO_ANSWER = "no_answer"
"""The request's deadline passed, or the server closed, without one byte of a response."""
HTTP_401 = "http_401"
HTTP_403 = "http_403"
HTTP_404 = "http_404"
HTTP_429 = "http_429"
HTTP_4XX = "http_4xx"
"""Any other status of 300 to 499: a redirection is not followed, so it is a response without a completion."""
HTTP_5XX = "http_5xx"
TRUNCATED = "truncated"
"""A response that began and ended early: the connection closed inside it, or the stream ended without `[DONE]`."""
ERROR_IN_STREAM = "error_in_stream"
"""Status 200 and a stream that carries an error event."""
ERROR_IN_BODY = "error_in_body"
"""Status 200 and one JSON document that is an error."""
BAD_JSON = "bad_json"
"""An event or document that is not JSON, or malformed HTTP."""
BAD_USAGE = "bad_usage"
"""`usage` is missing, or counts fewer tokens than chunks that carried one."""
NO_TOKEN = "no_token"  # noqa: S105 - a kind of failure
"""A complete response without one token."""
CLIENT = "client"
"""A failure of the client, never of the server."""
CANCELLED = "cancelled"
"""The client hung up on purpose, as the load asks for."""

KINDS = (
    *(REFUSED, RESET, TIMEOUT, NO_ANSWER),
    *(HTTP_401, HTTP_403, HTTP_404, HTTP_4XX, HTTP_429, HTTP_5XX),
    *(TRUNCATED, ERROR_IN_STREAM, ERROR_IN_BODY, BAD_JSON, BAD_USAGE, NO_TOKEN, CLIENT),
    CANCELLED,
)
INSTANTS = ("planned", "begun", "sent", "departed", "first_after", "first", "first_content", "last", "done")
"""Fields of a sample that are instants."""


@dataclass(slots=True, init=False)
class Sample:
    """One request: its sender, its instants, the server's counts.

    Attributes:
        index: The place of the request in the plan, from 0, over all workers.
        worker: The process that sent it.
        user: The user of a closed loop; 0 in an open one.
        turn: The turn of a conversation, from 0.
        group: The prompt group of shared-prefix sets, -1 for none.
        planned: When it should have been sent (a closed loop: when its user was ready).
        begun: When its worker took a connection for it, or requested one where none was idle.
        sent: When its bytes were given to the kernel, after the server had accepted the connection.
        departed: When the kernel says that the request left this machine, of a long one its first 14,000 bytes; 0 where
            it was not asked, or does not tell.
        first_after: Where the first token was read together with later ones, whose stamp it then has: the instant after
            which it arrived. Else 0.
        first: When the first token with a text arrived, in any channel; 0 for a response of tokens without text.
        first_content: When the first *content* token arrived.
        last: When the last chunk with a token arrived, also one without a text (not `[DONE]`, not the usage chunk).
        done: When the response was complete, or had failed.
        status: The HTTP status, 0 for none.
        failure: One of `KINDS`, empty for none.
        detail: The failure's message, short, without secrets.
        prompt_tokens: As `usage` reports, with the cached ones.
        output_tokens: As `usage` reports, reasoning included.
        cached_tokens: Prompt tokens the server took from its prefix cache.
        reasoning_tokens: Those of `output_tokens` that were reasoning.
        asked_tokens: The requested `max_tokens`.
        chunks: When each chunk arrived that carried a token.
    """

    index: int
    worker: int
    user: int
    turn: int
    group: int
    planned: int
    begun: int
    sent: int
    departed: int
    first_after: int
    first: int
    first_content: int
    last: int
    done: int
    status: int
    failure: str
    detail: str
    prompt_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    asked_tokens: int
    chunks: "array[int]"

    def __init__(
        self, index: int, worker: int = 0, user: int = 0, turn: int = 0, group: int = -1,
        planned: int = 0, begun: int = 0, sent: int = 0, departed: int = 0,
        first_after: int = 0, first: int = 0, first_content: int = 0, last: int = 0, done: int = 0,
        status: int = 0, failure: str = "", detail: str = "",
        prompt_tokens: int = -1, output_tokens: int = -1, cached_tokens: int = -1, reasoning_tokens: int = -1,
        asked_tokens: int = -1, chunks: "array[int] | None" = None,
    ) -> None:  # fmt: skip
        # Written out: the compiler leaves a generated one to the interpreter, which takes three times as long.
        # (At most three at a time: of more, Python makes a tuple.)
        self.index, self.worker, self.user = index, worker, user
        self.turn, self.group = turn, group
        self.planned, self.begun = planned, begun
        self.sent, self.departed = sent, departed
        self.first_after, self.first, self.first_content = first_after, first, first_content
        self.last, self.done = last, done
        self.status, self.failure, self.detail = status, failure, detail
        self.prompt_tokens, self.output_tokens = prompt_tokens, output_tokens
        self.cached_tokens, self.reasoning_tokens = cached_tokens, reasoning_tokens
        self.asked_tokens = asked_tokens
        self.chunks = array("q") if chunks is None else chunks


@dataclass(slots=True)
class ClientHealth:
    """Health of the client, from which `client_limited` is derived.

    Attributes:
        workers: Processes that sent load.
        cpu_seconds: User and system time of all workers between `began` and `ended`.
        busiest_cpu_share: CPU seconds by wall seconds of the busiest worker (1.0 = one core).
        wall_seconds: From `began` to `ended`.
        loop_lag_p99_ms: How late the event loop of the worst worker woke for its own timer.
        loop_lag_max_ms: The worst of those.
        stall_p99_ms: How long other work of the machine kept the worst worker from a CPU within 10 ms (99th
            percentile); None where the kernel does not tell.
        connections: Connections made in all, the first ones included.
        reconnections: Those made after the clock had started, because a server had closed one or more were needed.
        connect_failures: Connections that could not be made.
        backlog: The most complete responses that waited to be parsed.
        interrupted: The load was ended by the user (Ctrl-C, SIGTERM).
        silent_seconds: The time without any response after which the load was ended; 0 if it was not.
        failing_requests: The failures in a row after which the load was ended; 0 if it was not.
        failed_share: The share of failed requests at which the load was ended; 0 if it was not.
        crowd: Requests under way when an open loop reached its limit and sent no more; 0 if it did not.
        waited: Requests that were due while as many as allowed were under way, and waited.
    """

    workers: int = 1
    cpu_seconds: float = 0.0
    busiest_cpu_share: float = 0.0
    wall_seconds: float = 0.0
    loop_lag_p99_ms: float = 0.0
    loop_lag_max_ms: float = 0.0
    stall_p99_ms: float | None = None
    connections: int = 0
    reconnections: int = 0
    connect_failures: int = 0
    backlog: int = 0
    interrupted: bool = False
    silent_seconds: float = 0.0
    failing_requests: int = 0
    failed_share: float = 0.0
    crowd: int = 0
    waited: int = 0


@dataclass(slots=True)
class Measured:
    """The measurement of one load.

    Attributes:
        samples: One a request that was sent or should have been, in order of `index`.
        began: When the clock started, with every connection open.
        ended: When the last response was complete or had failed.
        client: The health of the client.
    """

    samples: list[Sample]
    began: int
    ended: int
    client: ClientHealth
