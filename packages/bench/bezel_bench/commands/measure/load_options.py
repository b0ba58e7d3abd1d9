"""Load of a benchmark from its options: pattern, end, prompts. Leaves out the server and the measurement."""

import argparse
import functools
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bezel_base.errors import Problem, UserError
from bezel_bench.commands.measure.settings import object_of
from bezel_bench.load.plan import (
    Burst,
    Closed,
    Constant,
    Load,
    Pattern,
    Poisson,
    PromptKind,
    PromptPlan,
    Replay,
    Stage,
    Staged,
    Stop,
    Target,
)
from bezel_bench.load.plan_rules import check_load
from bezel_bench.prompts.datasets import read_text
from bezel_bench.prompts.traces import Traced, is_trace, read_trace

_ROUNDS = 10
"""Default number of requests of each user: at least three are needed for a steady state."""
_SECONDS = 60.0
_MOST_WEIGHT = 64


def load_of(options: argparse.Namespace, target: Target) -> Load:
    """The load that the options describe.

    Raises:
        UserError: It cannot be sent; the error has every problem.
    """
    recorded = _trace_requests(options)
    pattern = _pattern(options) if recorded is None else Replay(tuple(each.at for each in recorded))
    plan = PromptPlan(
        kind="trace" if recorded is not None else _kind(options),
        input_tokens=options.input_tokens,
        output_tokens=options.output_tokens,
        input_lengths=options.input_lengths,
        output_lengths=options.output_lengths,
        prefix_tokens=options.prefix_tokens,
        groups=options.groups,
        turns=options.turns,
        served_answers=options.answers == "served",
        documents=options.documents,
        images=options.images,
        image_size=options.image_size,
        audio_seconds=options.audio_seconds,
        file=options.file if recorded is None else str(options.trace),
        column=options.column,
        length_column=options.length_column,
        min_chars=options.min_chars,
        max_chars=options.max_chars,
        seed=options.seed,
        run=options.run_id or os.urandom(4).hex(),
    )
    return check_load(
        Load(
            target,
            pattern,
            _stop(options, pattern),
            plan,
            deadline_seconds=options.deadline,
            ramp_seconds=options.ramp,
            think_seconds=options.think_time,
            max_in_flight=options.max_in_flight,
            max_concurrency=options.max_concurrency,
            max_failed_share=None if options.max_failed is None else options.max_failed / 100,
            cancel_share=options.cancel / 100,
            cancel_seconds=options.cancel_after,
            more_urls=(more_urls := _more_urls(options.also_url)),
            workers=options.workers * (1 + len(more_urls)),
            extra_body=_object(options.extra_body),
        )
    )


def _more_urls(texts: list[str]) -> tuple[str, ...]:
    """Addresses, each as often as its weight.

    Raises:
        UserError: A weight is wrong.
    """
    urls: list[str] = []
    for text in texts:
        url, equals, weight = text.rpartition("=")
        if not equals:
            url, weight = text, "1"
        if not weight.isdecimal() or not 1 <= int(weight) <= _MOST_WEIGHT:
            consequence = f"expected URL or URL=WEIGHT with a weight of 1 to {_MOST_WEIGHT}."
            raise UserError(Problem("--also-url", text, consequence, "e.g. http://127.0.0.1:8001=2."))
        urls += [url.rstrip("/").removesuffix("/v1").rstrip("/")] * int(weight)
    return tuple(urls)


def _trace_requests(options: argparse.Namespace) -> tuple[Traced, ...] | None:
    """The requests of a trace with lengths; None for one of instants, or without a trace.

    Raises:
        UserError: It cannot be read, or other prompts are asked for too.
    """
    if not options.trace:
        return None
    text = read_text(options.trace, "--trace")
    if not is_trace(text):
        return None
    if _kind(options) != "unique":
        consequence = "the trace has lengths and shared prefixes of its own."
        raise UserError(Problem("--trace", str(options.trace), consequence, "leave out the options of other prompts."))
    return read_trace(options.trace, text)


