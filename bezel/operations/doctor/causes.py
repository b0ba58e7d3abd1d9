"""Causes behind the outcomes of checks: what several checks failed of is said once, with all of them. Pure.

Owns how outcomes of one cause are known: a disabled API, a missing login, no network, a missing tool, a permission that
is missing, or the same words. Leaves out the checks.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from pydantic import Field

from bezel.operations.doctor.check import Check, State
from bezel.operations.results import Result

NEEDS_LOGIN = "it needs a login to Google Cloud"
_WORST: tuple[State, ...] = ("problem", "warning", "unknown", "ok")
assert set(_WORST) == set(get_args(State))  # noqa: S101 - the same states

# As Google says that an API is off; its address names the service.
_DISABLED = re.compile(r"has not been used in project|it is disabled|SERVICE_DISABLED", re.IGNORECASE)
_SERVICE = re.compile(r"\b([a-z][a-z0-9-]*\.googleapis\.com)\b")
_ACTIVATION = re.compile(r"/apis/(?:api|library)/([a-z][a-z0-9-]*\.googleapis\.com)")
_LISTED = re.compile(r"^not enabled: ([^;]*)")
_UNREACHABLE = re.compile(
    r"no response \(|could not be resolved|cannot be reached|ConnectError|Name or service not known"
)
_LATE = re.compile(r"^no answer within ")
_TOOL = re.compile(
    r"\bthe (Pulumi) CLI is (?:not|neither)\b|^(?:pulumi|git|gcloud)\b.*not (?:found|installed)", re.IGNORECASE
)
# As IAM, Compute Engine and Cloud Storage say it, and `outside_changes` does.
_PERMISSION = re.compile(
    r"(?:[Pp]ermission '?|Required '|does not have |the permission )(?P<name>[a-z][A-Za-z]*(?:\.[A-Za-z]+)+)"
)
_DENIED = re.compile(r"denied|permission|access", re.IGNORECASE)

Key = tuple[str, str]


class Cause(Result):
    """A cause with the checks that failed of it."""

    state: State = Field(description="the most serious state of its checks")
    detail: str = Field(description="what was found")
    repair: str | None = Field(description="what to do; null where nothing is to be done")
    checks: tuple[str, ...] = Field(description="the checks, each as `area, subject`")

    def lines(self) -> list[str]:
        """The cause with its repair, for people."""
        first, *others = self.checks
        texts = [f"{self.state}: {first}: {self.detail}"]
        if others:
            texts.append(f"  The same cause: {'; '.join(others)}")
        return [*texts, *([f"  Repair: {self.repair}"] if self.repair else [])]


def causes_of(checks: Iterable[Check]) -> tuple[Cause, ...]:
    """The causes of every outcome that is not ok, the most serious first, else in the order of the checks."""
    bad = [each for each in checks if each.state != "ok"]
    groups: dict[Key, list[Check]] = {}
    for each, key in zip(bad, _cause_keys(bad), strict=True):
        groups.setdefault(key, []).append(each)
    causes = [_cause(group) for group in groups.values()]
    return tuple(sorted(causes, key=lambda cause: _WORST.index(cause.state)))


def rows_of(checks: Iterable[Check]) -> list[tuple[str, str, str]]:
    """State, area and subject of each check; equal ones once, with their number."""
    counts: dict[tuple[str, str, str], int] = {}
    for each in checks:
        row = (each.state if each.state != "problem" else "PROBLEM", each.area, each.subject)
        counts[row] = counts.get(row, 0) + 1
    return [
        (state, area, subject if number == 1 else f"{subject} ({number})")
        for (state, area, subject), number in counts.items()
    ]


def _cause_keys(checks: Sequence[Check]) -> list[Key]:
    """The key of each check: of an API, that of the check which lists it as disabled; of a login, that of the login."""
    keys = [_key(each) for each in checks]
    listed: dict[str, Key] = {}
    for each, key in zip(checks, keys, strict=True):
        if each.area == "APIs" and (named := _LISTED.match(each.detail)):
            listed |= {service: listed.get(service, key) for service in _SERVICE.findall(named[1])}
    login = next(
        (key for each, key in zip(checks, keys, strict=True) if (each.area, each.subject) == ("login", "Google Cloud")),
        None,
    )
    return [_root(key, listed, login) for key in keys]


def _root(key: Key, listed: Mapping[str, Key], login: Key | None) -> Key:
    kind, name = key
    if kind == "api":
        return listed.get(name, key)
    return login if kind == "login" and login is not None else key


def _key(each: Check) -> Key:
    text = each.detail
    if text == NEEDS_LOGIN:
        return "login", ""
    if each.area != "APIs" and _DISABLED.search(text):
        named = _ACTIVATION.search(text) or _SERVICE.search(text)
        return "api", named[1] if named else text
    if _UNREACHABLE.search(text):
        return "network", ""
    if _LATE.match(text):
        return "late", ""
    if tool := _TOOL.search(text):
        return "tool", (tool[1] or text.split()[0]).lower()
    if (named := _PERMISSION.search(text)) and _DENIED.search(text):
        return "permission", named["name"]
    return text, each.repair or ""


def _cause(group: Sequence[Check]) -> Cause:
    """One cause of checks that have the same key; the first one of the most serious state speaks for all."""
    state = min((each.state for each in group), key=_WORST.index)
    first = _speaker(group, state)
    names = dict.fromkeys(f"{each.area}, {each.subject}" for each in (first, *group))
    return Cause(state=state, detail=first.detail, repair=first.repair, checks=tuple(names))


def _speaker(group: Sequence[Check], state: State) -> Check:
    """The check that names the cause itself: the list of APIs, the login, the tool; else the first of its state."""
    root_checks = [each for each in group if each.area in {"tools", "login"} or _LISTED.match(each.detail)]
    return (
        next((each for each in root_checks if each.area == "tools"), None)
        or next((each for each in root_checks if each.state == state), root_checks[0] if root_checks else None)
        or next(each for each in group if each.state == state)
    )
