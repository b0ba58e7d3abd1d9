"""Errors of REST calls, with texts for the user that hold no credential."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bezel_base.errors import Problem, UserError
from bezel_base.json_documents import read_json
from bezel_base.text.redaction import redact
from bezel_base.text.shell import shell_word

# As Google says that an API is off, with the address that enables it, e.g. .../apis/api/run.googleapis.com/overview?...
_DISABLED = re.compile(r"^.* has not been used in project (?P<project>\S+) before or it is disabled", re.DOTALL)
_SERVICE = re.compile(r"/apis/(?:api|library)/([a-z][a-z0-9-]*\.googleapis\.com)")


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
        is_disabled: Whether the project has not enabled the API.
        because: Why, for notes: the server's text; of an API that is not enabled, the command that enables it as well.
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
        where = f"{method} {url.split('?', 1)[0]}".strip() or "request"
        text = f"{where}: {status} {reason}".rstrip() + f": {self.message}"
        disabled = _disabled_api(status, message, self.details)
        self.is_disabled = disabled is not None
        if disabled is None:
            self.because = self.message or str(status)
            super().__init__(text)
        else:
            cause, service, command = disabled
            self.because = f"{cause}: `{command}`"
            repair = f"`{command}`, then the same command again after some minutes."
            super().__init__(Problem(service, None, f"{cause}, so {where} was refused ({status}).", repair))

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


def _disabled_api(status: int, message: str, details: Sequence[Mapping[str, Any]]) -> tuple[str, str, str] | None:
    """What Google says of an API that is not enabled, its name, and the command that enables it.

    None for any other refusal, and for one that does not name the API.
    """
    named = _DISABLED.search(message)
    if status != 403 or named is None:
        return None
    refusal: Any = next((each.get("metadata") for each in details if each.get("reason") == "SERVICE_DISABLED"), None)
    metadata = refusal if isinstance(refusal, dict) else {}
    address = _SERVICE.search(message)
    service = str(metadata.get("service") or (address[1] if address else ""))
    if not service:
        return None
    project = str(metadata.get("consumer") or named["project"]).removeprefix("projects/")
    return redact(named[0]), service, f"gcloud services enable {shell_word(service)} --project={shell_word(project)}"