def _kind(options: argparse.Namespace) -> PromptKind:
    requested: dict[PromptKind, bool] = {
        "file": bool(options.file),
        "multi_turn": options.turns != 1 and not options.file,
        "shared_prefix": options.prefix_tokens != 0,
        "lengths": bool(options.input_lengths or options.output_lengths),
    }
    kinds = [kind for kind, is_requested in requested.items() if is_requested]
    if len(kinds) > 1:
        named = "--file, --turns, --prefix-tokens, and --input-lengths or --output-lengths"
        consequence = f"each of {named} defines another set of prompts."
        raise UserError(Problem("prompts", ", ".join(kinds), consequence, "give one of them."))
    return kinds[0] if kinds else "unique"


def _pattern(options: argparse.Namespace) -> Pattern:
    rate, shape = options.rate, options.burstiness
    if rate is None and (options.arrivals or shape is not None):
        consequence = "--arrivals and --burstiness set the gaps between requests of a --rate."
        raise UserError(Problem("--arrivals", options.arrivals, consequence, "add --rate."))
    arrivals = options.arrivals or ("burst" if shape is not None else "poisson")
    if (arrivals == "burst") != (shape is not None):
        repair = "give both, e.g. --arrivals burst --burstiness 0.5."
        raise UserError(Problem("--arrivals", arrivals, "--arrivals burst and --burstiness belong together.", repair))
    if rate is not None:
        match arrivals:
            case "constant":
                return Constant(rate)
            case "burst":
                return Burst(rate, shape)
            case _:
                return Poisson(rate)
    if options.user_stages:
        return Staged("users", _stages("--user-stages", options.user_stages))
    if options.rate_stages:
        return Staged("rate", _stages("--rate-stages", options.rate_stages))
    if options.trace:
        return Replay(_trace(options.trace))
    if options.users is None and options.concurrency is not None:
        consequence = "it describes the platform for the result and sets no load: one user would send requests."
        repair = f"add --users {options.concurrency} for that many at once, or --users 1."
        raise UserError(Problem("--concurrency", options.concurrency, consequence, repair))
    return Closed(1 if options.users is None else options.users)


def _stop(options: argparse.Namespace, pattern: Pattern) -> Stop:
    if options.requests is not None or options.seconds is not None or isinstance(pattern, Staged | Replay):
        return Stop(options.requests, options.seconds)
    if isinstance(pattern, Closed):
        return Stop(requests=_ROUNDS * max(1, pattern.users))
    return Stop(seconds=_SECONDS)


def _stages(option: str, text: str) -> tuple[Stage, ...]:
    try:
        pairs = [part.split(":") for part in text.split(",")]
        return tuple(Stage(float(level), float(seconds)) for level, seconds in pairs)
    except ValueError:
        repair = "write LEVEL:SECONDS,..., e.g. 4:30,8:30."
        raise UserError(Problem(option, text, "expected a list of stages.", repair)) from None


def _trace(file: Path) -> tuple[float, ...]:
    try:
        return tuple(float(line) for line in file.read_text(encoding="utf-8").split())
    except (OSError, ValueError) as error:
        repair = "write one instant a line, in seconds from the start, or JSON lines as Mooncake's."
        raise UserError(Problem("--trace", str(file), f"it cannot be read: {error}.", repair)) from None


def field_names(value: Any, *, of_schema: bool = False) -> Iterator[str]:
    """Yield the names of the fields of a JSON value; a property of a JSON schema is none."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, part in parts:
        if isinstance(name, str) and not of_schema:
            yield name
        yield from field_names(part, of_schema=name == "properties")


def _object(text: str) -> dict[str, Any]:
    try:
        parsed = json.loads(text, object_pairs_hook=functools.partial(object_of, "--extra-body"))
        fields = [*field_names(parsed)]
    except (ValueError, RecursionError):
        parsed, fields = None, []
    if not isinstance(parsed, dict):
        repair = "write e.g. '{\"top_k\": 40}'."
        raise UserError(Problem("--extra-body", text, "expected a JSON object.", repair))
    if fields:
        from bezel_base.credentials.names import names_secret  # late: few loads have such fields

        if secret := next(filter(names_secret, fields), None):
            repair = "send it in a --header, or by --api-key-env."
            raise UserError(Problem("--extra-body", secret, "the result would show this secret.", repair))
    return parsed
