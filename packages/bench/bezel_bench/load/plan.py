"""Definition of a load: target, pattern, duration and prompts. Frozen, and convertible to and from JSON.

Owns the terms that every part of the benchmark uses for a load. Leaves out the rules for loads that can be sent
(`bezel_bench.load.plan_rules`), the timing of requests (`bezel_bench.load.patterns`), their content
(`bezel_bench.prompts.prompts`) and sending them (`bezel_bench.client.load_engine`). Imports the standard library
only, because worker processes and jobs begin with it.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol, get_args, runtime_checkable

from bezel_base.errors import UserError

# Returns the headers that authorise a request, called for each one; the source renews them in time.
TokenSource = Callable[[], Mapping[str, str]]
Endpoint = Literal["chat", "completions", "embeddings", "rerank", "classify", "pooling"]
PromptKind = Literal["unique", "lengths", "shared_prefix", "multi_turn", "file", "trace"]
PATHS: Mapping[str, str] = {
    "chat": "/v1/chat/completions",
    "completions": "/v1/completions",
    "embeddings": "/v1/embeddings",
    "rerank": "/v1/rerank",
    "classify": "/classify",
    "pooling": "/pooling",
}
GENERATING = ("chat", "completions")
"""Endpoints whose responses are generated tokens; the others compute something of the prompts alone."""


@dataclass(frozen=True)
class Target:
    """A server.

    Attributes:
        url: Its address, without the path.
        model: The served id.
        endpoint: The endpoint, one of `PATHS`.
        public: Whether unauthenticated calls are allowed: then no identity token is requested.
        audience: Audience of the identity token; "" is the address itself.
        ca_file: PEM file of the authority that verifies the server's certificate; "" is the machine's own.
        at: `HOST:PORT` to connect to with https, if not to what the name in the address leads to; "" otherwise.
    """

    url: str
    model: str
    endpoint: Endpoint = "chat"
    public: bool = False
    audience: str = ""
    ca_file: str = ""
    at: str = ""

    @property
    def path(self) -> str:
        """Return the path of the endpoint."""
        return PATHS[self.endpoint]


@dataclass(frozen=True)
class Closed:
    """A number of users, each of whom sends the next request when the last one's response is complete."""

    users: int


@dataclass(frozen=True)
class Constant:
    """`rate` requests per second, evenly spaced."""

    rate: float


@dataclass(frozen=True)
class Poisson:
    """`rate` requests per second on average, each independent of the others."""

    rate: float


@dataclass(frozen=True)
class Burst:
    """`rate` requests per second on average, with gamma-distributed gaps.

    Attributes:
        burstiness: Shape of the distribution, as `vllm bench serve` has it: 1 is Poisson, below 1 comes in bursts,
            above 1 is more even. The gaps' coefficient of variation is 1 / sqrt(burstiness).
    """

    rate: float
    burstiness: float


@dataclass(frozen=True)
class Stage:
    """One level, held for a number of seconds."""

    level: float
    seconds: float


@dataclass(frozen=True)
class Staged:
    """Levels one after the other: of users (closed loop), or of evenly spaced requests per second (open loop)."""

    of: Literal["users", "rate"]
    stages: tuple[Stage, ...]


@dataclass(frozen=True)
class Replay:
    """A recorded trace: seconds from the start, in order."""

    instants: tuple[float, ...]


Pattern = Closed | Constant | Poisson | Burst | Staged | Replay
_PATTERNS: Mapping[str, type[Any]] = {pattern.__name__.lower(): pattern for pattern in get_args(Pattern)}


@dataclass(frozen=True)
class Stop:
    """End of sending: after a number of requests or of seconds, whichever comes first. Open responses are awaited.

    Each turn of a conversation is a request. Both None is for `Staged` and `Replay`, which end by themselves.
    """

    requests: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class PromptPlan:
    """Content of the requests.

    Attributes:
        kind: `unique`: no two begin alike; `lengths`: the same, of lengths drawn for each; `shared_prefix`: those of
            one group begin with the same `prefix_tokens`; `multi_turn`: conversations of `turns`, each turn repeating
            the earlier ones; `file`: the entries of `file`, in their order, over and over; `trace`: lengths and shared
            prefixes of the trace in `file`.
        input_tokens: Exact length of a prompt as the server counts it, chat template included; of a multi-turn
            conversation, of its first turn and of what each later one adds. Unused by `file`.
        output_tokens: Exact length of a response: generation continues past the end of the text.
        input_lengths: Of `lengths`: distribution of the prompts' lengths, as of `bezel_bench.prompts.lengths`; "" is
            `input_tokens` for all; `output_lengths` of the responses'.
        prefix_tokens: Of `shared_prefix`: the part of `input_tokens` that a group shares, template included.
        groups: Of `shared_prefix`: number of different prefixes.
        turns: Of `multi_turn`, and of the conversations of a `file`: requests in a conversation.
        served_answers: Of conversations: whether the model's turns are the server's own responses; else they are
            generated words, the same in every run, or those of the file.
        documents: Of the endpoint `rerank`: texts of `input_tokens` each that a request ranks.
        images: Images of each prompt, made of `image_size` ("WIDTHxHEIGHT", pixels); of a chat with one text a request.
        audio_seconds: Length of the audio of each prompt; 0 is none.
        file: Of `file`: texts, messages or conversations, as of `bezel_bench.prompts.datasets`; of `trace`: as of
            `bezel_bench.prompts.traces`.
        column: Of `file`: the column, or the key, of the prompts; "" is that of the file's form.
        length_column: Of `file`: the column, or the key, of each response's length; "" is `output_tokens` for all.
        min_chars: Of `file`: the fewest characters of an entry that is sent; `max_chars` the most, None for no limit.
        seed: Seed of the words.
        run: Makes the prompts differ from those of a run with the same settings, which the server may still hold in
            its cache; the same value makes the same prompts again.
    """

    kind: PromptKind = "unique"
    input_tokens: int = 128
    output_tokens: int = 128
    input_lengths: str = ""
    output_lengths: str = ""
    prefix_tokens: int = 0
    groups: int = 1
    turns: int = 1
    served_answers: bool = False
    documents: int = 1
    images: int = 0
    image_size: str = "512x512"
    audio_seconds: float = 0.0
    file: str = ""
    column: str = ""
    length_column: str = ""
    min_chars: int = 0
    max_chars: int | None = None
    seed: int = 0
    run: str = ""


