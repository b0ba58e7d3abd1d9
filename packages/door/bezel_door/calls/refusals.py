"""Errors of the door as the caller's library reads them: OpenAI's shape, and Anthropic's for its paths. Pure.

Owns the texts and the statuses. A server's own errors, which are JSON, pass unchanged. No text quotes what a caller
sent. Sources: OpenAI's guide to error codes and Anthropic's page on errors, read 2026-11.
"""

import json
from dataclasses import dataclass

from bezel_door.http1.heads import Headers
from bezel_door.key_file import KeyRefusal

_LONGEST_WAIT = 60  # seconds: both libraries wait so long at most and then send the request again by themselves
_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error response of the door.

    Attributes:
        status: HTTP status.
        code: Machine-readable kind, as `code` of OpenAI's errors.
        text: What happened, and the repair, as sentences.
        kind: `type` of OpenAI's errors.
        retry_after: Seconds after which the request may be sent again; None where that would change nothing.
        closes: Whether the connection ends with it: more of the request may be on its way.
        allow: Methods of the path, of a refused method.
    """

    status: int
    code: str
    text: str
    kind: str = "invalid_request_error"
    retry_after: int | None = None
    closes: bool = False
    allow: str = ""

    def body(self, *, for_anthropic: bool) -> bytes:
        """The JSON document."""
        if for_anthropic:
            kind = _ANTHROPIC.get(self.status, "api_error")
            return json.dumps({"type": "error", "error": {"type": kind, "message": self.text}}).encode()
        error = {"message": self.text, "type": self.kind, "param": None, "code": self.code}
        return json.dumps({"error": error}).encode()

    def event(self, *, for_anthropic: bool) -> bytes:
        """The document as the last event of a stream."""
        return (
            (b"event: error\n" if for_anthropic else b"") + b"data: " + self.body(for_anthropic=for_anthropic) + b"\n\n"
        )

    def headers(self) -> Headers:
        """The headers beside those of the body."""
        headers: Headers = [(b"content-type", b"application/json")]
        if self.status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        if self.allow:
            headers.append((b"allow", self.allow.encode()))
        if self.retry_after is not None:
            headers.append((b"retry-after", str(self.retry_after).encode()))
        if self.retry_after is None or self.retry_after > _LONGEST_WAIT:
            headers.append((b"x-should-retry", b"false"))  # read by both libraries
        return headers


_KEYS = {
    KeyRefusal.WRONG: (
        "invalid_api_key",
        "The key is none of this server's. Send one in the header `Authorization` after `Bearer`, or in `x-api-key`.",
    ),
    KeyRefusal.REVOKED: ("revoked_api_key", "The key was revoked. Ask the server's owner for another one."),
    KeyRefusal.EXPIRED: ("expired_api_key", "The key has expired. Ask the server's owner for another one."),
}


def wrong_key(reason: KeyRefusal) -> Refusal:
    """The refusal of a key."""
    code, text = _KEYS[reason]
    # OpenAI's own words, by which LiteLLM tells a wrong key from a wrong request.
    return Refusal(401, code, f"Incorrect API key provided. {text}")


def two_keys() -> Refusal:
    """The refusal of a request with several keys."""
    return Refusal(400, "several_keys", "The request has several keys that differ. Send one, in one header.")


def many_wrong_keys(seconds: int) -> Refusal:
    """The refusal of one more wrong key of a client that sent many."""
    text = "Too many requests with wrong keys came from this address. Correct the key; a right one is served at once."
    return Refusal(429, "too_many_wrong_keys", text, "rate_limit_error", seconds)


def malformed_request(text: str, status: int = 400) -> Refusal:
    """The refusal of a request that is not plain HTTP, or whose body cannot be read."""
    return Refusal(status, "malformed_request", text, closes=True)


def unreadable_body(text: str) -> Refusal:
    """The refusal of a body that is no JSON object."""
    return Refusal(400, "malformed_body", text)


def not_served() -> Refusal:
    """The refusal of a path that is not in the list."""
    return Refusal(404, "path_not_served", "The door does not serve this path; docs/keys.md lists those it serves.")


def wrong_method(method: str) -> Refusal:
    """The refusal of another method than the path's."""
    return Refusal(405, "method_not_allowed", f"The door accepts {method} at this path.", allow=method)


def wrong_media_type() -> Refusal:
    """The refusal of a body that is not declared as JSON."""
    return Refusal(415, "media_type", "The body must be JSON: send `Content-Type: application/json`.")


def too_large(most: int) -> Refusal:
    """The refusal of a body above the bound."""
    return Refusal(413, "request_too_large", f"The body has more than {most} bytes.", closes=True)


def too_slow() -> Refusal:
    """The refusal of a request that does not arrive."""
    return Refusal(408, "request_timeout", "The request did not arrive in time.", closes=True)


def many_bodies() -> Refusal:
    """The refusal of a body while the bodies of other requests fill the memory for them."""
    text = "The door holds as many bytes of requests as it can. Send the request again."
    return Refusal(503, "door_full", text, "server_error", 2, closes=True)


def model_not_allowed(models: tuple[str, ...]) -> Refusal:
    """The refusal of a model that the key may not ask for."""
    return Refusal(403, "model_not_allowed", f"The key may ask for these models: {', '.join(models)}.")


def limit_passed(limit: str, most: int, retry_after: int) -> Refusal:
    """The refusal of a request above a limit of its key."""
    unit = "requests" if limit == "requests_per_minute" else "tokens"
    span = "day" if limit == "tokens_per_day" else "minute"
    text = f"The key's limit of {most} {unit} a {span} is reached. Send the request again in {retry_after} s."
    return Refusal(429, "rate_limit_exceeded", text, unit, retry_after)


def no_keys() -> Refusal:
    """The refusal while the keys could not be read for too long."""
    text = "The door cannot read its keys. Send the request again; its log has the reason."
    return Refusal(503, "keys_unavailable", text, "server_error", 10)


def no_identity() -> Refusal:
    """The refusal where no identity token could be obtained."""
    text = "The door obtained no identity for the server. Send the request again; its log has the reason."
    return Refusal(502, "no_identity_token", text, "server_error", 10)


def unreachable() -> Refusal:
    """The refusal where no connection to the server was made."""
    return Refusal(503, "service_unreachable", "The server behind the door cannot be reached.", "server_error", 5)


def no_instance() -> Refusal:
    """The refusal where the platform had no instance of the server in time."""
    text = "No instance of the server took the request in time: it may be starting. Send the request again."
    return Refusal(503, "no_instance", text, "server_error", 10)


def not_admitted(status: int) -> Refusal:
    """The refusal where the platform in front of the server refused the door."""
    text = f"The platform in front of the server answered the door with HTTP {status}. The door's log has the reason."
    return Refusal(502, "service_refused", text, "server_error")


def broken_connection(*, is_stream: bool) -> Refusal:
    """The refusal where the connection to the server broke after the request was sent."""
    text = "The connection to the server broke before the answer was complete. The request may have run."
    return Refusal(502, "stream_broken" if is_stream else "connection_lost", text, "server_error")


def stopping() -> Refusal:
    """The refusal of requests that come while the door ends."""
    return Refusal(
        503, "door_stopped", "The door is being replaced. Send the request again.", "server_error", 1, closes=True
    )


def internal() -> Refusal:
    """The refusal where the door itself failed."""
    return Refusal(500, "door_failed", "The door failed; its log has the reason.", "server_error", closes=True)
