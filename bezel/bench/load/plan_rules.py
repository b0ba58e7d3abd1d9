"""Rules for loads that can be sent. Pure. Each refusal gives the value, its consequence and the repair."""

import itertools
import math
from urllib.parse import urlsplit

from bezel.bench.load.plan import (
    PATHS,
    Burst,
    Closed,
    Constant,
    Load,
    Pattern,
    Poisson,
    PromptPlan,
    Replay,
    Stage,
    Staged,
    Target,
    is_closed,
)
from bezel.errors import UserError


def checked(load: Load) -> Load:
    """Return the load, if it can be sent.

    Raises:
        UserError: It cannot; the text lists all problems, one a line.
    """
    if found := problems(load):
        raise UserError("\n   ".join(["this load cannot be sent:", *found]))
    return load


def problems(load: Load) -> list[str]:
    """Return the problems of a load: value, consequence, repair, each in one line; [] if it can be sent."""
    found = [*target_problems(load.target), *_pattern_problems(load.pattern), *_prompt_problems(load.prompts)]
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


def target_problems(target: Target) -> list[str]:
    """Return the problems of a target, as `problems` does."""
    found = []
    try:
        parts = urlsplit(target.url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return [f"url {target.url!r} is no address. Give e.g. http://127.0.0.1:8000."]
    if not good:
        found.append(f"url {target.url!r} is no http(s) address. Give e.g. http://127.0.0.1:8000.")
    elif parts.username or parts.password:
        # Not shown: the value is a secret.
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
        case Staged(of, stages):
            return _stage_problems(of, stages)
        case Replay(instants):
            if not instants:
                return ["the trace holds no instant, so nothing is sent. Give a file with one or more."]
            if not 0 <= instants[0] <= instants[-1] < math.inf or any(
                not a <= b for a, b in itertools.pairwise(instants)
            ):
                return ["the trace's instants are not in order from 0. Sort them, and count from the first."]
    return []


def _stage_problems(of: str, stages: tuple[Stage, ...]) -> list[str]:
    if not stages:
        return ["no stage, so nothing is sent. Give one or more as LEVEL:SECONDS."]
    if not any(stage.level for stage in stages):
        return ["stages of level 0 throughout send nothing. Give one above 0."]
    wrong = [
        stage
        for stage in stages
        if not (0 <= stage.level < math.inf and 0 < stage.seconds < math.inf) or (of == "users" and stage.level % 1)
    ]
    return [f"stage {one.level:g}:{one.seconds:g} is no level of {of}. Give LEVEL:SECONDS, e.g. 8:30." for one in wrong]


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