@dataclass(frozen=True)
class Load:
    """One load.

    Attributes:
        deadline_seconds: Deadline of one request from its sending; if incomplete by then it fails as `timeout`.
        ramp_seconds: In a closed loop, the time over which the users start, one after the other.
        max_in_flight: In an open loop, the requests under way at which no more are sent; None is no such limit.
        max_concurrency: In an open loop, the requests under way at which due ones wait; None is no such limit.
        max_failed_share: The share of failed requests above which the load ends; None is no such limit.
        think_seconds: In a closed loop, the time from a response to its user's next request.
        cancel_share: The share of requests at which the client hangs up, `cancel_seconds` after sending them, unless
            the response is complete before.
        more_urls: Addresses beside the target's: the processes send to one each, in turn.
        workers: Processes that send it; each takes every `workers`-th request or user.
        extra_body: Additional fields of every request's body; they override the plan's.
    """

    target: Target
    pattern: Pattern
    stop: Stop
    prompts: PromptPlan
    deadline_seconds: float = 300.0
    ramp_seconds: float = 0.0
    think_seconds: float = 0.0
    max_in_flight: int | None = None
    max_concurrency: int | None = None
    max_failed_share: float | None = None
    cancel_share: float = 0.0
    cancel_seconds: float = 0.0
    more_urls: tuple[str, ...] = ()
    workers: int = 1
    extra_body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def urls(self) -> tuple[str, ...]:
        """The addresses; that of a worker is at its number, modulo their count."""
        return (self.target.url, *self.more_urls)


class Body(NamedTuple):
    """One request's body.

    Attributes:
        data: The JSON of its body.
        asked_tokens: The requested `max_tokens`.
        turn: Its number in its conversation, from 0.
        group: Its group of a shared prefix, -1 for none.
    """

    data: bytes
    asked_tokens: int
    turn: int = 0
    group: int = -1


class Bodies(Protocol):
    """The requests of a load, by number. Cheap and deterministic, because each worker has its own copy."""

    @property
    def turns(self) -> int:
        """The requests that one user sends in order before the next `index`; 1 except for conversations."""

    def body(self, index: int, turn: int = 0) -> Body:
        """Return the `turn`-th request of conversation `index`, both from 0."""


@runtime_checkable
class ReplyingBodies(Bodies, Protocol):
    """Conversations that hold the server's own responses."""

    def reply(self, index: int, turn: int, responses: Sequence[str]) -> Body:
        """Return the `turn`-th request of a conversation whose earlier requests got the responses `responses`."""


def is_closed(pattern: Pattern) -> bool:
    """Whether users wait for responses, so that no instant is planned."""
    return isinstance(pattern, Closed) or (isinstance(pattern, Staged) and pattern.of == "users")


def to_json(load: Load) -> str:
    """Return a load as JSON text, without secrets; `from_json` makes the same load of it."""
    kind = type(load.pattern).__name__.lower()
    record = asdict(replace(load, extra_body={})) | {"extra_body": dict(load.extra_body)}
    return json.dumps(record | {"pattern": {"kind": kind, **asdict(load.pattern)}})


def from_json(text: str) -> Load:
    """Read the load that `to_json` wrote.

    Raises:
        UserError: It is not a load of this version.
    """
    try:
        record = json.loads(text)
        pattern = dict(record.pop("pattern"))
        kind = pattern.pop("kind")
        if kind == "staged":
            pattern["stages"] = tuple(Stage(**stage) for stage in pattern["stages"])
        if kind == "replay":
            pattern["instants"] = tuple(pattern["instants"])
        return Load(
            target=Target(**record.pop("target")),
            pattern=_PATTERNS[kind](**pattern),
            stop=Stop(**record.pop("stop")),
            prompts=PromptPlan(**record.pop("prompts")),
            more_urls=tuple(record.pop("more_urls")),
            **record,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(
            f"the load was written by another version of bezel ({error}): write it again with this version."
        ) from None
