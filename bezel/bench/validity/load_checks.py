"""Validity checks that need only the load and its samples: prompts, lengths, steady state, failures.

Each is one function of plain values and returns one `Check`. Leaves those that need the server to
bezel.bench.validity.server_checks, and collecting the values to bezel.bench.validity.checks.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from bezel.bench.metrics import statistics
from bezel.bench.metrics.steady import Steady
from bezel.bench.result.columns import Columns, Flags, Floats, Ints
from bezel.bench.result.document import Check, Metric, Numbers
from bezel.bench.result.failures import FAILED_SHARE
from bezel.bench.result.sample import CLIENT, HTTP_401, HTTP_403

# A shared chat template may be cached; a larger share of a prompt may not.
CACHED_SHARE = 0.02
ROUNDS = 3
DRIFT_SHARE = 0.10
DRIFT_CERTAINTY = 0.9999
SHORT_FOR_DRAFTS = 16
# Failures that are no evidence about the server: access was denied, or the client broke.
_NOT_THE_SERVER = {
    HTTP_401: "the caller was not let in",
    HTTP_403: "the caller was not let in",
    CLIENT: "the client broke",
}


def unique_prompts(kind: str, seed: int, beginnings: Sequence[str], cached: Metric) -> Check:
    """Check 1: no two prompts begin alike, and none was served from a cache, unless the cache is being studied.

    Args:
        kind: The kind of the prompts, as planned.
        seed: Their seed.
        beginnings: Beginnings of a sample of the prompts; empty where they were not sampled.
        cached: The share of the prompt tokens that came from a cache.
    """
    name = "unique_prompts"
    alike = len(beginnings) - len(set(beginnings))
    numbers = {"kind": kind, "seed": seed, "looked_at": len(beginnings), "alike": alike, "cached_share": cached.value}
    if kind in ("shared_prefix", "multi_turn"):
        return Check(name=name, state="passed", text=f"{kind}: prompts share beginnings on purpose", numbers=numbers)
    if alike:
        text = f"{alike} of {len(beginnings)} prompts begin like another: a prefix cache answers for the server"
        # Texts of a file may begin alike for less than a block of the cache.
        return Check(name=name, state="suspect" if kind == "file" else "failed", text=text, numbers=numbers)
    if cached.value is None:
        text = f"whether prompts came from a cache is not known: {cached.why}"
        return Check(name=name, state="unknown", text=text, numbers=numbers)
    if cached.value > CACHED_SHARE:
        text = f"{cached.value:.1%} of the prompt tokens came from a cache, more than {CACHED_SHARE:.0%}"
        return Check(name=name, state="failed", text=text, numbers=numbers)
    return Check(
        name=name, state="passed", text=f"{cached.value:.2%} of the prompt tokens were cached", numbers=numbers
    )


def output_length(asked: Ints, given: Ints, texts: Flags, drafts: int | None, *, fixed: bool) -> Check:
    """Check 2: every response has the requested length, or lengths vary on purpose and are reported; and it has a text.

    Args:
        asked: `max_tokens` of each request that succeeded.
        given: Tokens of its response.
        texts: Whether any of them had a text.
        drafts: Drafts that the server made; None where unknown.
        fixed: Whether responses were to continue past the end of the text.
    """
    name = "output_length"
    if len(given) == 0:
        return Check(name=name, state="unknown", text="no request succeeded", numbers={})
    other = int((asked != given).sum())
    numbers: Numbers = {
        "answers": len(given), "of_another_length": other, "without_text": int((~texts).sum()),
        "min": int(given.min()), "p50": statistics.percentile(given.astype(np.float64), 0.5), "max": int(given.max()),
    }  # fmt: skip
    lengths = f"{numbers['min']} to {numbers['max']} tokens, median {numbers['p50']:.0f}"
    if fixed and other:
        text = (
            f"{other} of {len(given)} answers are not as long as asked for ({lengths}): rates of them compare nothing"
        )
        return Check(name=name, state="failed", text=text, numbers=numbers)
    if not texts.all():
        text = (
            f"{numbers['without_text']} of {len(given)} answers held no text, only special tokens or bytes of no whole "
            "character: they count in every rate, and ttft, ttfc, tpot and itl are of the others"
        )
        return Check(name=name, state="suspect", text=text, numbers=numbers)
    if drafts and given.mean() < SHORT_FOR_DRAFTS:
        text = f"answers of {lengths} say nothing of drafts: ask for {SHORT_FOR_DRAFTS} or more, better 128"
        return Check(name=name, state="suspect", text=text, numbers=numbers)
    text = f"every answer is as long as asked for: {lengths}" if not other else f"lengths vary as planned: {lengths}"
    return Check(name=name, state="passed", text=text, numbers=numbers)


def conservation(columns: Columns, steady: Steady, at_once: int, users: int, rate: Metric) -> Check:
    """Check 3: each request was begun once, and is completed, failed or under way; and the rate is of the completed.

    Args:
        columns: All requests.
        steady: The part that counts.
        at_once: The most requests under way at once.
        users: The most users of a closed loop; 0 for an open one.
        rate: Requests per second.
    """
    name = "conservation"
    done, failed = columns["done"], columns.failure > 0
    # A request that was never sent counts as begun when it failed.
    begun = np.where(columns["sent"] > 0, columns["sent"], done)
    begins, ends = steady.begins - (not steady.cut), steady.ends
    inside = (done > begins) & (done <= ends)
    numbers: Numbers = {
        "sent": len(columns), "completed": int((~failed).sum()), "failed": int(failed.sum()),
        "in_flight_before": int(((begun <= begins) & (done > begins)).sum()),
        "sent_inside": int(((begun > begins) & (begun <= ends)).sum()),
        "completed_inside": int((inside & ~failed).sum()), "failed_inside": int((inside & failed).sum()),
        "in_flight_after": int(((begun <= ends) & (done > ends)).sum()),
        "at_once": at_once,
    }  # fmt: skip
    before, sent, completed, lost, after = (
        int(numbers[key] or 0)
        for key in ("in_flight_before", "sent_inside", "completed_inside", "failed_inside", "in_flight_after")
    )
    wrong = []
    if twice := len(columns) - len(np.unique(columns["index"])):
        wrong.append(f"{twice} requests are there twice")
    if odd := int((done < np.maximum(begun, 1)).sum()):
        wrong.append(f"{odd} requests have no end, or end before they begin")
    if before + sent != completed + lost + after:
        wrong.append(
            f"{before} under way + {sent} sent is not {completed} completed + {lost} failed + {after} under way"
        )
    if users and at_once > users:
        wrong.append(f"{at_once} requests at once of {users} users")
    if rate.value is not None and abs(rate.value * steady.seconds - completed) > 0.5:
        wrong.append(
            f"{rate.value:.4g} requests/s for {steady.seconds:.4g} s is not the {completed} that were completed"
        )
    if wrong:
        text = f"requests are lost or counted twice: {'; '.join(wrong)}: report it, no figure of this load holds"
        return Check(name=name, state="failed", text=text, numbers=numbers)
    text = (
        f"{len(columns)} sent = {numbers['completed']} completed + {numbers['failed']} failed; in the part that counts "
        f"{before} under way + {sent} sent = {completed} completed + {lost} failed + {after} under way"
    )
    return Check(name=name, state="passed", text=text, numbers=numbers)


def steady_state(steady: Steady, users: int, requests: int, counted: int, e2e: Floats, rate: Metric) -> Check:
    """Check 7: the part that counts is steady and long enough.

    Args:
        steady: The part that counts.
        users: Users of a closed loop; 0 for an open one.
        requests: The requests that succeeded.
        counted: Those of them that count.
        e2e: Their e2e latencies, in the order of their ends; empty where it changes on purpose.
        rate: Requests per second, with its interval.
    """
    name = "steady_state"
    change, certain = drift(e2e)
    numbers: Numbers = {
        "users": users, "requests": requests, "counted": counted, "rule": steady.rule, "drift_of_e2e": change,
        "rate_low": rate.low, "rate_high": rate.high,
    }  # fmt: skip
    if requests < ROUNDS * users:
        text = f"{requests} answers are fewer than {ROUNDS} x {users} users: the start and the end are most of the run"
        return Check(name=name, state="suspect", text=text, numbers=numbers)
    if not steady.cut:
        return Check(name=name, state="unknown", text=steady.rule, numbers=numbers)
    if certain and change is not None and abs(change) > DRIFT_SHARE:
        text = f"e2e drifts by {change:+.0%} over the part that counts: run it longer, or look at what grows"
        return Check(name=name, state="suspect", text=text, numbers=numbers)
    if rate.low is None or rate.high is None or not rate.value:
        text = f"{counted} answers count: too few for an interval, repeats give one"
        return Check(name=name, state="passed", text=text, numbers=numbers)
    half = (rate.high - rate.low) / 2 / rate.value
    text = f"{counted} answers count; the rate is known to {half:.1%} at {rate.confidence:.0%} confidence"
    return Check(name=name, state="passed", text=text, numbers=numbers)


def drift(values: Floats) -> tuple[float | None, bool]:
    """Return the rise of values over a run as a share of their mean, and its significance; None for too few values.

    A t test of the slope over consecutive sections.
    """
    if len(values) < 2 * statistics.SECTIONS:
        return None, False
    means = np.array([part.mean() for part in np.array_split(values, statistics.SECTIONS)])
    place = np.arange(statistics.SECTIONS) - (statistics.SECTIONS - 1) / 2
    slope = float((place * means).sum() / (place**2).sum())
    rest = means - means.mean() - slope * place
    degrees = statistics.SECTIONS - 2
    error = float(np.sqrt((rest**2).sum() / degrees / (place**2).sum()))
    certain = abs(slope) > statistics.t_quantile(DRIFT_CERTAINTY, degrees) * error
    return slope * (statistics.SECTIONS - 1) / float(means.mean()), certain


def failures_apart(requests: int, failures: Mapping[str, int]) -> Check:
    """Check 9: failures are counted by kind, in no latency, and few enough that the rest is the requested load.

    Args:
        requests: The number of requests sent.
        failures: The number of failures, by kind.
    """
    name = "failures_apart"
    failed = sum(failures.values())
    numbers: Numbers = {"requests": requests, "failed": failed, **failures}
    if not failed:
        return Check(name=name, state="passed", text=f"all {requests} requests were answered", numbers=numbers)
    kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(failures.items()))
    told = f"{failed} of {requests} requests failed ({kinds}); they are in no latency"
    if failed == requests:
        return Check(name=name, state="failed", text=f"no request succeeded ({kinds})", numbers=numbers)
    if cause := next((why for kind, why in _NOT_THE_SERVER.items() if kind in failures), ""):
        return Check(name=name, state="failed", text=f"{told}, and {cause}", numbers=numbers)
    if failed > FAILED_SHARE * requests:
        text = f"{told}. More than {FAILED_SHARE:.0%} failed: the rest was a lighter load than the one that is named"
        return Check(name=name, state="failed", text=text, numbers=numbers)
    return Check(name=name, state="suspect", text=told, numbers=numbers)
