"""Errors of REST calls, with texts for the user that hold no credential."""

from collections.abc import Mapping, Sequence
from typing import Any

from bezel_base.errors import UserError
from bezel_base.json_documents import read_json
from bezel_base.text.redaction import redact


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
        details: The details of a refusal (AIP-193), e.g. of the type `google.rpc.BadRequest`; unredacted.
    """

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        method: str = "",
        url: str = "",
        details: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self.status = status
        self.reason = reason
        self.details = tuple(details)
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
            details = [each for each in error.get("details") or () if isinstance(each, dict)]
            message = str(error.get("message") or "")
            return cls(status, str(reason or ""), message, method=method, url=url, details=details)
        text = body.decode("utf-8", "replace").strip()
        return cls(status, "", text[:500] or "(empty response)", method=method, url=url)
