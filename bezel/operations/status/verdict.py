"""Verdict of a service: what its callers get, and beside it the state of its newest revision. Pure.

Owns what the platform's conditions and the requests of the last minutes say together. Ready in Cloud Run's words means
that the newest revision started once: every request may fail since, and where it did not start an older revision may
serve every request. So requests decide, and without any the verdict is not `ready`. Leaves out the reading of both, and
the states of leases (bezel.operations.status.status).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import Field

from bezel.operations.results import Result
from bezel.operations.service_use.call_counts import LOG, Calls, failed_share
from bezel_base.text.shell import shell_word

Verdict = Literal[
    "ready",
    "no-callers",
    "degraded",
    "failing",
    "refused",
    "not-judged",
    "off-hours",
    "deploying",
    "waiting",
    "stopped",
    "failed",
    "ended",
    "gone",
    "unfinished",
]
RevisionState = Literal["serving", "without traffic", "starting", "failed"]
Judgement = tuple[Verdict, tuple[str, ...]]
"""A verdict and its reasons."""
AS_DECLARED: frozenset[Verdict] = frozenset({"ready", "no-callers", "off-hours"})
"""Verdicts with which a command ends with 0."""
BY_REQUESTS: frozenset[Verdict] = frozenset({"ready", "degraded", "failing", "refused"})
"""Verdicts that requests of callers prove."""
_DEGRADED, _FAILING = 0.01, 0.5


class Revision(Result):
    """A revision that receives traffic."""

    name: str
    percent: int = Field(description="share of the traffic, 0 to 100")


class NewestRevision(Result):
    """The revision that was created last, whether it serves or not."""

    name: str
    state: RevisionState
    reason: str | None = Field(description="why the service is not ready with it, in Google's words; null where it is")


def revisions_of(live: Mapping[str, Any]) -> tuple[Revision, ...]:
    """The revisions that receive traffic; none before the first one is ready.

    Args:
        live: The service as Cloud Run has it.
    """
    latest = short_name(live.get("latestReadyRevision")) or ""
    shares = [
        Revision(name=short_name(entry.get("revision")) or latest, percent=int(entry["percent"]))
        for entry in live.get("trafficStatuses") or ()
        if entry.get("percent")
    ]
    return tuple(share for share in shares if share.name)


def newest_revision(live: Mapping[str, Any], revisions: Sequence[Revision]) -> NewestRevision | None:
    """The newest revision's state, by the service's conditions; None before the first one."""
    name, ready = short_name(live.get("latestCreatedRevision")), short_name(live.get("latestReadyRevision"))
    if name is None:
        return None
    verdict, reasons = platform_verdict(live)
    state: RevisionState = "failed" if verdict == "failed" else "starting"
    if name == ready:
        state = "serving" if any(revision.name == name for revision in revisions) else "without traffic"
    return NewestRevision(name=name, state=state, reason=next(iter(reasons), None))


def service_verdict(live: Mapping[str, Any], calls: Calls | None, stack: str) -> Judgement:
    """The verdict of a Cloud Run service.

    Args:
        live: The service as Cloud Run has it; {} without one.
        calls: Requests to the revisions that have traffic; None where none has.
        stack: Name of the stack, for repairs.
    """
    platform = platform_verdict(live)
    revisions = revisions_of(live)
    if calls is None or not revisions:
        if platform[0] == "ready":
            return "failed", ("no revision has traffic, so no request is served",)
        return platform
    by_calls = calls_verdict(calls, stack)
    newest = newest_revision(live, revisions)
    if by_calls[0] in BY_REQUESTS or platform[0] == "ready":
        return by_calls
    if platform[0] == "failed" and newest is not None and newest.state == "failed":
        return by_calls[0], (*by_calls[1], f"the newest revision failed, and {_names(revisions)} has the traffic")
    # A roll-out, or a route or a setting of the service itself, and no request came since.
    return platform


def calls_verdict(calls: Calls, stack: str) -> Judgement:
    """The verdict by what callers got, of a service that has a revision to serve them.

    A service that fails more than one request in a hundred is degraded, and failing where half of the newest ones
    failed: a fault that began a minute ago is not outweighed by the requests before it. A server that ends again and
    again breaks streams off whose requests look well in the log: its service is degraded at best.
    """
    verdict, reasons = _requests_verdict(calls, stack)
    if not calls.loops:
        return verdict, reasons
    if verdict == "ready":
        look = (
            f"`bezel logs {shell_word(stack)} --source platform` lists them, `bezel advise {shell_word(stack)}` "
            "names causes"
        )
        return "degraded", (calls.ends(), look)
    return verdict, (*reasons, calls.ends())


def _requests_verdict(calls: Calls, stack: str) -> Judgement:
    look = (
        f"`bezel logs {shell_word(stack)} --source requests` lists them, `bezel advise {shell_word(stack)}` names "
        "causes"
    )
    answered, recent = calls.succeeded + calls.failed, calls.recent_succeeded + calls.recent_failed
    if calls.failed and calls.failed > _DEGRADED * answered:
        kinds = ", ".join(f"{number} x {status}" for status, number in calls.statuses.items())
        text = (
            f"{failed_share(calls)} of {calls.period()} failed, {calls.recent_failed} of the newest {recent} ({kinds})"
        )
        platform_reason = f"Cloud Run's words: {calls.platform_says}" if calls.platform_says else ""
        unread = () if LOG in calls.read else _unread(calls, "requests that the platform refused are not among these")
        reasons = tuple(filter(None, (text, platform_reason, calls.shares(), *unread, look)))
        return ("failing" if calls.recent_failed >= _FAILING * recent else "degraded"), reasons
    if calls.abandoned > answered:
        text = f"callers gave up {calls.abandoned} requests of {calls.period()}, {answered} were answered"
        return ("degraded" if answered else "failing"), (text, look)
    if LOG not in calls.read:
        return "not-judged", _not_judged(calls, "whether the platform refuses requests is in the request log only")
    if answered:
        return "ready", ()
    if calls.refused:
        text = f"each request of {calls.period()} was refused by what was sent, or by whom: {calls.line()}"
        return "refused", (text, look)
    if calls.unread:
        text = f"no request of {calls.period()} is in the request log, which may be filtered"
        return "not-judged", _not_judged(calls, text)
    return "no-callers", (f"no callers in {calls.period()}: `bezel query {shell_word(stack)}` sends a request",)


def verdict_text(verdict: Verdict, calls: Calls | None) -> str:
    """A verdict in words."""
    if verdict == "no-callers":
        return "no callers" if calls is None else f"no callers in {calls.period()}"
    return "not judged" if verdict == "not-judged" else verdict


def short_name(name: object) -> str | None:
    """Last part of a name; None for no name."""
    return str(name).rpartition("/")[2] if name else None


def _not_judged(calls: Calls, consequence: str) -> tuple[str, ...]:
    count_lines = () if not calls.number else (f"requests that were counted: {calls.line()}",)
    return (*_unread(calls, consequence), *count_lines)


def _unread(calls: Calls, consequence: str) -> tuple[str, ...]:
    return tuple(f"{consequence}: {each}" for each in calls.unread)


def platform_verdict(live: Mapping[str, Any]) -> Judgement:
    """What Cloud Run says of its newest revision and its routes."""
    condition = live.get("terminalCondition") or {}
    if condition.get("state") == "CONDITION_SUCCEEDED":
        return "ready", ()
    reason = str(condition.get("message") or condition.get("reason") or condition.get("state") or "no condition yet")
    return ("failed" if condition.get("state") == "CONDITION_FAILED" else "deploying"), (reason,)


def _names(revisions: Sequence[Revision]) -> str:
    return " and ".join(revision.name for revision in revisions)
