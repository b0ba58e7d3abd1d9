"""`bezel proxy`: a local OpenAI-compatible endpoint that adds the identity token of a deployed service."""

import argparse
import asyncio
import dataclasses
import logging
import os
import time
from typing import TYPE_CHECKING, Literal

from bezel.operations.deployment.server_access import ServerAccess
from bezel.rest import Credentials, url_for_token
from bezel_base.console import note, say
from bezel_base.errors import NOT_SET, Problem, WrongValueError
from bezel_base.text.shell import shell_word

if TYPE_CHECKING:
    from bezel.engine.project.project import Project


def run(project: "Project", options: argparse.Namespace) -> Literal[0]:
    """Serve until Ctrl-C.

    Raises:
        UserError: The stack has no server, no identity token can be obtained, or the port is taken.
    """
    access = _access(project, options)
    url_for_token(access.url, "the service's url")
    credentials = None if access.public else Credentials(access.impersonate)
    if credentials is not None:
        credentials.identity_token(access.audience)  # a mistake is reported now, and not to the first client
    asyncio.run(_serve(access, credentials, options))
    return 0


async def _serve(access: ServerAccess, credentials: Credentials | None, options: argparse.Namespace) -> None:
    # Late: half a second that a refused command need not wait for.
    from bezel.proxy.app import ProxyApp
    from bezel.proxy.identity import IdentityToken
    from bezel.proxy.server import listeners, serve
    from bezel.proxy.upstream import Upstream
    from bezel_base.loopback.listeners import listen_error

    # Its warnings of broken connections would repeat what the access lines say.
    logging.getLogger("uvicorn").disabled = logging.getLogger("uvicorn.error").disabled = True
    token = None if credentials is None else IdentityToken(credentials, access.audience)
    try:
        sockets = listeners(options.port)
    except OSError as error:
        raise listen_error(error, options.port) from None
    port = sockets[0].getsockname()[1]

    def ready() -> None:
        base = f"http://127.0.0.1:{port}/v1"
        say(f"export OPENAI_BASE_URL={shell_word(base)}")
        say("export OPENAI_API_KEY=unused")
        kind = " (a simulated server)" if access.simulated else ""
        note(f"passes requests on to {access.url}{kind}; Ctrl-C ends it")

    stack = options.stack or "STACK"
    place = access.connect_to
    async with Upstream(access.url, token, wait_seconds=options.wait, stack=stack, connect_to=place) as upstream:
        await serve(ProxyApp(upstream, _access_line), sockets, ready)
    note("the proxy has ended")


def _access_line(line: str) -> None:
    note(f"{time.strftime('%H:%M:%S')} {line}")


def _access(project: "Project", options: argparse.Namespace) -> ServerAccess:
    if bool(options.stack) == bool(options.url):
        consequence = "expected the name of a stack, or --url."
        raise WrongValueError(Problem("STACK", options.stack or NOT_SET, consequence, "give one of the two."))
    if options.url:
        url = options.url.rstrip("/").removesuffix("/v1")
        return ServerAccess(url, options.audience or url, options.public, options.impersonate)
    from bezel.operations.address.access import reachable_access
    from bezel.operations.context import Context

    with Context(project.folder, os.environ) as context:
        deployment = context.deployment(options.stack)
        access = reachable_access(context, deployment.of_one_region(options.region) if options.region else deployment)
    if access.note:
        note(access.note)
    return dataclasses.replace(
        access,
        audience=options.audience or access.audience,
        public=options.public or access.public,
        impersonate=options.impersonate or access.impersonate,
    )
