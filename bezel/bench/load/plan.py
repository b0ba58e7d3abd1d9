"""What a load is: where to, in which pattern, how long, and of which prompts. Frozen, and JSON in and out.

Owns the words in which every part of the benchmark speaks of a load. Leaves out which loads can be sent
(``bezel.bench.load.plan_rules``), when a request is sent (``bezel.bench.load.patterns``), what it says
(``bezel.bench.prompts.prompts``) and sending it (``bezel.bench.client.load_engine``). Imports the standard library
only: worker processes and jobs begin with it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol

from bezel.errors import UserError

# The headers that authorise a request, asked for at each one: whoever makes it renews them in time.
TokenSource = Callable[[], Mapping[str, str]]
Endpoint = Literal["chat", "completions"]
PromptKind = Literal["unique", "shared_prefix", "multi_turn", "file"]
PATHS: Mapping[str, str] = {"chat": "/v1/chat/completions", "completions": "/v1/completions"}


@dataclass(frozen=True)
class Target:
    """A server.

    Attributes:
        url: Its address, without the path.
        model: The served id.
        endpoint: Which of ``PATHS`` is asked.
        public: Whether anybody may call it: then no identity token is asked for.
        audience: Of the identity token; "" is the address itself.
        ca_file: PEM file of the authority that the server's certificate is checked by; "" is the machine's own.
    """

    url: str
    model: str
    endpoint: Endpoint = "chat"
    public: bool = False
    audience: str = ""
    ca_file: str = ""

    @property
    def path(self) -> str:
        """The path of the endpoint."""
        return PATHS[self.endpoint]


@dataclass(frozen=True)
class Closed:
    """So many users, each of whom sends the next request when the last is answered."""

    users: int


@dataclass(frozen=True)
class Constant:
    """``rate`` requests per second, evenly spaced."""

    rate: float


@dataclass(frozen=True)
class Poisson:
    """``rate`` requests per second on average, each independent of the others."""

    rate: float


@dataclass(frozen=True)
class Burst:
    """``rate`` requests per second on average, with gamma-distributed gaps.

    Attributes:
        burstiness: Shape of the distribution, as ``vllm bench serve`` has it: 1 is Poisson, below 1 comes in bursts,
            above 1 is more even. The gaps' coefficient of variation is 1 / sqrt(burstiness).
    """

    rate: float
    burstiness: float


@dataclass(frozen=True)
class Stage:
    """One level, held so many seconds."""

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
_PATTERNS: Mapping[str, type[Any]] = {
    "closed": Closed,
    "constant": Constant,
    "poisson": Poisson,
    "burst": Burst,
    "staged": Staged,
    "replay": Replay,
}


@dataclass(frozen=True)
class Stop:
    """When no further request is sent: after so many, or so many seconds, whichever comes first. Answers are awaited.

    Each turn of a conversation is a request. Both None is for ``Staged`` and ``Replay``, which end by themselves.
    """

    requests: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class PromptPlan:
    """What the requests say.

    Attributes:
        kind: ``unique``: no two begin alike; ``shared_prefix``: those of one group begin with the same
            ``prefix_tokens``; ``multi_turn``: conversations of ``turns``, each turn repeating what was said before;
            ``file``: the texts of ``file``, in their order, over and over.
        input_tokens: Exact length of a prompt as the server counts it, chat template included; of a multi-turn
            conversation, of its first turn and of what each later one adds. Unused by ``file``.
        output_tokens: Exact length of an answer: generation goes on past the end of the text.
        prefix_tokens: Of ``shared_prefix``: how many of ``input_tokens`` a group shares, template included.
        groups: Of ``shared_prefix``: how many different prefixes.
        turns: Of ``multi_turn``: requests in a conversation.
        file: Of ``file``: one text a line, plain or JSON (a string, or an object with ``prompt``).
        seed: Of the words.
        run: Makes the prompts others than those of a run with the same settings, which the server may still hold in
            its cache; the same value makes the same prompts again.
    """

    kind: PromptKind = "unique"
    input_tokens: int = 128
    output_tokens: int = 128
    prefix_tokens: int = 0
    groups: int = 1
    turns: int = 1
    file: str = ""
    seed: int = 0
    run: str = ""


@dataclass(frozen=True)
class Load:
    """One run.

    Attributes:
        deadline_seconds: Of one request, from when it is sent; what is not answered by then failed as ``timeout``.
        ramp_seconds: In a closed loop, the time over which the users begin, one after the other.
        workers: Processes that send it; each takes every ``workers``-th request or user.
        extra_body: Fields of every request's body beside those that the plan makes; they win.
    """

    target: Target
    pattern: Pattern
    stop: Stop
    prompts: PromptPlan
    deadline_seconds: float = 300.0
    ramp_seconds: float = 0.0
    workers: int = 1
    extra_body: Mapping[str, Any] = field(default_factory=dict)


class Body(NamedTuple):
    """One request as it is sent.

    Attributes:
        data: The JSON of its body.
        asked_tokens: Its ``max_tokens``.
        turn: Which one of its conversation, from 0.
        group: Its group of a shared prefix, -1 for none.
    """

    data: bytes
    asked_tokens: int
    turn: int = 0
    group: int = -1


class Bodies(Protocol):
    """The requests of a run, by number. Cheap to ask, and the same again whoever asks: each worker has its own copy."""

    @property
    def turns(self) -> int:
        """Requests that one user sends in their order before the next ``index``; 1 but for conversations."""

    def body(self, index: int, turn: int = 0) -> Body:
        """The ``turn``-th request of conversation ``index``, both from 0."""


def is_closed(pattern: Pattern) -> bool:
    """Whether users wait for answers, so that no instant is planned."""
    return isinstance(pattern, Closed) or (isinstance(pattern, Staged) and pattern.of == "users")


def to_json(load: Load) -> str:
    """A load as JSON text; holds no secret, and ``from_json`` makes the same load of it."""
    kind = next(name for name, made in _PATTERNS.items() if isinstance(load.pattern, made))
    record = asdict(replace(load, extra_body={})) | {"extra_body": dict(load.extra_body)}
    return json.dumps(record | {"pattern": {"kind": kind, **asdict(load.pattern)}})


def from_json(text: str) -> Load:
    """The load that ``to_json`` wrote.

    Raises:
        UserError: It is none.
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
            **record,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"no load of this version: {error}. Write it again with the same version of bezel.") from None
