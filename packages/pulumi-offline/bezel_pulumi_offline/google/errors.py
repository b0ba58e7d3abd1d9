"""Errors of Google's APIs, with the texts of the published Google provider.

The wording follows google-api-go-client (googleapi.Error) and the Terraform plugin SDK's list of one error, because
a user of the published plugin reads the same. No message holds a request, so none holds a token or a secret.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

_BREAKS = {"EOF": "the connection breaks", "unexpected EOF": "the connection breaks"}


class ProviderError(Exception):
    """An operation that failed, with the text for the user.

    Attributes:
        advice: What the user can do, which the published provider leaves to the user; shown after the text.
    """

    def __init__(self, text: str, advice: str = "") -> None:
        super().__init__(text)
        self.advice = advice


class RequestError(ProviderError):
    """A request that failed, or an operation that it began.

    Attributes:
        code: The HTTP status of Google's refusal, otherwise 0.
    """

    code = 0


class GoogleError(RequestError):
    """A refusal by a Google API: HTTP status, Google's reason and message."""

    def __init__(self, code: int, body: str) -> None:
        try:
            error = json.loads(body).get("error", {})
        except (ValueError, AttributeError):
            error = {}
        error = error if isinstance(error, Mapping) else {}
        self.status = str(error.get("status", ""))
        self.message = str(error.get("message", ""))
        super().__init__(_text(code, error, body))
        self.code = code


class NoResponseError(RequestError):
    """A request without a response: the connection broke, or there was none. Its effect is unknown."""

    def __init__(self, method: str, url: str, how: str) -> None:
        advice = f"http://{urlsplit(url).netloc} does not answer ({_BREAKS.get(how, how)}): nothing can be deployed. "
        advice += "Is localcloud running? `make up` starts it.\n"
        super().__init__(f'{method.title()} "{url}": {how}', advice)


class ExistsError(ProviderError):
    """A create that Google refuses because a resource of that name exists (409); nothing was created."""


class PlanError(ProviderError):
    """Inputs that pass Check and whose plan is refused, in a preview as well."""


class UnreadableError(ProviderError):
    """A file of the program's that cannot be read."""


class GoneError(ProviderError):
    """A resource that does not exist right after it was created or changed: there is no state of it to store."""


class OperationError(RequestError):
    """A long-running operation that ended with an error, or whose end could not be seen."""


class PartlyDoneError(ProviderError):
    """An operation that failed on a resource that exists: the state keeps it, with the error.

    Attributes:
        id: The resource's id.
        properties: The outputs that the state gets.
    """

    def __init__(
        self, message: str, resource_id: str, properties: Mapping[str, Any] | None = None, advice: str = ""
    ) -> None:
        super().__init__(message, advice)
        self.id = resource_id
        self.properties = dict(properties or {})


@contextmanager
def failing(text: str, *, unless_absent: bool = False) -> Iterator[None]:
    """Put a resource type's text before the errors of requests in the block; `unless_absent` ends it at a 404."""
    try:
        yield
    except RequestError as error:
        if not (unless_absent and error.code == 404):
            raise prefix_error(text, error) from None


def prefix_error(text: str, error: ProviderError) -> ProviderError:
    """Return the error with a text before its own."""
    whole = (RequestError if isinstance(error, RequestError) else ProviderError)(f"{text}: {error}", error.advice)
    if isinstance(whole, RequestError) and isinstance(error, RequestError):
        whole.code = error.code
    return whole


def not_created(text: str, error: ProviderError) -> ProviderError:
    """Return the error of a create that failed, with the text of its resource type before it."""
    # Cloud Storage returns no status; elsewhere 409 also means a concurrent change (ABORTED).
    exists = isinstance(error, GoogleError) and error.code == 409 and error.status in ("", "ALREADY_EXISTS")
    whole = prefix_error(text, error) if text else error
    return ExistsError(str(whole)) if exists else whole


def timeout_text(wanted: str, seconds: float, last: str = "") -> str:
    """Return the plugin SDK's text for a wait that was too long."""
    state = f"last state: '{last}', " if last else ""
    return f"timeout while waiting for state to become '{wanted}' ({state}timeout: {go_duration(seconds)})"


def go_duration(seconds: float) -> str:
    """Return seconds as Go prints a duration, e.g. 40m0s."""
    whole = round(seconds)
    hours, minutes = whole // 3600, whole % 3600 // 60
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if whole >= 60 else "") + f"{whole % 60}s"


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
