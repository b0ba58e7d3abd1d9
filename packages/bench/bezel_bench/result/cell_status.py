"""Status of a cell: ok, or the reason why not (failed, client_limited, saturated, ...), with the rule that applies.

Pure. Owns the order of the rules and their limits. Leaves the checks to bezel_bench.validity.checks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_base.text.counting import format_count
from bezel_bench.result.failures import FAILED_SHARE
from bezel_bench.result.sample import CANCELLED, CLIENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bezel_bench.result.document import Check, ClientFigures, State

ACHIEVED_SHARE = 0.98
# A smaller lateness does not harm a figure, however fast the server; nor one below this share of the measured time.
LATE_MS = 10.0
LATE_SHARE = 0.05
CPU_SHARE = 0.85
# The accuracy that `ok` promises for the ttft: this, or this share of its median where that is more.
STALL_MS = 1.0
STALL_SHARE = 0.01
# The check that too many requests failed.
_APART = "failures_apart"
# Phrases in vLLM's refusal of a request that cannot fit.
_TOO_LONG = ("maximum context length", "max_model_len")


def infeasible(
    context_tokens: int, output_tokens: int, *, max_model_len: int | None, kv_cache_tokens: int | None
) -> str:
    """Return the rule by which a request can never be served, "" where there is none.

    Args:
        context_tokens: Tokens of the prompt.
        output_tokens: Tokens of the response.
        max_model_len: The server's limit; None where unknown.
        kv_cache_tokens: Tokens that its cache holds; None where unknown.
    """
    length = f"{context_tokens} prompt + {output_tokens} output tokens = {context_tokens + output_tokens}"
    if max_model_len is not None and context_tokens + output_tokens > max_model_len:
        return f"{length} > max_model_len {max_model_len}: the server refuses it, or cuts the answer off"
    if kv_cache_tokens is not None and context_tokens + output_tokens > kv_cache_tokens:
        return f"{length} > {kv_cache_tokens} tokens that the KV cache holds: the server never runs it"
    return ""


def state_of(
    checks: Sequence[Check],
    *,
    interrupted: bool,
    requests: int,
    failures: Mapping[str, int],
    examples: Mapping[str, str],
    client_limits: Sequence[str],
    queueing: str,
    busy: str = "",
    saturated: str = "",
    silent_seconds: float | None = None,
    failing_requests: int | None = None,
    failed_share: float | None = None,
) -> tuple[State, str]:
    """Return the state of a measured cell, the gravest of its findings, and the reason, which tells all of them.

    Precedence: a load that has no end of its own or no response, too many failures of the server, any other failed
    check (a wrong count among them), the client's limit, a busy machine, a growing queue, a full platform.

    Args:
        checks: The results of the checks.
        interrupted: Whether the user ended the load early.
        requests: The number of requests sent.
        failures: The number of failures, by kind.
        examples: The text of one failure of each kind.
        client_limits: The result of `limits_of_client`.
        queueing: The result of `queueing_reason`.
        busy: The result of `busy_machine`.
        saturated: The result of `backlog_reason`.
        silent_seconds: The time without any response after which the load was ended; None if it was not.
        failing_requests: The failures in a row after which the load was ended; None if it was not.
        failed_share: The share of failed requests at which the load was ended; None if it was not.
    """
    limits = "" if busy else "; ".join(client_limits)
    excused = bool(limits) and _only_the_clients(requests, failures)
    wrong = [check for check in checks if check.state == "failed"]
    apart, counts = (
        [f"{check.name}: {check.text}" for check in wrong if (check.name == _APART) is is_apart]
        for is_apart in (True, False)
    )
    failed = sum(failures.values())
    ended = (
        f"; the load was ended after {format_count(failing_requests, 'failures')} in a row" if failing_requests else ""
    )
    if failed_share:
        ended = f"; the load was ended as {failed_share:.1%} of its requests had failed (--max-failed)"
    end: tuple[State, str] | None
    if interrupted:
        end = "failed", f"interrupted after {format_count(requests - failed, 'answers')}: run it again"
    elif silent_seconds:
        reason = (
            f"the server hangs: no request was answered for {silent_seconds:.3g} s, as long as one may take "
            f"(--deadline), so the load was ended after {format_count(requests - failed, 'answers')}. Look at the "
            "server's log, then run it again"
        )
        end = "failed", reason
    else:
        end = _state_without_response(requests, failures, examples, ended)
    if end:
        return end[0], "; ".join([end[1], *counts])
    # In the order of precedence. A wrong count, or failures of the server, are no doing of a slow client: they stay
    # wrong on a faster one. The others show how the figures came about, and each is in the reason.
    findings: list[tuple[State, str]] = [
        *(("failed", f"{text}{ended}") for text in apart if not excused),
        # A load that failures ended is cut, also where so few of them leave its figures right.
        ("failed", ended.removeprefix("; ") if failed_share and (excused or not apart) else ""),
        *(("failed", text) for text in counts),
        ("client_limited", limits),
        ("busy_machine", busy),
        ("saturated", saturated),
        ("queueing", queueing),
    ]
    reasons = [(state, why) for state, why in findings if why]
    if not reasons:
        return "ok", ""
    first = reasons[0][0]
    client = "the client was measured, not the server" if first == "client_limited" else "the client fell short, too"
    return first, "; ".join(f"{client}: {why}" if state == "client_limited" else why for state, why in reasons)


def _state_without_response(
    requests: int, failures: Mapping[str, int], examples: Mapping[str, str], ended: str
) -> tuple[State, str] | None:
    """Return the state of a load without one good response, and its reason; None where there was one."""
    if not requests:
        return "failed", "no request was sent"
    if sum(failures.values()) < requests:
        return None
    too_long = [text for text in examples.values() if any(word in text for word in _TOO_LONG)]
    if too_long and len(too_long) == len(examples):
        return "infeasible", f"the server refuses every request: {too_long[0]}"
    kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(failures.items()))
    reasons = next((text for text in examples.values() if text), "")
    return "failed", f"no request succeeded ({kinds}){f': {reasons}' if reasons else ''}{ended}"


def _only_the_clients(requests: int, failures: Mapping[str, int]) -> bool:
    """Whether too many requests failed only because of the client's own failures."""
    theirs = sum(count for kind, count in failures.items() if kind not in (CANCELLED, CLIENT))
    return CLIENT in failures and theirs <= FAILED_SHARE * requests


