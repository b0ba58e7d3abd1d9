"""Reports of calls of Google's client libraries, for the programs beside this module.

Prints one JSON object a line: the client with its version, the call, its outcome. Leaves out what is called.
"""

import json
import os
import re
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

from google.api_core.client_options import ClientOptions
from google.api_core.exceptions import (
    BadRequest,
    Conflict,
    Forbidden,
    GoogleAPICallError,
    NotFound,
    PreconditionFailed,
    TooManyRequests,
    Unauthorized,
)

PROJECT = os.environ["GOOGLE_CLOUD_PROJECT"]
PARENT = f"projects/{PROJECT}"
REGION = "us-east4"
# Canonical status -> HTTP status, and the class that a client raises for it over REST.
STATUSES = {
    "INVALID_ARGUMENT": (400, BadRequest),
    "FAILED_PRECONDITION": (400, BadRequest),
    "UNAUTHENTICATED": (401, Unauthorized),
    "PERMISSION_DENIED": (403, Forbidden),
    "NOT_FOUND": (404, NotFound),
    "ALREADY_EXISTS": (409, Conflict),
    "ABORTED": (409, Conflict),
    "RESOURCE_EXHAUSTED": (429, TooManyRequests),
    # Of Compute Engine, for a stale fingerprint: an HTTP status without a canonical one.
    "CONDITION_NOT_MET": (412, PreconditionFailed),
}


def base(api: str) -> str:
    """The address of an API without its version, from the variables of `bezel local env`.

    Args:
        api: The API as the variables spell it, e.g. "CLOUD_RUN_V2".
    """
    return re.sub(r"(/compute)?/(v\d\w*/)?$", "", os.environ[f"GOOGLE_{api}_CUSTOM_ENDPOINT"])


def options(api: str) -> ClientOptions:
    """The one change to a client: the address of an API."""
    return ClientOptions(api_endpoint=base(api))


def message(error: Exception) -> str:
    """localcloud's own text of a refusal: without the request's address, which differs from run to run."""
    return re.sub(
        r"^.*?(localcloud does not serve .*?)( \(| Of this API|\". Details|$).*", r"\1", str(error), flags=re.DOTALL
    )


class Report:
    """The calls of one client.

    Args:
        package: The package on PyPI.
    """

    def __init__(self, package: str) -> None:
        self._client = f"{package} {version(package)}"

    def call(self, name: str, action: Callable[[], Any], check: Callable[[Any], Any] = lambda _: True) -> Any:
        """Call and report; the result, or None where there is none.

        Args:
            name: Name of the call in the report.
            action: The call.
            check: What must hold for the result.
        """
        result = None
        try:
            result = action()
            outcome, text = ("passed", "") if check(result) else ("failed", f"unexpected result: {str(result)[:300]}")
        except Exception as error:  # noqa: BLE001 - whatever a client raises is the result
            outcome = "not served" if "localcloud does not serve" in str(error) else "failed"
            text = message(error) if outcome == "not served" else f"{type(error).__name__}: {str(error)[:600]}"
        self._print(name, outcome, text)
        return result

    def raises(self, name: str, status: str, action: Callable[[], Any], reason: str = "") -> None:
        """Call and report; it passes if it raises the class of a status, with a reason in its details if one is given.

        Args:
            name: Name of the call in the report.
            status: Canonical status of the error, e.g. "NOT_FOUND".
            action: The call.
            reason: Reason of its ErrorInfo.
        """
        try:
            result = action()
            outcome, text = "failed", f"{status} expected, but it returned {str(result)[:300]}"
        except Exception as error:  # noqa: BLE001 - whatever a client raises is the result
            code, kind = STATUSES[status]
            body = error.response.json()["error"] if isinstance(error, GoogleAPICallError) else {}
            actual = (type(error), error.code, body.get("status", status)) if body else None
            right = actual == (kind, code, status) and (not reason or error.reason == reason)
            outcome, text = "passed" if right else "failed", "" if right else f"{type(error).__name__}: {error}"[:600]
        self._print(name, outcome, text)

    def _print(self, name: str, outcome: str, text: str) -> None:
        print(json.dumps({"client": self._client, "call": name, "outcome": outcome, "text": text}), flush=True)
