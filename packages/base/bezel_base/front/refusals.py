"""Refusals by HTTP: whose answer a response is, what its status means, and the command that helps. Pure.

The table beside it has those of the front end, of the gateway in front of leased machines, and of the server itself,
which answers in JSON. What comes as a page, as a bare line of text or as a redirect was written by something in front
of it, and its markup is for browsers: it is said in words.
"""

import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from bezel_base.text.shell import shell_word
from bezel_base.toml_tables import read_table

_BARE = re.compile(
    r"^(?:Rate exceeded|upstream connect error|upstream request timeout|no healthy upstream|Service Unavailable|"
    r"Response size was too large|"
    r"fault filter abort|RBAC: access denied|Forbidden|Unauthorized)",
    re.IGNORECASE,
)
_GATEWAY = re.compile(r'"type":\s*"gateway_error"')
_MARKUP = re.compile(r"^\s*(?:<!--.*?-->\s*)*<(?:!doctype|\?xml|html|head|body|title)\b", re.IGNORECASE | re.DOTALL)
_HIDDEN = re.compile(r"<(style|script|title)\b.*?</\1\s*>|<!--.*?-->|<[^>]*>", re.IGNORECASE | re.DOTALL)
_WORDS = 200
_ANY_STACK = "STACK"
_GATEWAYS_OWN = frozenset({502, 503, 504})

Answerer = Literal["platform", "gateway", "server"]


@dataclass(frozen=True)
class Refusal:
    """A refusal of a request.

    Attributes:
        by: Who answered: the platform's front end, the gateway of leased machines, or the server itself.
        kind: Its kind, e.g. `no_instance`.
        cause: What it means, as a clause about the request.
        repair: What helps.
        next: The command that shows more, as a sentence; "" where none is needed.
        is_unserved: Whether no server got the request, so that sending it again cannot run it twice.
    """

    by: Answerer
    kind: str
    cause: str
    repair: str
    next: str = ""
    is_unserved: bool = False

    @property
    def advice(self) -> str:
        """What helps the sender of the request."""
        return f"{self.repair} {self.next}".rstrip()


def refusal_of(status: int, body: str, stack: str = _ANY_STACK) -> Refusal | None:
    """The front end's refusal that a response is; None for an answer of the server itself, or of the gateway.

    Args:
        status: HTTP status.
        body: The body, or its begin.
        stack: Name of the stack, for the command.
    """
    if not _is_of_front(status, body):
        return None
    return refusal_named(status, body, stack)


def refusal_named(status: int, text: str, stack: str = _ANY_STACK) -> Refusal:
    """The front end's refusal of a status, by the text of its page or of the request log's message."""
    return _row_of("platform", status, text, stack)


def any_refusal(status: int, body: str, stack: str = _ANY_STACK) -> Refusal:
    """The refusal that a response is, of any answerer; arguments as of `refusal_of`."""
    by: Answerer = "gateway" if _GATEWAY.search(body) else "server"
    return refusal_of(status, body, stack) or _row_of(by, status, body, stack)


def logged_refusal(status: int, message: str, stack: str = _ANY_STACK, *, has_gateway: bool = False) -> Refusal:
    """The refusal of an entry of the request log: with a message the front end's, else the gateway's or the server's.

    Args:
        status: HTTP status.
        message: The platform's message; "" where the container answered.
        stack: Name of the stack, for the command.
        has_gateway: Whether the container is the gateway of leased machines; it passes on what a server refuses.
    """
    of_container: Answerer = "gateway" if has_gateway and status in _GATEWAYS_OWN else "server"
    return _row_of("platform" if message else of_container, status, message, stack)


def _row_of(by: Answerer, status: int, text: str, stack: str) -> Refusal:
    for row, patterns in _rows(by):
        is_named = not patterns or any(pattern.search(text) for pattern in patterns)
        if is_named and (not row["status"] or {status, f"{status // 100}xx"} & {*row["status"]}):
            repair, more = (str(row.get(key, "")).format(stack=shell_word(stack)) for key in ("repair", "next"))
            return Refusal(by, row["kind"], row["cause"], repair, more, row.get("is_unserved", False))
    raise AssertionError("the last row of each answerer fits any status")


def is_page(text: str) -> bool:
    """Whether a text is a page for browsers, by its begin."""
    return _MARKUP.match(text) is not None


def page_words(page: str) -> str:
    """The text of a page in one line, without markup, printable, at most 200 characters; "" for an empty page."""
    text = _HIDDEN.sub(" ", page)
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())[:_WORDS]


def _is_of_front(status: int, body: str) -> bool:
    """Whether a response was written by something in front of the server."""
    if 300 <= status < 400 or _MARKUP.match(body):
        return True
    if status < 300:
        return False
    if _BARE.match(body.strip()):
        return True
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        # vLLM answers 503 to a probe of its health without a body, and says what it refuses in JSON or in a sentence.
        return not body.strip() and status in {401, 403, 413, 429, 502, 504}
    return False


@cache
def _rows(by: Answerer) -> tuple[tuple[dict[str, Any], tuple[re.Pattern[str], ...]], ...]:
    table = read_table(Path(__file__).with_name("refusals.toml"))[by]
    return tuple(
        (row, tuple(re.compile(pattern, re.IGNORECASE) for pattern in row.get("patterns", ()))) for row in table
    )
