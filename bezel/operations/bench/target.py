"""Server that a benchmark may load: that of a stack, or one on this machine's loopback. Never anybody else's.

A load is thousands of requests. An agent that could choose any address could flood any server with them.
"""

import ipaddress
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Reach
from bezel.operations.bench.texts import option_text
from bezel.operations.context import Context
from bezel.operations.metrics.metrics import asleep
from bezel.operations.serving.request_target import choose_target
from bezel_base.errors import NOT_SET, Problem, UserError

Served = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/:@-]{0,199}$", examples=["gemma-4-12b-it"])]
"""Id of a served model; it becomes an argument of a command."""


class TargetArguments(Arguments):
    """Which server is loaded, and where the result is written."""

    stack: Annotated[str | None, Reach.INSIDE] = Field(None, max_length=100, description=option_text("run", "--stack"))
    url: Annotated[str | None, Reach.BEYOND] = Field(
        None,
        max_length=200,
        description=option_text("run", "--url", "on this machine: `bezel proxy`"),
    )
    model: Annotated[Served | None, Reach.INSIDE] = Field(None, description=option_text("run", "--model"))
    out: Annotated[str, Reach.INSIDE] = Field(
        min_length=1,
        max_length=300,
        description=option_text("run", "--out", "a new file below the project's folder, e.g. result.json"),
    )
    simulated: Annotated[bool, Reach.INSIDE] = Field(False, description=option_text("run", "--simulated"))
    # The command line has no such option: a person who names a stack there starts it.
    wake: Annotated[bool, Reach.INSIDE] = Field(False, description="may start an instance; costs money")


def options_of(context: Context, arguments: TargetArguments) -> list[str]:
    """The options of `bezel bench` that name the server.

    Raises:
        UserError: None or two are named, the address is not of the loopback, the backend has no such stack, or its
            service has no instance.
        RestError: Cloud Run could not be asked.
    """
    if (arguments.stack is None) == (arguments.url is None):
        value = NOT_SET if arguments.stack is None else "two are named"
        raise UserError(Problem("--stack", value, "a benchmark loads one server.", "name a stack, or a url."))
    model = [*(["--model", arguments.model] if arguments.model else []), *(["--simulated"] * arguments.simulated)]
    if arguments.url is not None:
        if not _is_loopback(arguments.url):
            consequence = "it is not an http address of this machine's loopback, and nothing else may be loaded."
            repair = "name a stack, or the address of `bezel proxy`."
            raise UserError(Problem("--url", arguments.url, consequence, repair))
        return ["--url", arguments.url.rstrip("/"), "--public", *model]
    stack = str(arguments.stack)
    target = choose_target(context, context.deployment(stack), wake=arguments.wake)
    instances = target.instances
    if target.notes:
        # The load goes to the address, which may lead to any region.
        consequence = (
            f"an instance is known to run in {target.deployment.region} only, and its address leads to others."
        )
        repair = "set wake to start one there, or name the url of `bezel proxy STACK --region REGION`."
        raise UserError(Problem("STACK", stack, consequence, repair))
    if not (instances.is_awake or arguments.wake):
        raise UserError(Problem("STACK", stack, f"{asleep(instances)}.", "set wake to start one."))
    return ["--stack", stack, *model]


def _is_loopback(url: str) -> bool:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        plain = parts.scheme == "http" and port != 0 and not (parts.username or parts.password)
        bare = parts.path in {"", "/"} and not parts.query and not parts.fragment
        return plain and bare and url.isascii() and (host == "localhost" or ipaddress.ip_address(host).is_loopback)
    except ValueError:
        return False
