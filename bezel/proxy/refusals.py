"""Errors that the proxy sends its clients: OpenAI's JSON shape, with what happened and the repair.

Owns the texts, and the reading of the platform's own error pages. The server's answers, which are JSON, are passed on
as they are.
"""

import json
import re
from dataclasses import dataclass
from typing import Final

from starlette.types import Send

from bezel_base.front.refusals import page_words
from bezel_base.text.redaction import redact

PAGE: Final = 64 * 1024
"""Bytes of an error page that are read at most."""

# Cloud Run's front, where it has no instance for a request: the request reached no server.
_NO_INSTANCE = re.compile(
    rb"Rate exceeded|no available instance|not available yet|failed the readiness check|takes no more requests"
)
_BROKEN = re.compile(rb"upstream connect error|malformed")
_NO_INSTANCE_STATUS = {429, 503}


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


def has_no_instance(status: int, page: bytes) -> bool:
    """Whether the platform responded that no instance could take the request."""
    return status in _NO_INSTANCE_STATUS and bool(_NO_INSTANCE.search(page)) and not _BROKEN.search(page)


def of_page(status: int, url: str, page: bytes, waited: float) -> Refusal:
    """The refusal for an error page of the platform.

    Args:
        status: Its status.
        url: URL of the service.
        page: The page's beginning.
        waited: Seconds for which the proxy repeated the request.
    """
    if has_no_instance(status, page):
        text = (
            f"The service has no free instance, and none started within {waited:.0f} s. Repair: try again later; see "
            "the service's log for why no instance starts, and `scaling` in the stack file for how many may run."
        )
        return Refusal(status, "no_instance", text, is_final=True)
    kind = _PAGES.get(status, "platform_error")
    return Refusal(status, kind, _TEXTS[kind].format(status=status, url=url, page=_words(page)))


_PAGES = {
    401: "identity_refused",
    403: "not_allowed",
    404: "no_service",
    413: "request_too_large",
    503: "instance_lost",
    504: "too_slow",
}
_TEXTS = {
    "identity_refused": "The service at {url} refused the identity token. Repair: send the request again; the token is "
    "for this URL, so start the proxy again if the service was replaced; if this machine's clock is wrong, set it.",
    "not_allowed": "The identity of these credentials may not call the service at {url}. Repair: grant it "
    "roles/run.invoker on the service.",
    "no_service": "No service serves this path at {url}: the service was destroyed, or accepts internal requests only. "
    "Repair: deploy the stack, then start the proxy again.",
    "request_too_large": "The request is larger than the platform accepts (32 MiB). Repair: send less.",
    "instance_lost": "The service's instance ended, or broke the connection, before it answered. The request may have "
    "run, so it was not repeated. Repair: send it again; if it happens again, see the service's log.",
    "too_slow": "The request reached the service's time limit before the first byte of an answer. Repair: ask for "
    "fewer tokens, or raise the service's timeout in the stack file.",
    "platform_error": "The platform in front of the service at {url} responded with HTTP {status}: {page}. Repair: "
    "send the request again; if it happens again, see the service's log.",
}


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


def _words(page: bytes) -> str:
    """The text of a page in one line."""
    return page_words(page.decode("utf-8", "replace")) or "an empty page"