def accuracy_ms(ttft_ms: float | None) -> float:
    """Return the error (ms) of a ttft up to which a cell is `ok`, by the median ttft."""
    return max(STALL_MS, STALL_SHARE * (ttft_ms or 0.0))


def limits_of_client(figures: ClientFigures, achieved: float | None, ttft_ms: float | None = None) -> list[str]:
    """Return every way in which the client fell short.

    Args:
        figures: The client's figures.
        achieved: The rate at which it began requests, relative to the planned one; None for a closed loop.
        ttft_ms: The median of the shortest measured time: to the first token, or to the end of a response without a
            text; None where nothing was measured.
    """
    max_delay, of_what = LATE_MS, ""
    if ttft_ms is not None and ttft_ms * LATE_SHARE > LATE_MS:
        max_delay, of_what = ttft_ms * LATE_SHARE, f" ({LATE_SHARE:.0%} of the median ttft of {ttft_ms:,.0f} ms)"
    limits = []
    if achieved is not None and achieved < ACHIEVED_SHARE:
        limits.append(f"it began requests at {achieved:.1%} of the planned rate, below {ACHIEVED_SHARE:.0%}")
    delay = figures.schedule_delay_p99_ms
    if delay is not None and delay > max_delay:
        limits.append(f"requests were begun {delay:.1f} ms late (p99), above {max_delay:.0f} ms{of_what}")
    lag = figures.loop_lag_p99_ms
    if lag > max_delay:
        limits.append(f"its event loop lagged by {lag:.1f} ms (p99), above {max_delay:.0f} ms{of_what}")
    if (part := figures.ttft_part) is not None:
        name = next(name for name in ("p99", "p90", "p50") if getattr(part, name) is not None)
        delay, allowed = getattr(part, name), accuracy_ms(ttft_ms)
        if delay > allowed:
            limits.append(f"up to {delay:.1f} ms of the ttft were its own ({name}), above {allowed:.3g} ms")
    if figures.busiest_cpu_share > CPU_SHARE:
        limits.append(f"a worker used {figures.busiest_cpu_share:.0%} of a core, above {CPU_SHARE:.0%}")
    return limits


