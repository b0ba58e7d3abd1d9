"""Target of a benchmark, from its options: a server named by a URL or by a stack's outputs.

Owns the authorisation of requests (none, or an identity token that is renewed). Leaves out the load.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bezel.errors import UserError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from bezel.bench.load.plan import Target, TokenSource
    from bezel.bench.server.http_probe import Ask
    from bezel.pulumi_engine.project import Project

# Credentials return no token that expires within 300 s; a request a minute later leaves them time to renew it.
_TOKEN_SECONDS = 360.0
_OUTPUT_SECONDS = 120.0


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


def target_arguments(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """The options that name the server; `required` where nothing else can name it."""
    place = parser.add_argument_group("the server")
    which = place.add_mutually_exclusive_group(required=required)
    which.add_argument("--url", help="its address, without the path: http://127.0.0.1:8000")
    which.add_argument("--stack", metavar="NAME", help="what this stack deployed, by its outputs")
    place.add_argument("--model", metavar="ID", help="the served id (default: the stack's, or the first one served)")
    place.add_argument("--endpoint", choices=("chat", "completions"), default="chat", help="(default: chat)")
    place.add_argument("--public", action="store_true", help="anybody may ask: send no identity token")
    place.add_argument("--impersonate", metavar="EMAIL", help="service account whose identity token is sent")
    place.add_argument("--audience", default="", metavar="URL", help="of the identity token (default: the address)")
    place.add_argument("--ca-file", default="", metavar="PEM", help="authority of the server's certificate")
    place.add_argument("--simulated", action="store_true", help="mark the figures as those of a simulated server")
    told = parser.add_argument_group(
        "for the record, the roofline and the cost (default: the stack's plan, or unknown)"
    )
    told.add_argument("--title", default="", help="of the result")
    told.add_argument("--checkpoint", metavar="ID", help="of the catalogue: `bezel catalog show models`")
    told.add_argument("--accelerator", metavar="ID", help="of the catalogue, e.g. nvidia-l4 or v6e-4")
    told.add_argument("--chips", type=int, metavar="N", help="of one instance")
    told.add_argument("--instances", type=int, metavar="N", help="that answer behind the address")
    told.add_argument("--concurrency", type=int, metavar="N", help="requests that the platform lets into each at once")
    told.add_argument("--region", help="or zone")
    told.add_argument("--usd-per-hour", type=float, metavar="USD", help="of all instances together")


def reach(project: Project, options: argparse.Namespace) -> TargetConnection:
    """The server that the options name.

    Raises:
        UserError: There is none, or no credentials for it.
    """
    from bezel.bench.load.plan import Target
    from bezel.bench.load.plan_rules import target_problems
    from bezel.bench.server.http_probe import asker

    outputs = _outputs(project, options.stack) if options.stack else {}
    url = str(options.url or outputs.get("url") or "").rstrip("/")
    if not url:
        raise UserError(f"--stack {options.stack}: it has no output `url`, so nothing can be asked. Deploy it first.")
    settings = project.configuration(options.stack) if options.stack else {}
    public = options.public or bool(_section(settings, "access").get("public"))
    target = Target(
        url,
        str(options.model or outputs.get("model") or ""),
        options.endpoint,
        public,
        options.audience,
        options.ca_file,
    )
    # Without a named model, the server's list of models is requested below.
    if wrong := target_problems(replace(target, model=target.model or "any")):
        raise UserError("\n   ".join(wrong))
    impersonate = options.impersonate or _section(settings, "smoke").get("impersonate")
    headers = headers_of(target, impersonate)
    ask = asker(target, headers)
    if not target.model:
        target = replace(target, model=_served(ask, url))
    simulated = options.simulated or bool(outputs.get("simulated")) or os.environ.get("BEZEL_SIMULATED") == "1"
    return TargetConnection(target, headers, ask, simulated, outputs)


def headers_of(target: Target, impersonate: str | None = None) -> TokenSource:
    """The headers that authorise requests to a server: none, or an identity token that is renewed.

    Raises:
        UserError: No token can be obtained.
    """
    return _nothing if target.public else _identity(target, impersonate)


def renewals(headers: TokenSource) -> list[str]:
    """Notes for the result's reader: a failed renewal of the tokens, if there was one."""
    failed = getattr(headers, "failed", 0)
    return [f"the identity token could not be renewed {failed} times: look for http_401"] if failed else []


def _outputs(project: Project, stack: str) -> dict[str, Any]:
    """A stack's outputs, from the state that the engine uses in this environment."""
    import json
    import shutil
    import sys
    from pathlib import Path

    from bezel.pulumi_engine.pulumi_command import CommandError, printed

    project.stack_file(stack)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    cli = shutil.which("pulumi", path=path)
    if cli is None:
        raise UserError("there is no `pulumi` on PATH: run `make setup`, or install the Pulumi CLI.")
    command = [cli, "stack", "output", "--json", "--stack", stack]
    try:
        found = json.loads(printed(command, folder=project.folder, seconds=_OUTPUT_SECONDS))
    except CommandError as error:
        raise UserError(
            f"--stack {stack}: its outputs cannot be read, so nothing says where it answers. Deploy it first (on the "
            f'embedded cloud: `make up STACK={stack}`), and there eval "$(.venv/bin/bezel local env)" in this shell.'
            f"\n{error}"
        ) from None
    return dict(found)


def _section(settings: Mapping[str, object], name: str) -> Mapping[str, Any]:
    found = settings.get(name)
    return found if isinstance(found, dict) else {}


def _nothing() -> Mapping[str, str]:
    return {}


def _identity(target: Target, impersonate: str | None) -> TokenSource:
    from bezel.bench.client.auth_headers import Fetched, RenewedHeaders
    from bezel.rest import Credentials, RestError, guarded

    audience = target.audience.rstrip("/") or target.url

    def fetch() -> Fetched:
        return Fetched({"Authorization": f"Bearer {credentials.identity_token(audience)}"}, _TOKEN_SECONDS)

    try:
        guarded(target.url, "the server's address")
        credentials = Credentials(impersonate)
        return RenewedHeaders(fetch)
    except RestError as error:
        raise UserError(f"{error}\n   A server that anybody may ask needs no token: add --public.") from None


def _served(ask: Ask, url: str) -> str:
    """The first id that the server lists."""
    answer = ask("/v1/models", None)
    if not answer.status:
        why = answer.body.decode(errors="replace")
        raise UserError(f"nobody answers at {url} ({why}), so nothing can be measured. Start the server there first.")
    rows = answer.json().get("data")
    first = rows[0] if isinstance(rows, list) and rows else None
    name = first.get("id") if isinstance(first, dict) else None
    if not isinstance(name, str):
        raise UserError(
            f"{url}/v1/models names no model (HTTP {answer.status}). Name one with --model, or look at the address."
        )
    return name
