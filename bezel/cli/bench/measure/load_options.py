"""Options of a benchmark's load: pattern, end, prompts. Leaves out the server and the measurement."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel.errors import UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from bezel.bench.load.plan import Load, Pattern, PromptKind, Stop, Target

_ROUNDS = 10
"""Default number of requests of each user: at least three are needed for a steady state."""
_SECONDS = 60.0


def load_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the load."""
    pattern = parser.add_argument_group("the pattern, one of them (default: --users 1)")
    which = pattern.add_mutually_exclusive_group()
    which.add_argument("--users", type=int, metavar="N", help="closed loop: each asks again once it is answered")
    which.add_argument("--rate", type=float, metavar="R", help="open loop: requests per second, answered or not")
    which.add_argument("--user-stages", metavar="N:SECONDS,...", help="closed loop, one level after the other")
    which.add_argument("--rate-stages", metavar="R:SECONDS,...", help="open loop, one level after the other")
    which.add_argument("--trace", type=Path, metavar="FILE", help="open loop: one instant a line, in seconds")
    pattern.add_argument(
        "--arrivals", choices=("constant", "poisson", "burst"), help="gaps of --rate (default: poisson)"
    )
    pattern.add_argument(
        "--burstiness", type=float, metavar="SHAPE", help="of --arrivals burst: below 1 in bursts, 1 is poisson"
    )
    end = parser.add_argument_group("the end")
    end.add_argument(
        "--requests",
        type=int,
        metavar="N",
        help=f"so many (default: {_ROUNDS} of each user, or --seconds {_SECONDS:g})",
    )
    end.add_argument("--seconds", type=float, metavar="S", help="none begins later; what runs is awaited")
    end.add_argument("--deadline", type=float, default=300.0, metavar="S", help="of one request (default: 300)")
    end.add_argument("--ramp", type=float, default=0.0, metavar="S", help="users begin one after the other")
    prompts = parser.add_argument_group("the prompts")
    prompts.add_argument(
        "--input-tokens", type=int, default=128, metavar="N", help="of a prompt, template included (default: 128)"
    )
    prompts.add_argument("--output-tokens", type=int, default=128, metavar="N", help="of an answer (default: 128)")
    prompts.add_argument("--prefix-tokens", type=int, default=0, metavar="N", help="that a group of prompts shares")
    prompts.add_argument("--groups", type=int, default=1, metavar="N", help="different prefixes (default: 1)")
    prompts.add_argument("--turns", type=int, default=1, metavar="N", help="of a conversation, each repeats the last")
    prompts.add_argument("--file", default="", help="texts instead, one a line, plain or JSON with `prompt`")
    prompts.add_argument("--seed", type=int, default=0, metavar="N", help="of words and gaps (default: 0)")
    prompts.add_argument(
        "--run-id", default="", metavar="ID", help="the same id sends the same prompts again (default: a new one)"
    )
    prompts.add_argument("--extra-body", default="{}", metavar="JSON", help="further fields of every request")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes that send (default: 1)")


def load_of(options: argparse.Namespace, target: Target) -> Load:
    """The load that the options describe.

    Raises:
        UserError: It cannot be sent; the text lists every problem.
    """
    import secrets

    from bezel.bench.load.plan import Load, PromptPlan
    from bezel.bench.load.plan_rules import checked

    pattern = _pattern(options)
    plan = PromptPlan(
        kind=_kind(options),
        input_tokens=options.input_tokens,
        output_tokens=options.output_tokens,
        prefix_tokens=options.prefix_tokens,
        groups=options.groups,
        turns=options.turns,
        file=options.file,
        seed=options.seed,
        run=options.run_id or secrets.token_hex(4),
    )
    return checked(
        Load(
            target,
            pattern,
            _stop(options, pattern),
            plan,
            deadline_seconds=options.deadline,
            ramp_seconds=options.ramp,
            workers=options.workers,
            extra_body=_object(options.extra_body),
        )
    )


def _kind(options: argparse.Namespace) -> PromptKind:
    asked: dict[PromptKind, bool] = {
        "file": bool(options.file),
        "multi_turn": options.turns != 1,
        "shared_prefix": options.prefix_tokens != 0,
    }
    found: list[PromptKind] = [kind for kind, wanted in asked.items() if wanted]
    if len(found) > 1:
        raise UserError("--file, --turns and --prefix-tokens each make another set of prompts: give one of them.")
    return found[0] if found else "unique"


def _pattern(options: argparse.Namespace) -> Pattern:
    from bezel.bench.load.plan import Burst, Closed, Constant, Poisson, Replay, Staged

    arrivals = options.arrivals or ("burst" if options.burstiness is not None else "poisson")
    if options.rate is None and (options.arrivals or options.burstiness is not None):
        raise UserError("--arrivals and --burstiness say how requests of a --rate are spaced: give a --rate too.")
    if (arrivals == "burst") != (options.burstiness is not None):
        raise UserError(
            "--arrivals burst and --burstiness SHAPE belong together, e.g. --arrivals burst --burstiness 0.5."
        )
    if options.rate is not None:
        made: dict[str, Callable[[], Pattern]] = {
            "constant": lambda: Constant(options.rate),
            "poisson": lambda: Poisson(options.rate),
            "burst": lambda: Burst(options.rate, options.burstiness),
        }
        return made[arrivals]()
    if options.user_stages:
        return Staged("users", _stages("--user-stages", options.user_stages))
    if options.rate_stages:
        return Staged("rate", _stages("--rate-stages", options.rate_stages))
    if options.trace:
        return Replay(_trace(options.trace))
    return Closed(1 if options.users is None else options.users)


def _stop(options: argparse.Namespace, pattern: Pattern) -> Stop:
    from bezel.bench.load.plan import Closed, Replay, Staged, Stop

    if options.requests is not None or options.seconds is not None or isinstance(pattern, Staged | Replay):
        return Stop(options.requests, options.seconds)
    if isinstance(pattern, Closed):
        return Stop(requests=_ROUNDS * max(1, pattern.users))
    return Stop(seconds=_SECONDS)


def _stages(option: str, text: str) -> Any:
    from bezel.bench.load.plan import Stage

    try:
        pairs = [part.split(":") for part in text.split(",")]
        return tuple(Stage(float(level), float(seconds)) for level, seconds in pairs)
    except ValueError:
        raise UserError(f"{option} {text!r} is no list of stages. Write LEVEL:SECONDS,..., e.g. 4:30,8:30.") from None


def _trace(file: Path) -> tuple[float, ...]:
    try:
        return tuple(float(line) for line in file.read_text(encoding="utf-8").split())
    except (OSError, ValueError) as error:
        raise UserError(f"--trace {file}: {error}. Write one instant a line, in seconds from the start.") from None


def _object(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise UserError(f"--extra-body {text!r} is no JSON object. Write e.g. '{{\"top_k\": 40}}'.")
    return parsed
