"""Rules for loads that can be sent. Pure. Each problem names the option of `bezel bench` with its value."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import urlsplit

from bezel_base.errors import NOT_SET, Problem, WrongValueError
from bezel_bench.load.plan import (
    GENERATING,
    PATHS,
    Burst,
    Closed,
    Constant,
    Load,
    Pattern,
    Poisson,
    PromptPlan,
    Replay,
    Staged,
    Target,
    is_closed,
)

_STAGES = {"users": "--user-stages", "rate": "--rate-stages"}
_LONGEST_AUDIO = 600.0
_NOTHING = "no request would be sent."
_ONE_OR_MORE = "give 1 or more."
_OWN_FIELDS = frozenset({"messages", "prompt", "input", "query", "documents", "model"})
_ADDRESS = "give an address, e.g. http://127.0.0.1:8000."


class LoadError(WrongValueError):
    """A load cannot be sent: a mistake in the command line."""


def check_load(load: Load) -> Load:
    """Return the load, if it can be sent.

    Raises:
        LoadError: It cannot; the text lists all problems.
    """
    if load_problems := problems(load):
        raise LoadError(*load_problems, title="This load cannot be sent")
    return load


def problems(load: Load) -> list[Problem]:
    """Return the problems of a load; [] if it can be sent."""
    return [
        *_target_problems(load.target),
        *_pattern_problems(load.pattern),
        *_prompt_problems(load.prompts),
        *_limit_problems(load),
        *_user_problems(load),
        *_url_problems(load),
        *_failure_problems(load),
        *_crowd_problems(load),
        *_media_problems(load),
        *_computing_problems(load),
        *_body_problems(load),
    ]


def _limit_problems(load: Load) -> Iterator[Problem]:
    stop = load.stop
    if stop.requests is None and stop.seconds is None and not isinstance(load.pattern, Staged | Replay):
        yield Problem("--requests, --seconds", NOT_SET, "the run would never end.", "give one of them.")
    if stop.requests is not None and stop.requests < 1:
        yield Problem("--requests", stop.requests, _NOTHING, _ONE_OR_MORE)
    if stop.seconds is not None and not 0 < stop.seconds < math.inf:
        yield Problem("--seconds", f"{stop.seconds:g}", _NOTHING, "give more than 0.")
    if not 0 < load.deadline_seconds < math.inf:
        consequence = "no response could be complete in time."
        yield Problem("--deadline", f"{load.deadline_seconds:g}", consequence, "give more than 0, e.g. 300.")
    if load.workers < 1:
        yield Problem("--workers", load.workers, "no process would send the load.", _ONE_OR_MORE)
    if (load.prompts.kind == "multi_turn" or load.prompts.turns > 1) and not is_closed(load.pattern):
        consequence = "turns wait for each other, so no rate can be promised for them."
        yield Problem("--turns", load.prompts.turns, consequence, "give users instead of a rate.")


def _user_problems(load: Load) -> Iterator[Problem]:
    if not 0 <= load.ramp_seconds < math.inf:
        yield Problem("--ramp", f"{load.ramp_seconds:g}", "the users could not start in that time.", "give 0 or more.")
    elif load.stop.seconds is not None and load.ramp_seconds > load.stop.seconds:
        consequence = f"with --seconds {load.stop.seconds:g} the load would end before its last users begin."
        yield Problem("--ramp", f"{load.ramp_seconds:g}", consequence, "give at most --seconds.")
    if not 0 <= load.think_seconds < math.inf:
        yield Problem("--think-time", f"{load.think_seconds:g}", "no user could wait so long.", "give 0 or more.")
    if load.think_seconds and not is_closed(load.pattern):
        consequence = "requests of a rate wait for no response, so no user thinks about one."
        yield Problem("--think-time", f"{load.think_seconds:g}", consequence, "give users instead of a rate.")


def _url_problems(load: Load) -> Iterator[Problem]:
    for url in load.more_urls:
        for problem in _target_problems(replace(load.target, url=url)):
            yield Problem("--also-url", problem.value, problem.consequence, problem.repair)
    if load.more_urls and isinstance(load.pattern, Closed) and load.pattern.users < len(load.urls):
        consequence = f"with the weights {len(load.urls)} processes send the load, and some would have no user."
        yield Problem("--users", load.pattern.users, consequence, f"give {len(load.urls)} or more.")


def _failure_problems(load: Load) -> Iterator[Problem]:
    if not 0 <= load.cancel_share < 1:
        consequence = "expected the percentage of requests at which the client hangs up; the others are measured."
        yield Problem("--cancel", f"{100 * load.cancel_share:g}", consequence, "give 0 or more, below 100.")
    if not 0 <= load.cancel_seconds < math.inf:
        consequence = "no client waits for such a time."
        yield Problem("--cancel-after", f"{load.cancel_seconds:g}", consequence, "give 0 or more seconds.")
    if load.max_failed_share is not None and not 0 < load.max_failed_share < 1:
        consequence = "expected the percentage of failed requests above which the load ends."
        yield Problem("--max-failed", f"{100 * load.max_failed_share:g}", consequence, "give more than 0, below 100.")


def _crowd_problems(load: Load) -> Iterator[Problem]:
    for option, most in (("--max-in-flight", load.max_in_flight), ("--max-concurrency", load.max_concurrency)):
        if most is None:
            continue
        if most < 1:
            yield Problem(option, most, _NOTHING, _ONE_OR_MORE)
        elif most < load.workers:
            consequence = f"each of {load.workers} sending processes has a share of it, and some would send nothing."
            yield Problem(option, most, consequence, f"give {load.workers} or more, or fewer --workers.")
        if is_closed(load.pattern):
            consequence = "users of a closed loop never have more requests under way than there are users."
            yield Problem(option, most, consequence, "give a --rate, or leave it out.")
    if load.max_in_flight is not None and load.max_concurrency is not None:
        consequence = "--max-in-flight ends the load where this option lets requests wait."
        yield Problem("--max-concurrency", load.max_concurrency, consequence, "leave out one of them.")


def _media_problems(load: Load) -> Iterator[Problem]:
    plan = load.prompts
    if plan.images < 0:
        yield Problem("--images", plan.images, "no prompt has fewer than none.", "give 0 or more.")
    if not 0 <= plan.audio_seconds <= _LONGEST_AUDIO:
        consequence = f"expected 0 to {_LONGEST_AUDIO:g} seconds of audio."
        yield Problem("--audio-seconds", f"{plan.audio_seconds:g}", consequence, "give fewer.")
    if (plan.images or plan.audio_seconds) and plan.kind in ("multi_turn", "file", "trace"):
        consequence = "images and audio are made for generated prompts of one text."
        yield Problem("--images, --audio-seconds", None, consequence, "leave out --turns, --file and --trace.")
    if (plan.images or plan.audio_seconds) and load.target.endpoint != "chat":
        consequence = "only the chat endpoint takes images and audio."
        yield Problem("--endpoint", load.target.endpoint, consequence, "leave --endpoint out.")


def _computing_problems(load: Load) -> Iterator[Problem]:
    """Yield what embeddings and reranking cannot be asked for."""
    plan, endpoint = load.prompts, load.target.endpoint
    if plan.documents < 1 or (plan.documents > 1 and endpoint != "rerank"):
        consequence = "only --endpoint rerank ranks documents, 1 or more."
        yield Problem("--documents", plan.documents, consequence, "give 1, or --endpoint rerank.")
    if endpoint in GENERATING or endpoint not in PATHS:
        return
    if plan.kind not in ("unique", "shared_prefix", "lengths") or plan.output_lengths:
        consequence = f"{endpoint} takes generated texts without responses of a length."
        repair = "leave out --turns, --file, --trace and --output-lengths."
        yield Problem("--endpoint", endpoint, consequence, repair)
    if endpoint == "rerank" and plan.kind != "unique":
        yield Problem("--endpoint", endpoint, "it ranks generated texts of one length.", "leave out other prompts.")


def _body_problems(load: Load) -> Iterator[Problem]:
    """Yield fields of --extra-body that this client sets itself, and counts of tokens that are none."""
    for name in _OWN_FIELDS.intersection(load.extra_body):
        yield Problem("--extra-body", name, "the client writes this field of every request.", "leave it out.")
    for name in ("max_tokens", "max_completion_tokens"):
        value = load.extra_body.get(name, 1)
        if type(value) is not int or value < 1:
            consequence = f"{name} is the number of tokens that each response is checked for."
            yield Problem("--extra-body", f"{name}: {value}", consequence, "give 1 or more.")


def target_problems(target: Target) -> list[Problem]:
    """Return the problems of a target, as `problems` does."""
    return list(_target_problems(target))


def _target_problems(target: Target) -> Iterator[Problem]:
    try:
        parts = urlsplit(target.url)
        # As a connection has the name: one like a..b has no such form.
        valid = parts.scheme in {"http", "https"} and bool((parts.hostname or "").encode("idna")) and parts.port != 0
    except ValueError:
        valid = False
    if not valid:
        yield Problem("--url", target.url, "the value is not an http(s) address.", _ADDRESS)
    elif parts.username or parts.password:
        # Not shown: the value is a secret.
        yield Problem("--url", None, "the address holds a password, which results would show.", "leave it out.")
    if not target.model:
        yield Problem("--model", NOT_SET, _NOTHING, "give the served id, as GET /v1/models lists it.")
    if target.endpoint not in PATHS:
        consequence = "the endpoint is unknown."
        yield Problem("--endpoint", target.endpoint, consequence, f"give one of {', '.join(PATHS)}.")


def _pattern_problems(pattern: Pattern) -> Iterator[Problem]:
    match pattern:
        case Closed(users) if users < 1:
            yield Problem("--users", users, _NOTHING, _ONE_OR_MORE)
        case Constant(rate) | Poisson(rate) | Burst(rate, _) if not 0 < rate < math.inf:
            yield Problem("--rate", f"{rate:g}", "expected requests per second above 0.", "give more than 0.")
        case Burst(_, burstiness) if not 0 < burstiness < math.inf:
            consequence = "expected the shape of a gamma distribution."
            repair = "give more than 0: below 1 requests come in bursts, 1 is Poisson."
            yield Problem("--burstiness", f"{burstiness:g}", consequence, repair)
        case Staged(of, stages) if not any(stage.level for stage in stages):
            consequence = "no stage has a level above 0, so no request would be sent."
            yield Problem(_STAGES[of], None, consequence, "give one or more as LEVEL:SECONDS, with a level above 0.")
        case Staged(of, stages):
            for stage in stages:
                level, seconds = stage.level, stage.seconds
                if not (0 <= level < math.inf and 0 < seconds < math.inf) or (of == "users" and level % 1):
                    unit = "users" if of == "users" else "requests per second"
                    consequence = f"expected a number of {unit} and a time."
                    yield Problem(_STAGES[of], f"{level:g}:{seconds:g}", consequence, "give LEVEL:SECONDS, e.g. 8:30.")
        case Replay(instants) if not instants:
            yield Problem("--trace", None, "the trace holds no instant, so no request would be sent.", _ONE_OR_MORE)
        case Replay(instants) if not 0 <= instants[0] <= instants[-1] < math.inf or any(
            not a <= b for a, b in itertools.pairwise(instants)
        ):
            consequence = "the instants of the trace are not in order from 0."
            yield Problem("--trace", None, consequence, "sort them, and count from the first.")


def _prompt_problems(plan: PromptPlan) -> Iterator[Problem]:
    if plan.output_tokens < 1:
        yield Problem("--output-tokens", plan.output_tokens, "the response would have no token.", _ONE_OR_MORE)
    if plan.input_tokens < 1 and plan.kind not in ("file", "trace"):
        yield Problem("--input-tokens", plan.input_tokens, "the prompt would have no token.", _ONE_OR_MORE)
    if plan.kind == "shared_prefix" and not 0 < plan.prefix_tokens < plan.input_tokens:
        missing = "nothing shared" if plan.prefix_tokens < 1 else "nothing of its own"
        consequence = f"a prompt of {plan.input_tokens} tokens would have {missing}."
        repair = f"give 1 to {max(1, plan.input_tokens - 1)}."
        yield Problem("--prefix-tokens", plan.prefix_tokens, consequence, repair)
    if plan.kind == "shared_prefix" and plan.groups < 1:
        yield Problem("--groups", plan.groups, "there would be no prefix to share.", _ONE_OR_MORE)
    if plan.kind in ("multi_turn", "file") and plan.turns < 1:
        yield Problem("--turns", plan.turns, "a conversation would have no turn.", _ONE_OR_MORE)
    if plan.served_answers and (plan.kind not in ("multi_turn", "file") or plan.turns < 2):
        yield Problem("--answers", "served", "only conversations repeat answers.", "add --turns, 2 or more.")
    if plan.kind == "file" and not plan.file:
        yield Problem("--file", NOT_SET, "there would be no prompt.", "give the path of a file with texts.")
    if plan.min_chars < 0 or (plan.max_chars is not None and plan.max_chars < max(1, plan.min_chars)):
        value, consequence = f"{plan.min_chars}, {plan.max_chars}", "no entry of the file has such a length."
        yield Problem("--min-chars, --max-chars", value, consequence, "give 0 or more, and a larger number or none.")
