"""Mistakes in the options of `bezel bench`, found before a server is asked: wrong values, and options without effect.

An option that a mode ignores looks as if it had worked. Owns the rules for options that no load's plan
knows; what cannot be sent at all is in `bezel_bench.load.plan_rules`. Pure but for the files that options name.
"""

import argparse
import contextlib
import math
import os
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from bezel_base.errors import Problem, UserError, WrongValueError
from bezel_bench.commands.measure.own_headers import own_headers
from bezel_bench.commands.table import shared_table
from bezel_bench.load.plan import GENERATING, Load, Target
from bezel_bench.prompts.datasets import read_text
from bezel_bench.prompts.lengths import lengths_of
from bezel_bench.prompts.media import size_of
from bezel_bench.prompts.prompts import make_prompts
from bezel_bench.prompts.traces import is_trace
from bezel_bench.server.http_probe import ProbeResponse

_LEAVE_OUT = "leave it out"
_TASKS = "the tasks send the load, and get neither this machine's variables nor its headers."
_OF_TOKENS = ("ttft", "ttfc", "tpot", "itl_max")
_STATISTIC = re.compile(r"_(mean|p[0-9]+)$")


class OptionsError(WrongValueError):
    """A command line whose options cannot be used: wrong values, or options that exclude each other."""


class OptionRule(NamedTuple):
    """An option without effect beside others.

    Attributes:
        option: Name of its value among the parsed options.
        is_ignored: Whether the parsed options leave it without effect; asked only where it differs from its default.
        consequence: Why it has none, as a sentence.
        repair: What has an effect, or "" where only leaving it out helps.
    """

    option: str
    is_ignored: Callable[[Any], bool]
    consequence: str
    repair: str = ""


def _computes(options: Any) -> bool:
    return options.endpoint not in GENERATING


def _urls(options: Any) -> list[str]:
    return [str(options.url).lower(), *(url.lower() for url in getattr(options, "also_url", []))]


def _has_no_level_of_users(options: Any) -> bool:
    return bool(options.rate is not None or options.user_stages or options.rate_stages or options.trace)


def _has_random_gaps(options: Any) -> bool:
    return options.rate is not None and options.arrivals != "constant"


def _has_trace_with_lengths(options: Any) -> bool:
    return bool(options.trace) and is_trace(read_text(options.trace, "--trace"))


_RUN = (
    OptionRule("ramp", _has_no_level_of_users, "only --users begin one by one.", "add --users"),
    OptionRule("cancel_after", lambda options: not options.cancel, "no request is cancelled.", "add --cancel"),
    OptionRule("groups", lambda options: not options.prefix_tokens, "no prefix is shared.", "add --prefix-tokens"),
    OptionRule("image_size", lambda options: not options.images, "prompts have no image.", "add --images"),
    OptionRule("input_tokens", lambda options: bool(options.input_lengths), "--input-lengths draws each length."),
    OptionRule("input_tokens", lambda options: bool(options.file), "prompts are those of --file."),
    OptionRule("input_tokens", _has_trace_with_lengths, "the trace has the lengths of its prompts."),
    OptionRule("output_tokens", lambda options: bool(options.output_lengths), "--output-lengths draws each length."),
    OptionRule("output_tokens", _has_trace_with_lengths, "the trace has the lengths of its responses."),
    OptionRule(
        "seed",
        lambda options: bool(options.file) and not _has_random_gaps(options),
        "prompts are those of --file, and no gap is drawn.",
    ),
    *(
        OptionRule(name, lambda options: not options.file, "it chooses among the entries of --file.", "add --file")
        for name in ("column", "length_column", "min_chars", "max_chars")
    ),
    OptionRule("output_tokens", lambda options: bool(options.length_column), "--length-column has each length."),
    OptionRule("run_id", lambda options: bool(options.file), "--file sends the same prompts in every run."),
)
_PUBLIC = (lambda options: bool(options.public)), "--public sends no identity token.", "leave out --public"
_SERVER = (
    OptionRule("impersonate", *_PUBLIC),
    OptionRule("audience", *_PUBLIC),
    OptionRule(
        "ca_file",
        lambda options: bool(options.url) and not any(url.startswith("https") for url in _urls(options)),
        "the address is of plain HTTP, which has no certificate.",
        "write https:// in --url",
    ),
    OptionRule("output_tokens", _computes, "this endpoint computes and generates no response."),
)
_JOB = (
    OptionRule("also_url", lambda _: True, "the tasks send to one address."),
    OptionRule("api_key_env", lambda _: True, _TASKS),
    OptionRule("header", lambda _: True, _TASKS),
)
_RESULT = (OptionRule("force", lambda options: options.out is None, "no result is written.", "add --out"),)
RULES: dict[str, tuple[OptionRule, ...]] = {
    "run": (*_SERVER, *_RUN, *_RESULT),
    "job": (*_SERVER, *_RUN, *_RESULT, *_JOB),
    "sweep": (
        *_SERVER,
        OptionRule("share", lambda options: options.full, "--full requests every cell.", "leave out --full"),
    ),
    "rates": (
        *_SERVER,
        *_RESULT,
        OptionRule("steps", lambda options: bool(options.rates), "--rates names each rate."),
        OptionRule("users", lambda options: bool(options.rates), "--rates names each rate, so no range is looked for."),
    ),
    "goodput": (
        *_SERVER,
        *_RESULT,
        OptionRule("seconds", lambda options: options.rate is None, "users have no least duration.", "add --rate"),
    ),
    "ab": (
        *_SERVER,
        *_RESULT,
        OptionRule("start_seconds", lambda options: bool(options.arm), "servers of --arm run already.", "use --vary"),
    ),
}
"""Each command's options that have no effect beside others."""
_LEAST = {
    "chips": 1, "instances": 1, "concurrency": 1, "requests_per_user": 1, "usd_per_hour": 0,
    "warmup": 0, "warmup_seconds": 0, "repeats": 1, "runs": 1,
}  # fmt: skip
_NOTHING = "nothing would be measured."
_CONSEQUENCES = {
    "warmup": "no such number of requests can be sent.",
    "warmup_seconds": "no request can be sent for such a time.",
    "repeats": _NOTHING,
    "runs": _NOTHING,
}


