"""Objects of a forge, read from its JSON: comments, issues, pull requests, the state of a run.

A text that is missing or of another type is read as empty: it was written by others. A number is the forge's own, and
one that is missing is an error.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from bezel.forge.errors import ForgeError
from bezel_base.errors import format_value
from bezel_base.json_documents import whole_number

_HIGHEST_ID = 2**63 - 1
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
    def of(cls, entry: Mapping[str, Any]) -> "Comment":
        """Read it from the forge's JSON."""
        return cls(_number(entry, "id"), _login(entry), _text(entry, "body"), _text(entry, "html_url"))


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
    def of(cls, entry: Mapping[str, Any]) -> "Issue":
        """Read it from the forge's JSON."""
        number = _number(entry, "number")
        title, body, state = (_text(entry, name) for name in ("title", "body", "state"))
        return cls(number, _login(entry), title, body, state, _text(entry, "html_url"))


@dataclass(frozen=True, slots=True)
class PullRequest:
    """A pull request."""

    number: int
    title: str
    url: str

    @classmethod
    def of(cls, entry: Mapping[str, Any]) -> "PullRequest":
        """Read it from the forge's JSON."""
        return cls(_number(entry, "number"), _text(entry, "title"), _text(entry, "html_url"))


def run_state_of(entry: Mapping[str, Any], attempt: int | None) -> RunState:
    """The state of a run, or of one of its attempts: an attempt has ended once there is a later one."""
    latest = entry.get("run_attempt")
    if attempt is not None and isinstance(latest, int) and latest > attempt:
        return "ended"
    status = entry.get("status")
    return "ended" if status in _ENDED else "running" if status in _RUNNING else "unknown"


def branch_of(pull_request: Mapping[str, Any]) -> tuple[str, str]:
    """Repository (OWNER/NAME) and branch of a pull request, "" each where the forge does not say."""
    head = pull_request.get("head")
    head = head if isinstance(head, Mapping) else {}
    repository = head.get("repo")  # a deleted fork has none
    return _text(repository, "full_name") if isinstance(repository, Mapping) else "", _text(head, "ref")


def sha_of(entry: object) -> str:
    """The hash of an object of git.

    Raises:
        ForgeError: The forge does not say it.
    """
    sha = _text(entry, "sha") if isinstance(entry, Mapping) else ""
    if not sha:
        raise ForgeError(f"the forge's response has no hash of an object of git: {format_value(entry)}.")
    return sha


def _login(entry: Mapping[str, Any]) -> str:
    user = entry.get("user")
    return str(user.get("login") or "") if isinstance(user, Mapping) else ""


def _number(entry: object, name: str) -> int:
    """The number by which the forge knows the object; nothing can be done with one that has none."""
    value = entry.get(name) if isinstance(entry, Mapping) else None
    try:
        return whole_number(value, 0, _HIGHEST_ID)
    except ValueError as error:
        raise ForgeError(
            f"the forge's response has an object whose {name} is {format_value(value)}: {error}."
        ) from None


def _text(entry: Mapping[str, Any], name: str) -> str:
    value = entry.get(name)
    return value if isinstance(value, str) else ""
