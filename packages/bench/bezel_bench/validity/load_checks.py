"""Validity checks that need only the load and its samples: prompts, lengths, steady state, failures.

Each is one function of plain values and returns one `Check`. Leaves those that need the server to
bezel_bench.validity.server_checks, and collecting the values to bezel_bench.validity.checks.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from bezel_base.text.counting import format_count
from bezel_bench.metrics import statistics
from bezel_bench.metrics.steady import Steady
from bezel_bench.result.columns import Columns, Flags, Floats, Ints
from bezel_bench.result.document import Check, Numbers
from bezel_bench.result.failures import FAILED_SHARE
from bezel_bench.result.records import Metric
from bezel_bench.result.sample import CANCELLED, CLIENT, HTTP_401, HTTP_403

# A shared chat template may be cached; a larger share of a prompt may not.
CACHED_SHARE = 0.02
ROUNDS = 3
DRIFT_SHARE = 0.10
DRIFT_CERTAINTY = 0.9999
SHORT_FOR_DRAFTS = 16
# Failures that are no evidence about the server: access was denied, or the client broke.
_NOT_THE_SERVER = {
    HTTP_401: "the server refused access",
    HTTP_403: "the server refused access",
    CLIENT: "the client failed",
}


def unique_prompts(kind: str, seed: int, beginnings: Sequence[str], cached: Metric) -> Check:
    """Check 1: no two prompts begin alike, and none was served from a cache, unless the cache is being studied.

    Args:
        kind: The kind of the prompts, as planned.
        seed: Their seed.
        beginnings: Beginnings of a sample of the prompts; empty where they were not sampled.
        cached: The share of the prompt tokens that came from a cache.
    """
    alike = len(beginnings) - len(set(beginnings))
    numbers = {"kind": kind, "seed": seed, "looked_at": len(beginnings), "alike": alike, "cached_share": cached.value}
    check = partial(Check, name="unique_prompts", numbers=numbers)
    if kind in ("shared_prefix", "multi_turn", "trace"):
        return check(state="passed", text=f"{kind}: prompts share beginnings by design")
    if alike:
        prompts = format_count(len(beginnings), "prompts")
        text = f"{alike} of {prompts} begin like another one: a prefix cache can serve them"
        # Texts of a file may begin alike for less than a block of the cache.
        return check(state="suspect" if kind == "file" else "failed", text=text)
    if cached.value is None:
        return check(state="unknown", text=f"the share of cached prompt tokens is unknown: {cached.why}")
    if cached.value > CACHED_SHARE:
        text = f"{cached.value:.1%} of the prompt tokens came from a cache, more than {CACHED_SHARE:.0%}"
        return check(state="failed", text=text)
    return check(state="passed", text=f"{cached.value:.2%} of the prompt tokens were cached")


def output_length(requested: Ints, lengths: Ints, texts: Flags, drafts: int | None, *, fixed: bool) -> Check:
    """Check 2: every response has the requested length, or lengths vary on purpose and are reported; and it has a text.

    Args:
        requested: `max_tokens` of each request that succeeded.
        lengths: Tokens of its response.
        texts: Whether any of them had a text.
        drafts: Drafts that the server made; None where unknown.
        fixed: Whether responses were to continue past the end of the text.
    """
    check = partial(Check, name="output_length")
    if len(lengths) == 0:
        return check(state="unknown", text="no request succeeded", numbers={})
    other, median = int((requested != lengths).sum()), statistics.percentile(lengths.astype(np.float64), 0.5)
    numbers: Numbers = {
        "answers": len(lengths), "of_another_length": other, "without_text": int((~texts).sum()),
        "min": int(lengths.min()), "p50": median, "max": int(lengths.max()),
    }  # fmt: skip
    check = partial(check, numbers=numbers)
    span = f"{numbers['min']} to {numbers['max']} tokens, median {numbers['p50']:.0f}"
    responses = format_count(len(lengths), "responses")
    over = (lengths > requested) & (requested > 0)
    if over.any():
        times = float((lengths[over] / requested[over]).max())
        text = (
            f"{int(over.sum())} of {responses} have more tokens in `usage` than requested ({span}, up to {times:.3g} "
            "times): `usage` is wrong, or the server ignores max_tokens; every token rate depends on it"
        )
        return check(state="failed", text=text)
    if fixed and other:
        text = f"{other} of {responses} lack the requested length ({span}): their rates are not comparable"
        return check(state="failed", text=text)
    if not requested.any():
        return check(state="passed", text="the endpoint generates no token, and none was requested")
    if not texts.all():
        text = (
            f"{numbers['without_text']} of {responses} had no text, only special tokens or incomplete characters: they "
            "count in every rate; ttft, ttfc, tpot and itl are those of the others"
        )
        return check(state="suspect", text=text)
    if drafts and lengths.mean() < SHORT_FOR_DRAFTS:
        text = f"responses of {span} are too short to judge drafts: request {SHORT_FOR_DRAFTS} or more, better 128"
        return check(state="suspect", text=text)
    text = f"every response has the requested length: {span}" if not other else f"lengths vary as planned: {span}"
    return check(state="passed", text=text)


def conservation(columns: Columns, steady: Steady, at_once: int, users: int, rate: Metric) -> Check:
    """Check 3: each request was begun once, and is completed, failed or under way; and the rate is of the completed.

    Args:
        columns: All requests.
        steady: The part that counts.
        at_once: The most requests under way at once.
        users: The most users of a closed loop; 0 for an open one.
        rate: Requests per second.
    """
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
    check = partial(Check, name="conservation", numbers=numbers)
    before, sent, completed, lost, after = (
        int(numbers[key] or 0)
        for key in ("in_flight_before", "sent_inside", "completed_inside", "failed_inside", "in_flight_after")
    )
    wrong = []
    if twice := int((np.diff(np.sort(columns["index"])) == 0).sum()):
        wrong.append(f"{format_count(twice, 'requests')} occur{'s' * (twice == 1)} twice")
    if odd := int((done < np.maximum(begun, 1)).sum()):
        wrong.append(f"{format_count(odd, 'requests')} without an end, or end before they begin")
    if before + sent != completed + lost + after:
        wrong.append(f"{before} under way + {sent} sent != {completed} completed + {lost} failed + {after} under way")
    if users and at_once > users:
        wrong.append(f"{format_count(at_once, 'requests')} were under way at once, of {format_count(users, 'users')}")
    if rate.value is not None and abs(rate.value * steady.seconds - completed) > 0.5:
        wrong.append(f"{rate.value:.4g} requests/s x {steady.seconds:.4g} s != {completed} completed requests")
    if wrong:
        text = f"requests are lost or counted twice: {'; '.join(wrong)}; no figure of this load is valid"
        return check(state="failed", text=f"{text}, report this as a bug")
    without = "failed or cancelled" if columns.cancellations().any() else "failed"
    text = (
        f"{len(columns)} sent = {numbers['completed']} completed + {numbers['failed']} {without}; in the part that "
        f"counts {before} under way + {sent} sent = {completed} completed + {lost} {without} + {after} under way"
    )
    return check(state="passed", text=text)


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
    change, certain = drift(e2e)
    numbers: Numbers = {
        "users": users, "requests": requests, "counted": counted, "rule": steady.rule, "drift_of_e2e": change,
        "rate_low": rate.low, "rate_high": rate.high,
    }  # fmt: skip
    check = partial(Check, name="steady_state", numbers=numbers)
    if requests < ROUNDS * users:
        least = f"{ROUNDS} x {format_count(users, 'users')}"
        text = f"too few responses ({requests}, below {least}): start and end take most of the run"
        return check(state="suspect", text=text)
    if not steady.cut:
        return check(state="unknown", text=steady.rule)
    if certain and change is not None and abs(change) > DRIFT_SHARE:
        text = f"e2e drifts by {change:+.0%} over the part that counts: run it longer, or find what grows"
        return check(state="suspect", text=text)
    responses = format_count(counted, "responses")
    if rate.low is None or rate.high is None or not rate.value:
        text = f"{responses} count{'s' * (counted == 1)}: too few for an interval, repeats give one"
        return check(state="passed", text=text)
    half = (rate.high - rate.low) / 2 / rate.value
    text = f"{responses} count; the rate is known to {half:.1%} at {rate.confidence:.0%} confidence"
    return check(state="passed", text=text)


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
    numbers: Numbers = {"requests": requests, "failed": sum(failures.values()), **failures}
    check = partial(Check, name="failures_apart", numbers=numbers)
    cancelled = failures.get(CANCELLED, 0)
    failures = {kind: count for kind, count in failures.items() if kind != CANCELLED}
    requests, failed = requests - cancelled, sum(failures.values())
    planned = f"; the client cancelled {cancelled} others, as planned" if cancelled else ""
    if not failed:
        return check(state="passed", text=f"all {format_count(requests, 'requests')} succeeded{planned}")
    kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(failures.items()))
    text = f"{failed} of {format_count(requests, 'requests')} failed ({kinds}); they count in no latency{planned}"
    if failed == requests:
        return check(state="failed", text=f"no request succeeded ({kinds})")
    if cause := next((why for kind, why in _NOT_THE_SERVER.items() if kind in failures), ""):
        return check(state="failed", text=f"{text}, and {cause}")
    if failed > FAILED_SHARE * requests:
        cause = f"More than {FAILED_SHARE:.0%} failed: the rest was a lighter load than the requested one"
        return check(state="failed", text=f"{text}. {cause}")
    return check(state="suspect", text=text)
