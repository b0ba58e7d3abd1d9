"""`AddressCheck`: resource that asks a deployed service at its address, once callers can connect to it.

It depends on the address, and runs again when a revision behind it has changed. A certificate is issued minutes to
hours after the first deploy, and a domain may move to the address later: until then there is nothing to judge, which is
said, and fails nothing. Where callers can connect, the update fails unless the server answers there with the identity
and the audience of the address, or lets anyone in whom it should refuse.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pulumi

from bezel_base.errors import Problem
from bezel_components.base.check_resource import CheckResource
from bezel_components.base.dynamic import Progress, own_urn
from bezel_smoke.base import SmokeError, SmokeProvider

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import httpx

    from bezel.rest.connect_to import ConnectTo
    from bezel_smoke.poller import CheckFailedError, Poller

TOKEN = "pulumi-python:dynamic/smoke:AddressCheck"  # noqa: S105 - a type token
_PATH = "/v1/models"


@dataclass(frozen=True)
class AddressCheckArgs:
    """Arguments of `AddressCheck`.

    Attributes:
        url: The address, `https://DOMAIN`, which is the audience of the identity token too.
        ip: IPv4 address of its load balancer.
        revisions: Revisions behind it; others run the check again.
        served_model: The served id.
        public: Whether anybody may call it.
        impersonate: E-mail of a service account to call as; None for the caller's own identity.
        deadline_seconds: Time limit.
    """

    url: pulumi.Input[str]
    ip: pulumi.Input[str]
    revisions: "Sequence[pulumi.Input[str]]"
    served_model: pulumi.Input[str]
    public: pulumi.Input[bool] = False
    impersonate: pulumi.Input[str] | None = None
    deadline_seconds: pulumi.Input[float] = 300


class AddressCheckProvider(SmokeProvider):
    """Provider that connects to the address, and asks the server there."""

    kind = "address"
    required = ("url", "served_model")
    settings = tuple(AddressCheckArgs.__dataclass_fields__)

    def run(self, props: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """See `SmokeProvider.run`: the output is `verdict`: `ok`, `judged` and `detail`."""
        # Late, as in the other checks: the program only declares the resource, in every preview.
        from bezel.diagnosis.address_reach import place_of

        place, why = place_of(urlsplit(str(props["url"])).hostname or "", str(props.get("ip") or ""))
        return {"verdict": judge_address(props, place, why, progress)}


def judge_address(
    props: "Mapping[str, Any]", place: "ConnectTo", why: str, progress: "Callable[[str], None]"
) -> dict[str, Any]:
    """The verdict on an address: `ok`, `judged` and `detail`.

    Args:
        props: Properties of an `AddressCheck`.
        place: Where to connect.
        why: Why no client can connect there, "" where that is not known yet.
        progress: Called with messages of progress.

    Raises:
        SmokeError: Clients can connect, and the server does not answer as it should.
    """
    from bezel.diagnosis.address_reach import handshake_problem
    from bezel.diagnosis.client import Server
    from bezel.rest import Credentials
    from bezel_smoke.poller import CheckFailedError, Poller

    progress(f"connecting to {place.domain}")
    if why := why or handshake_problem(place):
        return {"ok": True, "judged": False, "detail": why}
    credentials = None if props.get("public") else Credentials(props.get("impersonate"))
    with Server(str(props["url"]), credentials, connect_to=place) as server:
        poller = Poller(server, str(props["served_model"]), float(props["deadline_seconds"]), show=progress)
        try:
            detail = _ask(poller, public=bool(props.get("public")))
        except CheckFailedError as failure:
            raise SmokeError(_problem(place.domain, failure)) from None
    return {"ok": True, "judged": True, "detail": detail}


def _ask(poller: "Poller", *, public: bool) -> str:
    """Ask for the models with the caller's identity, and without one."""
    from bezel.diagnosis.client import error_text, json_object
    from bezel_smoke.poller import CheckFailedError

    def attempt() -> "httpx.Response | str":
        # A new balancer, and a new audience of a service, take minutes until they count everywhere.
        response = poller.send("GET", _PATH)
        return response if isinstance(response, str) or response.status_code == 200 else error_text(response)

    listed = json_object(poller.until("models", f"GET {_PATH}", attempt))
    entries = listed.get("data") if isinstance(listed, dict) else None
    served = [str(each.get("id")) for each in entries if isinstance(each, dict)] if isinstance(entries, list) else []
    if poller.model not in served:
        raise CheckFailedError("models", f"{_PATH} lists {served or 'nothing'}, not {poller.model!r}")
    if public:
        return f"{poller.model} is served there"
    refused = frozenset({401, 403})
    response = poller.response("refusal", "GET", _PATH, anonymous=True, statuses=refused | {200})
    if response.status_code not in refused:
        raise CheckFailedError("refusal", f"GET {_PATH} without a token got HTTP 200: anyone can use the address")
    return f"{poller.model} is served there, and a caller without a token is refused"


class AddressCheck(CheckResource, module="smoke", name="AddressCheck"):
    """The check of an address.

    Attributes:
        verdict: `ok`, `judged` and `detail`; not judged while no client can connect to the address.
    """

    verdict: pulumi.Output[dict[str, Any]]

    def __init__(self, name: str, args: AddressCheckArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {**vars(args), "urn": own_urn(name, TOKEN, opts), "verdict": None}
        super().__init__(AddressCheckProvider(), name, props, opts)


def _problem(domain: str, failure: "CheckFailedError") -> Problem:
    repair = (
        "`bezel status` shows each region behind it, `bezel endpoint` the audience that each service has to accept; "
        "then run the same command again."
    )
    return Problem(f"address {domain}", None, f"the {failure.check} check fails: {failure.what}.", repair)
