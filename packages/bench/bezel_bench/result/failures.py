"""Classification of failures: the kind of each, and its message in one short line. Pure."""

import errno
from typing import Any, Final

import orjson

from bezel_base.errors import Problem
from bezel_base.front.refusals import is_page, page_words
from bezel_bench.result import sample as kinds
from bezel_bench.result.no_response import NotHttpError, is_tls_error, of_bytes, of_error

FAILED_SHARE: Final = 0.01
"""Share of the requests: where more failed, the rest was a lighter load than the requested one."""
_LONGEST: Final = 200
_OF_STATUS: Final = {401: kinds.HTTP_401, 403: kinds.HTTP_403, 404: kinds.HTTP_404, 429: kinds.HTTP_429}
_OWN: Final = {
    errno.EMFILE: "no more open files: raise the limit with `ulimit -n`, or use fewer connections",
    errno.ENFILE: "the machine has no more open files: use fewer connections",
    errno.ENOMEM: "no memory left for a connection: use fewer connections",
    errno.ENOBUFS: "no memory left for a connection: use fewer connections",
    errno.EADDRNOTAVAIL: "no local port left: use fewer connections, or wait a minute for closed ones to be freed",
}


def of_status(status: int) -> str:
    """Return the kind of an HTTP status; "" for a success."""
    if 200 <= status < 300:
        return ""
    return _OF_STATUS.get(status) or (kinds.HTTP_5XX if status >= 500 else kinds.HTTP_4XX)


def of_connecting(error: OSError) -> tuple[str, str]:
    """Return kind and text of a failure to connect."""
    if error.errno in _OWN and not is_tls_error(error):
        return kinds.CLIENT, _OWN[error.errno]
    if is_tls_error(error):
        return kinds.REFUSED, short(str(of_error(error)))
    return kinds.REFUSED, short(error.strerror or str(error))


def of_broken(error: Exception | None, *, begun: bool, status: int) -> tuple[str, str] | None:
    """Return kind and text of a connection's end before a response's; None where a response's body was cut.

    Args:
        error: The error of the system or TLS, or `NotHttpError`; None where the server just closed.
        begun: Whether any byte arrived.
        status: The HTTP status; 0 before it arrived.
    """
    if isinstance(error, NotHttpError):
        return kinds.BAD_JSON, short(f"the response is not HTTP: {error}" if status else str(of_bytes(error.data)))
    if not begun and error is None:
        return kinds.NO_ANSWER, "the server closed the connection without an answer"
    if not begun:
        return kinds.RESET, short(str(of_error(error) if is_tls_error(error) else error))
    return None if status else (kinds.TRUNCATED, "the connection closed inside the answer's head")


def connection_problem(url: str, error: OSError) -> Problem:
    """Return the problem of a server to which no connection could be made."""
    kind, text = of_connecting(error)
    no_response = of_error(error)
    if kind == kinds.CLIENT or not no_response.reached:
        reason, repair = f"the server accepts no connection ({text})", "check the address, and that the server runs."
    else:
        reason, repair = no_response.reason, no_response.repair
    return Problem("--url", url, f"{reason}, so nothing can be measured.", repair)


def short(text: str) -> str:
    """Return one line of at most 200 characters."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def error_message(document: bytes) -> str:
    """Return an error document's message (as OpenAI, vLLM and Google write it), else its text."""
    try:
        return error_text(orjson.loads(document))
    except orjson.JSONDecodeError:
        text = document[:1000].decode(errors="replace")
        return short(page_words(text) if is_page(text) else text)


def error_text(document: Any) -> str:
    """Return the message of a parsed error document, of its `error`, or of whatever else it is."""
    inner = document
    for key in ("error", "message", "detail"):
        if isinstance(inner, dict) and inner.get(key):
            inner = inner[key]
    return short(inner if isinstance(inner, str) else orjson.dumps(inner).decode())
