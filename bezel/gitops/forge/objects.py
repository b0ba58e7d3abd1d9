"""Objects of a forge, read from its JSON: comments, issues, pull requests, the state of a run.

A field that is missing or of another type is read as empty: the texts were written by others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

RunState = Literal["running", "ended", "unknown"]

# GitHub and Gitea name the outcome apart from the status; Forgejo's status is the outcome.
_ENDED = frozenset({"completed", "success", "failure", "cancelled", "skipped"})
_RUNNING = frozenset({"queued", "in_progress", "requested", "waiting", "pending", "running", "blocked"})


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment of a pull request or an issue."""

    id: int
    author: str
    body: str
    url: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Comment":
        """Read it from the forge's JSON."""
        return cls(int(given["id"]), _login(given), _text(given, "body"), _text(given, "html_url"))


@dataclass(frozen=True, slots=True)
class Issue:
    """An issue."""

    number: int
    author: str
    title: str
    body: str
    state: str
    url: str = ""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "Issue":
        """Read it from the forge's JSON."""
        title, body, state = (_text(given, name) for name in ("title", "body", "state"))
        return cls(int(given["number"]), _login(given), title, body, state, _text(given, "html_url"))


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request."""

    number: int
    title: str
    url: str

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> "PullRequest":
        """Read it from the forge's JSON."""
        return cls(int(given["number"]), _text(given, "title"), _text(given, "html_url"))


def run_state_of(given: Mapping[str, Any], attempt: int | None) -> RunState:
    """The state of a run, or of one of its attempts: an attempt has ended once there is a later one."""
    latest = given.get("run_attempt")
    if attempt is not None and isinstance(latest, int) and latest > attempt:
        return "ended"
    status = given.get("status")
    return "ended" if status in _ENDED else "running" if status in _RUNNING else "unknown"


def _login(given: Mapping[str, Any]) -> str:
    user = given.get("user")
    return str(user.get("login") or "") if isinstance(user, Mapping) else ""


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    return value if isinstance(value, str) else ""