def busy_machine(figures: ClientFigures, client_limits: Sequence[str], ttft_ms: float | None = None) -> str:
    """Return how other work of the machine disturbed the measurement, "" where it did not or the client was the limit.

    A client that had no CPU when it needed one shows nothing about the load that it could send. Where the kernel does
    not tell, the loop's lag stands in: then the client's own work counts, too.

    Args:
        figures: The client's figures.
        client_limits: The result of `limits_of_client`.
        ttft_ms: As of `limits_of_client`.
    """
    max_stall = accuracy_ms(ttft_ms)
    stall, is_measured = figures.stall_p99_ms, figures.stall_p99_ms is not None
    if stall is None:
        stall = figures.loop_lag_p99_ms
    if figures.busiest_cpu_share > CPU_SHARE or stall <= max_stall or (client_limits and not is_measured):
        return ""
    what = "other work kept the client from a CPU" if is_measured else "the client's event loop lagged"
    also = f" ({'; '.join(client_limits)})" if client_limits else ""
    return (
        f"measured on a busy machine: {what} for {stall:.1f} ms (p99), above {max_stall:.3g} ms{also}. Times may be "
        "wrong by that much: measure again while the machine has nothing else to do"
    )


def queueing_reason(in_flight: int, *, instances: int | None, concurrency: int | None) -> str:
    """Return how a load exceeds the requests that the platform admits at once, "" where it does not or this is unknown.

    Args:
        in_flight: The most requests under way at once.
        instances: Instances of the service.
        concurrency: Requests that the platform sends to one instance at once.
    """
    if instances is None or concurrency is None or in_flight <= instances * concurrency:
        return ""
    room = instances * concurrency
    return (
        f"{format_count(in_flight, 'requests')} at once > {format_count(instances, 'instances')} x concurrency "
        f"{concurrency} = {room}: the rest waited in the platform's queue, and every latency holds that wait"
    )


def crowding_reason(in_flight: int | None) -> str:
    """Return that an open loop ended at its limit of requests under way, "" where it did not."""
    if not in_flight:
        return ""
    return (
        f"{format_count(in_flight, 'requests')} {'was' if in_flight == 1 else 'were'} under way, the most that were "
        "allowed (--max-in-flight), so no more were sent: the server completes fewer than are offered. Send at a lower "
        "rate, or allow more"
    )


def backlog_reason(share: float | None, offered: float | None, completed: float | None) -> str:
    """Return how an open loop's queue grew, "" where it did not.

    Args:
        share: Requests completed by requests offered, from `metrics.saturation`; None where none were left over.
        offered: Requests offered per second.
        completed: Requests completed per second.
    """
    if share is None:
        return ""
    has_rates = offered is not None and completed is not None
    rates = f"{offered:.4g} requests/s offered, {completed:.4g} completed: " if has_rates else ""
    return (
        f"{rates}the server completes {share:.0%} of what is offered, so its queue and every latency grow as long as "
        "the load is sent. The latencies say how long that was: to measure the server's, send at a lower rate"
    )
