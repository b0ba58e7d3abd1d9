"""What a load is: where to, in which pattern, how long, and of which prompts. Frozen, and JSON in and out.

Owns the words in which every part of the benchmark speaks of a load, and the rules that a load must keep. Leaves out
when a request is sent (``bezel.bench.patterns``), what it says (``bezel.bench.prompts``) and sending it
(``bezel.bench.engine``). Imports the standard library only: worker processes and jobs begin with it.
"""

import itertools
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import urlsplit

from bezel.told import UserError

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

    Both None is for ``Staged`` and ``Replay``, which end by themselves.
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


def problems(load: Load) -> list[str]:
    """What is wrong with a load: value, consequence, repair, each in one line; [] if it can be sent."""
    found = [*_target_problems(load.target), *_pattern_problems(load.pattern), *_prompt_problems(load.prompts)]
    stop = load.stop
    if stop.requests is None and stop.seconds is None and not isinstance(load.pattern, Staged | Replay):
        found.append("neither requests nor seconds: the run would never end. Give one of them.")
    if stop.requests is not None and stop.requests < 1:
        found.append(f"requests={stop.requests} sends nothing. Give 1 or more.")
    if stop.seconds is not None and not 0 < stop.seconds < math.inf:
        found.append(f"seconds={stop.seconds:g} is no time to send in. Give more than 0.")
    if not 0 < load.deadline_seconds < math.inf:
        found.append(
            f"deadline_seconds={load.deadline_seconds:g} is no time for an answer. Give more than 0, e.g. 300."
        )
    if not 0 <= load.ramp_seconds < math.inf:
        found.append(f"ramp_seconds={load.ramp_seconds:g} is no time to begin in. Give 0 or more.")
    if load.workers < 1:
        found.append(f"workers={load.workers} leaves nobody to send. Give 1 or more.")
    if load.prompts.kind == "multi_turn" and not is_closed(load.pattern):
        found.append("turns wait for each other, so no rate can be promised for them. Give users instead of a rate.")
    return found


def is_closed(pattern: Pattern) -> bool:
    """Whether users wait for answers, so that no instant is planned."""
    return isinstance(pattern, Closed) or (isinstance(pattern, Staged) and pattern.of == "users")


def _target_problems(target: Target) -> list[str]:
    found = []
    parts = urlsplit(target.url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        found.append(f"url {target.url!r} is no http(s) address. Give e.g. http://127.0.0.1:8000.")
    elif parts.username or parts.password:
        # Not shown: what stands there is a secret.
        found.append("the url holds a password, which would stand in results. Leave it out.")
    if not target.model:
        found.append("no model is named, so no request can be made. Give the served id, as GET /v1/models lists it.")
    if target.endpoint not in PATHS:
        found.append(f"endpoint {target.endpoint!r} is unknown. Choose one of {', '.join(PATHS)}.")
    return found


def _pattern_problems(pattern: Pattern) -> list[str]:
    match pattern:
        case Closed(users):
            return [] if users >= 1 else [f"users={users} sends nothing. Give 1 or more."]
        case Constant(rate) | Poisson(rate) | Burst(rate, _) if not 0 < rate < math.inf:
            return [f"rate={rate:g} is no number of requests per second. Give more than 0."]
        case Burst(_, burstiness) if not 0 < burstiness < math.inf:
            return [f"burstiness={burstiness:g} is no shape of gaps. Give more than 0: below 1 bursts, 1 is Poisson."]
        case Staged(_, ()):
            return ["no stage, so nothing is sent. Give one or more as LEVEL:SECONDS."]
        case Staged(of, stages):
            wrong = [stage for stage in stages if not (0 <= stage.level < math.inf and 0 < stage.seconds < math.inf)]
            if of == "users":
                wrong += [stage for stage in stages if stage not in wrong and stage.level % 1]
            return [
                f"stage {one.level:g}:{one.seconds:g} is no level of {of}. Give LEVEL:SECONDS, e.g. 8:30."
                for one in wrong
            ]
        case Replay(instants):
            if not instants:
                return ["the trace holds no instant, so nothing is sent. Give a file with one or more."]
            if not 0 <= instants[0] <= instants[-1] < math.inf or any(
                not a <= b for a, b in itertools.pairwise(instants)
            ):
                return ["the trace's instants are not in order from 0. Sort them, and count from the first."]
    return []


def _prompt_problems(plan: PromptPlan) -> list[str]:
    found = []
    if plan.output_tokens < 1:
        found.append(f"output_tokens={plan.output_tokens} asks for no answer. Give 1 or more.")
    if plan.input_tokens < 1 and plan.kind != "file":
        found.append(f"input_tokens={plan.input_tokens} is no prompt. Give 1 or more.")
    if plan.kind == "shared_prefix" and not 0 < plan.prefix_tokens < plan.input_tokens:
        found.append(
            f"prefix_tokens={plan.prefix_tokens} of input_tokens={plan.input_tokens} leaves nothing "
            f"{'shared' if plan.prefix_tokens < 1 else 'of its own'}. Give 1 to {max(1, plan.input_tokens - 1)}."
        )
    if plan.kind == "shared_prefix" and plan.groups < 1:
        found.append(f"groups={plan.groups} has no prefix to share. Give 1 or more.")
    if plan.kind == "multi_turn" and plan.turns < 1:
        found.append(f"turns={plan.turns} is no conversation. Give 1 or more.")
    if plan.kind == "file" and not plan.file:
        found.append("prompts of a file, and no file is named. Give its path.")
    return found


def checked(load: Load) -> Load:
    """The load, if it can be sent.

    Raises:
        UserError: It cannot; all that is wrong, one a line.
    """
    if found := problems(load):
        raise UserError("\n   ".join(["this load cannot be sent:", *found]))
    return load


def to_json(load: Load) -> str:
    """A load as JSON text; holds no secret, and ``from_json`` makes the same load of it."""
    kind = next(name for name, made in _PATTERNS.items() if isinstance(load.pattern, made))
    record = asdict(replace(load, extra_body={})) | {"extra_body": dict(load.extra_body)}
    return json.dumps(record | {"pattern": {"kind": kind, **asdict(load.pattern)}})


def from_json(text: str) -> Load:
    """The load that ``to_json`` wrote.

    Raises:
        UserError: It is none, or one that cannot be sent.
    """
    try:
        record = json.loads(text)
        pattern = dict(record.pop("pattern"))
        kind = pattern.pop("kind")
        if kind == "staged":
            pattern["stages"] = tuple(Stage(**stage) for stage in pattern["stages"])
        if kind == "replay":
            pattern["instants"] = tuple(pattern["instants"])
        load = Load(
            target=Target(**record.pop("target")),
            pattern=_PATTERNS[kind](**pattern),
            stop=Stop(**record.pop("stop")),
            prompts=PromptPlan(**record.pop("prompts")),
            **record,
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UserError(f"no load of this version: {error}. Write it again with the same version of bezel.") from None
    return checked(load)
