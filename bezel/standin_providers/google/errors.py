"""Errors of Google's APIs, with the texts of the published Google provider.

The wording follows google-api-go-client (googleapi.Error) and the Terraform plugin SDK's list of one error, because
a user of the published plugin reads the same. No message holds a request, so none holds a token or a secret.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any


class ProviderError(Exception):
    """An operation that failed, with the text for the user."""


class GoogleError(ProviderError):
    """A refusal by a Google API: HTTP status, Google's reason and message."""

    def __init__(self, code: int, body: str) -> None:
        self.code = code
        try:
            error = json.loads(body).get("error", {})
        except (ValueError, AttributeError):
            error = {}
        error = error if isinstance(error, Mapping) else {}
        self.status = str(error.get("status", ""))
        self.message = str(error.get("message", ""))
        super().__init__(_text(code, error, body))


class ExistsError(ProviderError):
    """A create that Google refuses because a resource of that name exists (409); nothing was created."""


class GoneError(ProviderError):
    """A resource that does not exist right after it was created or changed: there is no state of it to store."""


class OperationError(ProviderError):
    """A long-running operation that ended with an error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"Error code {code}, message: {message}")


class PartlyDoneError(ProviderError):
    """An operation that failed on a resource that exists: the state keeps it, with the error.

    Attributes:
        id: The resource's id.
        properties: The outputs that the state gets.
    """

    def __init__(self, message: str, resource_id: str, properties: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.id = resource_id
        self.properties = dict(properties or {})


@contextmanager
def failing(text: str, *, unless_absent: bool = False) -> Iterator[None]:
    """Put a resource type's text before the errors of Google in the block; `unless_absent` ends the block at a 404."""
    try:
        yield
    except GoogleError as error:
        if not (unless_absent and error.code == 404):
            raise ProviderError(f"{text}: {error}") from None


def not_created(text: str, error: GoogleError) -> ProviderError:
    """Return the error of a refused create, with the text of its resource type."""
    # Cloud Storage returns no status; elsewhere 409 also means a concurrent change (ABORTED).
    exists = error.code == 409 and error.status in ("", "ALREADY_EXISTS")
    return (ExistsError if exists else ProviderError)(text)


def one_error(text: str) -> str:
    """Return the text as a list of one error, as the plugin SDK prints it."""
    return f"1 error occurred:\n\t* {text}\n\n"


def _text(code: int, error: Mapping[str, Any], body: str) -> str:
    message = str(error.get("message", ""))
    if not message:
        return f"googleapi: got HTTP response code {code} with body: {body[:500]}"
    text = f"googleapi: Error {code}: {message}"
    if details := error.get("details"):
        text += "\nDetails:\n" + json.dumps(details, indent=2, sort_keys=True)
    reasons = [item for item in error.get("errors", []) if isinstance(item, Mapping)]
    if len(reasons) == 1 and reasons[0].get("message") == message:
        return f"{text}, {reasons[0].get('reason', '')}"
    if reasons:
        text += "\nMore details:\n"
        text += "".join(f"Reason: {item.get('reason', '')}, Message: {item.get('message', '')}\n" for item in reasons)
    return text
