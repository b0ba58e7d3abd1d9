"""`DoorCheck`: resource that completes a deploy only when the door of keys refuses callers without a valid key.

Everyone may send requests to a door, so that it refuses is what protects the server behind it. The check sends one
request without a key and one with a made-up key; for the second the door has to read its keys. It depends on
the door, and runs again when that has a new revision. It sends no request with a valid key: there may be none yet.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi

from bezel_base.errors import Problem
from bezel_components.base.check_resource import CheckResource
from bezel_components.base.dynamic import Progress, own_urn
from bezel_door.key_file import create_key_text
from bezel_smoke.base import SmokeError, SmokeProvider

if TYPE_CHECKING:
    from collections.abc import Mapping

    import httpx

    from bezel_smoke.poller import CheckFailedError, Poller

TOKEN = "pulumi-python:dynamic/smoke:DoorCheck"  # noqa: S105 - a type token
_PATH = "/v1/models"


@dataclass(frozen=True)
class DoorCheckArgs:
    """Arguments of `DoorCheck`.

    Attributes:
        service: `projects/P/locations/L/services/S` of the door, for reading the cause of a failure.
        url: Its address.
        revision: Its newest revision; another one runs the check again.
        deadline_seconds: Time limit.
    """

    service: pulumi.Input[str]
    url: pulumi.Input[str]
    revision: pulumi.Input[str]
    deadline_seconds: pulumi.Input[float] = 300


class DoorCheckProvider(SmokeProvider):
    """Provider that asks the door without a key and with a wrong one."""

    kind = "door"
    required = ("service", "url")
    settings = tuple(DoorCheckArgs.__dataclass_fields__)

    def run(self, props: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """See `SmokeProvider.run`: the output is `verdict`: `ok` and `detail`."""
        # Late, as in the other checks: the program only declares the resource, in every preview.
        from bezel_smoke.poller import CheckFailedError, polling

        try:
            with polling({**props, "public": True, "served_model": ""}, progress) as poller:
                return {"verdict": {"ok": True, "detail": judge_door(poller)}}
        except CheckFailedError as failure:
            raise SmokeError(_problem(props, failure)) from None


def judge_door(poller: "Poller") -> str:
    """Ask a door without a key and with a key that it has not; returns what it does.

    Raises:
        CheckFailedError: It admits a caller whom it should refuse, or does not answer in time.
    """
    _expect_refusal(poller, "a caller without a key", "")
    _expect_refusal(poller, "a caller with a wrong key", create_key_text())
    return "a caller without a key and one with a wrong key are refused"


def _expect_refusal(poller: "Poller", caller: str, key: str) -> None:
    from bezel.diagnosis.client import error_text
    from bezel_smoke.poller import CheckFailedError

    def attempt() -> "httpx.Response | str":
        # The address of a new service takes some seconds until it is known everywhere.
        response = poller.send("GET", _PATH, anonymous=not key, key=key)
        if isinstance(response, str) or response.status_code == 401 or response.is_success:
            return response
        return error_text(response)

    response = poller.until("refusal", f"GET {_PATH} by {caller}", attempt)
    if response.status_code != 401:
        what = f"GET {_PATH} by {caller} got HTTP {response.status_code}: anyone can use the server through the door"
        raise CheckFailedError("refusal", what, "run `bezel destroy STACK` or set `bezel:access.keys` to false now.")


class DoorCheck(CheckResource, module="smoke", name="DoorCheck"):
    """The check of a door.

    Attributes:
        verdict: `ok` and `detail`.
    """

    verdict: pulumi.Output[dict[str, Any]]

    def __init__(self, name: str, args: DoorCheckArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {**vars(args), "urn": own_urn(name, TOKEN, opts), "verdict": None}
        super().__init__(DoorCheckProvider(), name, props, opts)


def _problem(props: "Mapping[str, Any]", failure: "CheckFailedError") -> Problem:
    from bezel.diagnosis.diagnosis import explain
    from bezel.diagnosis.platform import report
    from bezel.rest import GoogleClient

    service, what = str(props["service"]), f"the {failure.check} check fails: {failure.what}"
    if failure.repair is None:
        with GoogleClient(timeout_seconds=10, deadline_seconds=20) as google:
            return explain(report(google, service, errors=(failure.what,)), service, what, repeat_errors=False)
    return Problem(f"door {service.rpartition('/')[2]}", None, what, failure.repair)
