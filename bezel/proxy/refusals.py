"""Errors that the proxy sends its clients: OpenAI's JSON shape, with what happened and the repair.

Owns the texts of what the proxy itself meets. What a status of the platform means is the table's of
`bezel_base.front.refusals`, as everywhere. The server's answers, which are JSON, are passed on as they are.
"""

import json
from dataclasses import dataclass
from typing import Final

from starlette.types import Send

from bezel_base.front.refusals import any_refusal, page_words, refusal_named
from bezel_base.text.redaction import redact

PAGE: Final = 64 * 1024
"""Bytes of an error page that are read at most."""
# Kinds of any text: the page's own words say more.
_ANY_TEXT = frozenset({"front_end", "internal", "server_failed", "server_refused"})


@dataclass(frozen=True)
class Refusal:
    """An error response of the proxy.

    Attributes:
        status: HTTP status.
        kind: Machine-readable kind, as `type` and `code` of OpenAI's errors.
        text: The event, and the repair, as sentences.
        is_final: Whether the client should not repeat the request by itself: the proxy has repeated it already.
    """

    status: int
    kind: str
    text: str
    is_final: bool = False

    def body(self) -> bytes:
        """The JSON document."""
        error = {"message": redact(self.text), "type": self.kind, "param": None, "code": self.kind}
        return json.dumps({"error": error}, ensure_ascii=False).encode()

    def event(self) -> bytes:
        """The document as an event of a stream."""
        return b"data: " + self.body() + b"\n\n"

    async def send(self, send: Send) -> None:
        """Send it as the whole response."""
        body = self.body()
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if self.is_final:
            headers.append((b"x-should-retry", b"false"))  # read by OpenAI's packages
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body})


def of_page(status: int, url: str, page: bytes, waited: float, *, is_html: bool, stack: str) -> Refusal:
    """The refusal for an error page; it is final where no server can have got the request, which may be repeated.

    Args:
        status: Its status.
        url: URL of the service.
        page: The page's beginning.
        waited: Seconds for which the proxy repeated the request.
        is_html: Whether it is for browsers, so that no server of models wrote it.
        stack: Name of the stack, for commands.
    """
    body = page.decode("utf-8", "replace")
    refusal = (refusal_named if is_html else any_refusal)(status, body, stack)
    quoted = page_words(body) if refusal.kind in _ANY_TEXT else ""
    cause = refusal.cause + (f" ({quoted})" if quoted else "")
    if refusal.is_unserved:
        cause += f"; tried for {waited:.0f} s"
    elif status >= 500:
        cause += "; it may have run, so it was not sent again"
    text = f"{url} answered HTTP {status}: {cause}. Repair: {refusal.advice}"
    return Refusal(status, refusal.kind, text, is_final=refusal.is_unserved)


def unreachable(url: str, reason: str, waited: float) -> Refusal:
    """The refusal where no connection was made in time."""
    text = (
        f"Nothing answers at {url} ({reason}); tried for {waited:.0f} s. Repair: check that the service exists and "
        "this machine reaches it; after a new deployment under another URL, start the proxy again."
    )
    return Refusal(503, "service_unreachable", text, is_final=True)


def broken_before_answer(url: str, reason: str) -> Refusal:
    """The refusal where the connection broke after the request was sent."""
    text = (
        f"The connection to {url} broke before an answer came ({reason}). The request may have run, so it was not "
        "repeated. Repair: send it again; if it happens again, see the service's log."
    )
    return Refusal(502, "connection_lost", text)


def broken_stream(reason: str) -> Refusal:
    """The refusal that ends a stream whose source broke."""
    text = (
        f"The service's stream broke before its end ({reason}); what came before this event is incomplete. Repair: "
        "send the request again; if it happens again, see the service's log."
    )
    return Refusal(502, "stream_broken", text)


def stop_refusal() -> Refusal:
    """The refusal of requests that run while the proxy is stopped."""
    return Refusal(503, "proxy_stopped", "The proxy was stopped before the answer was complete.", is_final=True)


def not_authorized(text: str) -> Refusal:
    """The refusal where no identity token could be obtained."""
    return Refusal(502, "no_identity_token", f"The proxy obtained no identity token: {text}", is_final=True)


def foreign_caller(text: str) -> Refusal:
    """The refusal of a request that did not come from a program of this user on this machine."""
    return Refusal(403, "foreign_caller", text, is_final=True)


def internal() -> Refusal:
    """The refusal where the proxy itself failed."""
    return Refusal(500, "proxy_failed", "The proxy failed; its log on standard error has the reason.", is_final=True)
