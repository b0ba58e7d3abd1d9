"""Endpoint of a stack: where callers reach it, as whom, and by which command. Asks neither the cloud nor the server."""

from collections.abc import Iterator

from pydantic import Field

from bezel.operations.arguments.model import Arguments
from bezel.operations.arguments.shared import Stack
from bezel.operations.context import Context
from bezel.operations.deployment.server_access import access_of
from bezel.operations.endpoint.token_command import token_command
from bezel.operations.results import Result, lines
from bezel_base.terminal.blocks import Line
from bezel_base.text.shell import shell_word


class EndpointArguments(Arguments):
    """Which stack."""

    stack: Stack


class Endpoint(Result):
    """Address of a stack's server, and how it is called."""

    stack: str
    url: str = Field(description="address of the server")
    openai_base_url: str = Field(description="base URL of OpenAI clients, which add their paths to it")
    model: str | None = Field(description="name under which the model is served; null if it is not recorded")
    is_public: bool = Field(description="whether anybody may call it; otherwise callers need an identity token")
    audience: str | None = Field(description="audience of the identity token; null without one")
    service_account: str | None = Field(
        description="account that the smoke check identifies itself as; null for the caller"
    )
    curl: str = Field(
        description="a command that lists the models, with a token of the cloud that the stack is on; it may start an "
        "instance, which costs money"
    )
    proxy: str | None = Field(description="a command that adds the token for clients that cannot; null without one")
    simulated: bool = Field(description="whether the last smoke check met a simulated server")

    def text(self) -> str:
        """The address, then the commands, each on a line of its own."""
        account = f" as {self.service_account}" if self.service_account else ""
        access = "public" if self.is_public else f"identity token of audience {self.audience}{account}"
        head = f"{self.stack}: {self.url}" + (" (simulated server)" if self.simulated else "")
        rows = (
            ("model", self.model),
            ("access", access),
            ("OpenAI base URL", self.openai_base_url),
        )
        shown = "List the models:" if self.proxy is None else "List the models, or serve clients that send no token:"
        commands = "".join(f"  {command}\n" for command in (self.curl, self.proxy) if command is not None)
        return f"{head}\n{lines(rows)}\n{shown}\n\n{commands}"

    def page(self) -> Iterator[Line]:
        """The same; a command stays in one line, so that it can be copied."""
        yield Line(self.text().rstrip("\n"), is_verbatim=True)


def endpoint(context: Context, arguments: EndpointArguments) -> Endpoint:
    """The endpoint of a stack.

    Raises:
        UserError: The backend has no such stack, or it has no address.
    """
    access = access_of(context.deployment(arguments.stack))
    token = token_command(access, context.environ, context.folder)
    header = "" if access.public else f' -H "Authorization: Bearer $({token})"'
    return Endpoint(
        stack=arguments.stack,
        url=access.url,
        openai_base_url=f"{access.url}/v1",
        model=access.model or None,
        is_public=access.public,
        audience=None if access.public else access.audience,
        service_account=access.impersonate,
        curl=f"curl{header} {shell_word(access.url)}/v1/models",
        proxy=None if access.public else f"bezel proxy {shell_word(arguments.stack)}",
        simulated=access.simulated,
    )
