"""Target of a benchmark, from its options: a server named by its address, or by what the targets know of it.

Owns the address, the model and the headers of requests. Leaves out the load, and how an identity is proved
(`bezel_bench.commands.targets`).
"""

import argparse
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from bezel_base.errors import Problem, UserError
from bezel_base.text.counting import format_count
from bezel_bench.commands.measure.own_headers import AUTHORIZATION, IDENTITY_BESIDE_A_KEY, own_headers
from bezel_bench.commands.targets import Targets
from bezel_bench.load.plan import Target, TokenSource
from bezel_bench.load.plan_rules import target_problems
from bezel_bench.result.no_response import NoResponse, of_refusal
from bezel_bench.server.http_probe import Ask, asker


@dataclass(frozen=True)
class TargetConnection:
    """A server that a benchmark can send requests to.

    Attributes:
        target: Address, model and endpoint.
        headers: Headers that authorise each request.
        ask: Sends single requests to it.
        simulated: Whether the server is a simulated one: then no figure describes hardware.
        outputs: The stack's outputs, {} without a stack.
    """

    target: Target
    headers: TokenSource
    ask: Ask
    simulated: bool
    outputs: Mapping[str, Any] = field(default_factory=dict)


def reach(targets: Targets, options: argparse.Namespace) -> TargetConnection:
    """The server that the options name.

    Raises:
        UserError: There is none, or no credentials for it.
    """
    deployment = targets.find(options)
    # Other clients take the address with the prefix of OpenAI's API.
    url = str(options.url or deployment.url).rstrip("/").removesuffix("/v1").rstrip("/")
    target = Target(
        url,
        str(options.model or deployment.model),
        options.endpoint,
        options.public or deployment.public,
        options.audience,
        options.ca_file or deployment.ca_file,
        deployment.at,
    )
    # Without a named model, the server's list of models is requested below.
    if wrong := target_problems(replace(target, model=target.model or "any")):
        raise UserError(*wrong)
    impersonate = options.impersonate or deployment.impersonate
    user_headers = own_headers(options.api_key_env, options.header, os.environ)
    # A server with a key of its own needs no identity, unless it is a stack's or one is asked for.
    needs_identity = bool(options.stack or options.audience or impersonate) or options.api_key_env is None
    headers = with_own(targets.identity(target, impersonate) if needs_identity else dict, user_headers)
    ask = asker(target, headers)
    if not target.model:
        target = replace(target, model=_served_model(ask, url))
    simulated = options.simulated or deployment.simulated or os.environ.get("BEZEL_SIMULATED") == "1"
    return TargetConnection(target, headers, ask, simulated, deployment.outputs)


def with_own(headers: TokenSource, user_headers: Mapping[str, str]) -> TokenSource:
    """Headers with the user's own; where these have an Authorization, the identity stands beside it."""
    if not user_headers:
        return headers
    has_key = AUTHORIZATION.lower() in {name.lower() for name in user_headers}

    def both() -> Mapping[str, str]:
        identity = dict(headers())
        if has_key and AUTHORIZATION in identity:
            identity[IDENTITY_BESIDE_A_KEY] = identity.pop(AUTHORIZATION)
        return {**identity, **user_headers}

    return _Renewed(both, headers)


class _Renewed:
    """Headers, with the count of failed renewals of the source that they come from."""

    def __init__(self, read: TokenSource, source: TokenSource) -> None:
        self._read, self._source = read, source

    def __call__(self) -> Mapping[str, str]:
        return self._read()

    @property
    def failures(self) -> int:
        """Failed renewals of the identity token."""
        return int(getattr(self._source, "failures", 0))


def renewals(headers: TokenSource) -> list[str]:
    """Notes for the result's reader: a failed renewal of the tokens, if there was one."""
    failures = getattr(headers, "failures", 0)
    return (
        [f"the identity token could not be renewed ({format_count(failures, 'times')}): look for http_401"]
        if failures
        else []
    )


def _served_model(ask: Ask, url: str) -> str:
    """The first id that the server lists."""
    response = ask("/v1/models", None)
    if no_response := response.no_response or of_refusal(response.status, response.text):
        raise UserError(_no_response_problem(url, no_response))
    match response.json().get("data"):
        case [{"id": str(name)}, *_]:
            return name
    if response.location:
        consequence = f"{url}/v1/models redirects to {response.location[:200]}, and no redirection is followed."
        repair = "give the address of the server itself; if a sign-in page is there, --header carries its credentials."
        raise UserError(Problem("--url", url, consequence, repair))
    consequence = f"{url}/v1/models names no model ({response.refusal()})."
    raise UserError(Problem("--url", url, consequence, "add --model, or correct the address: no path of an API."))


def _no_response_problem(url: str, no_response: NoResponse) -> Problem:
    """The problem of a server that gave no response; where nothing listens, with the proxy that is not used."""
    if no_response.reached:
        return Problem("--url", url, f"{no_response.reason}.", no_response.repair)
    from urllib.request import getproxies, proxy_bypass  # loads much, which a measurement does not need

    parts, repair = urlsplit(url), no_response.repair
    if parts.scheme in getproxies() and not proxy_bypass(parts.hostname or ""):
        variable = f"{parts.scheme.upper()}_PROXY"
        repair = f"{repair.rstrip('.')}; {variable} is set, but this client connects directly, without a proxy."
    return Problem("--url", url, f"no server responds there: {no_response.reason}.", repair)
