"""Errors of REST calls, with texts for the user that hold no credential."""

import re
from typing import Any

from bezel.errors import UserError
from bezel.json_documents import read_json

PLACEHOLDER = "[redacted]"

_PATTERNS = (
    # JSON Web Tokens (identity tokens, signed assertions): three base64url parts, the first begins with '{"'.
    re.compile(r"eyJ[\w-]{4,}\.[\w-]+(?:\.[\w-]*)?"),
    # Google's access tokens.
    re.compile(r"\bya29\.[\w.-]+"),
    re.compile(r"(?i)(?<=\bbearer )[^\s\"',;]+"),
    re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL),
    # Hugging Face tokens, which a container's own log can hold.
    re.compile(r"\bhf_[A-Za-z0-9]{16,}"),
)


def redact(text: str, *secrets: str) -> str:
    """Replaces every text in the form of a credential, and each of `secrets`, by a placeholder.

    Args:
        text: Anything that may reach a message.
        secrets: Values known to be secret; those shorter than six characters are left alone, for replacing them
            would eat ordinary words.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= 6:
            text = text.replace(secret, PLACEHOLDER)
    for pattern in _PATTERNS:
        text = pattern.sub(PLACEHOLDER, text)
    return text


class RestError(UserError):
    """Any failure of this package; its text is fit for the user."""


class AddressError(RestError, ValueError):
    """A URL that is malformed, or that no token may be sent to."""


class CredentialsError(RestError):
    """There are no usable credentials, or they cannot give the requested kind of token."""


class UnreachableError(RestError):
    """The server could not be reached, or did not respond, within the deadline."""


class ApiError(RestError):
    """The server returned an error.

    Attributes:
        status: The HTTP status.
        reason: The most specific machine-readable code of the response, e.g. `PERMISSION_DENIED`, `notFound`, or
            "" when the body has none.
        message: The server's text.
    """

    def __init__(self, status: int, reason: str, message: str, *, method: str = "", url: str = "") -> None:
        self.status = status
        self.reason = reason
        self.message = redact(message)
        # The query stays out: uploads and signed links carry credentials there.
        where = f"{method} {url.split('?', 1)[0]}".strip()
        super().__init__(f"{where or 'request'}: {status} {reason}".rstrip() + f": {self.message}")

    @classmethod
    def of(cls, status: int, body: bytes, *, method: str, url: str) -> "ApiError":
        """Reads Google's two error shapes (AIP-193, and the storage API's older one), or any text."""
        try:
            content: Any = read_json(body)
        except ValueError:
            content = None
        error = content.get("error") if isinstance(content, dict) else None
        if isinstance(error, dict):
            older = error.get("errors") or [{}]
            reason = error.get("status") or (older[0].get("reason") if isinstance(older[0], dict) else None)
            return cls(status, str(reason or ""), str(error.get("message") or ""), method=method, url=url)
        text = body.decode("utf-8", "replace").strip()
        return cls(status, "", text[:500] or "(empty response)", method=method, url=url)