@contextlib.contextmanager
def as_usage() -> Iterator[None]:
    """Give errors of the options the exit code of a wrong command line.

    Raises:
        OptionsError: The error raised inside, of any kind.
    """
    try:
        yield
    except OptionsError:
        raise
    except UserError as error:
        raise OptionsError(*error.problems, title=error.title) from None


def check_options(options: argparse.Namespace) -> None:
    """Refuse options without effect, and values that no record takes.

    Raises:
        OptionsError: There are some; the text lists all of them.
    """
    with as_usage():
        if problems := [*_ineffective_options(options), *_values(options)]:
            raise OptionsError(*problems)
        own_headers(options.api_key_env, options.header, os.environ)


def _ineffective_options(options: argparse.Namespace) -> Iterator[Problem]:
    # The options of `job` that rules name are those of `run`.
    defaults = shared_table().defaults_of("run" if options.action == "job" else options.action)
    for rule in RULES[options.action]:
        value = getattr(options, rule.option)
        if value != defaults[rule.option] and rule.is_ignored(options):
            repair = f"{rule.repair}, or {_LEAVE_OUT}." if rule.repair else f"{_LEAVE_OUT}."
            # Headers may be secret, and a flag has no value of interest.
            shown = None if rule.option == "header" or value is True else value
            yield Problem(f"--{rule.option.replace('_', '-')}", shown, f"it has no effect: {rule.consequence}", repair)


def _values(options: argparse.Namespace) -> Iterator[Problem]:
    for name, least in _LEAST.items():
        value = getattr(options, name, None)
        if value is not None and not least <= value < math.inf:
            option, consequence = f"--{name.replace('_', '-')}", _CONSEQUENCES.get(name, f"expected {least} or more.")
            yield Problem(option, f"{value:g}", consequence, f"give {least} or more.")
    yield from _of_computing(options)


def _of_computing(options: argparse.Namespace) -> Iterator[Problem]:
    """Yield what is asked of the responses' tokens, where the endpoint generates none."""
    if not _computes(options):
        return
    for text in getattr(options, "slo", ()):
        if _STATISTIC.sub("", text.partition("=")[0]) in _OF_TOKENS:
            consequence = f"{options.endpoint} generates no token, so it has no such figure."
            yield Problem("--slo", text, consequence, "limit e2e.")
    if getattr(options, "metric", "") == "output_tokens_per_second":
        consequence = f"{options.endpoint} generates no token, so the surface would be empty."
        yield Problem("--metric", options.metric, consequence, "give input_tokens_per_second or requests_per_second.")


def draft_target(options: argparse.Namespace, url: str | None = None) -> Target:
    """The server as far as the options name it, to check a load before the server is asked."""
    address = url or options.url or "http://the-stack"
    return Target(str(address).rstrip("/"), options.model or "any", options.endpoint, public=True)


def check_prompts(load: Load) -> None:
    """Read the files and texts that describe a load's prompts, which needs no server.

    Raises:
        OptionsError: One of them cannot be read.
    """
    plan = load.prompts
    with as_usage():
        for option, text in (("--input-lengths", plan.input_lengths), ("--output-lengths", plan.output_lengths)):
            if text:
                lengths_of(option, text)
        if plan.images:
            size_of(plan.image_size)
        if plan.kind == "file":
            make_prompts(load, _no_server)


def _no_server(path: str, body: object) -> ProbeResponse:
    raise AssertionError(f"the prompts of a file need no server, which was asked for {path} with {body}")
