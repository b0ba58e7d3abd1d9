"""Endpoint of a stack: where callers reach it, as whom, and by which command. Sends no request to the server.

Of an address with a name of its own it also shows whether callers get an answer there, and what to do where they do
not: it connects without a request, and reads the certificate's state. Any other stack is read from its state alone.
"""

from collections.abc import Iterator
from dataclasses import replace

from pydantic import Field

from bezel.operations.address.reach import Reachability, reach_of
from bezel.operations.arguments.model import Arguments
from bezel.operations.arguments.shared import Stack
from bezel.operations.context import Context
from bezel.operations.deployment.address import DeployedAddress
from bezel.operations.deployment.server_access import ServerAccess, access_of
from bezel.operations.endpoint.token_command import token_command
from bezel.operations.results import Result, lines
from bezel_base.terminal.blocks import Block, Line, NamedValues
from bezel_base.text.shell import shell_word


class EndpointArguments(Arguments):
    """Which stack."""

    stack: Stack


class RegionEndpoint(Result):
    """A region's own service, which an address leads to."""

    region: str
    url: str = Field(description="its own URL, which takes a token of the address's audience too")


class DomainRecord(Result):
    """A DNS record that an address needs."""

    name: str
    type: str
    data: str


class AddressEndpoint(Result):
    """An address with a name of its own."""

    domain: str
    ip: str | None = Field(description="IPv4 address of its load balancer; null if it is not recorded")
    answers: bool = Field(description="whether its name leads to it and it shows a certificate for the name")
    why: str | None = Field(description="why it does not answer; null where it does")
    repair: str | None = Field(description="what to do about that; null where it answers")
    records: tuple[DomainRecord, ...] = Field(description="records that the domain needs")


class DoorEndpoint(Result):
    """A door for callers who can only send a key."""

    url: str = Field(description="its address, which is the base URL of Anthropic's clients too")
    openai_base_url: str = Field(description="base URL of OpenAI clients")
    curl: str = Field(description="a command that lists the models by a key in the variable BEZEL_KEY")
    create_key: str = Field(description="a command that makes a key")


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
    address: AddressEndpoint | None = Field(description="address with a name of its own; null without one")
    door: DoorEndpoint | None = Field(None, description="door for callers by key; null without one")
    regions: tuple[RegionEndpoint, ...] = Field(
        description="services with their own URLs, the first region first; () for a stack of one region without an "
        "address"
    )

    def text(self) -> str:
        """The address, then the commands, each on a line of its own."""
        return f"{self._head()}\n{lines((*self._rows(), *self._records()))}{self._commands()}"

    def page(self) -> Iterator[Block]:
        """The same; a record or a command stays in one line, so that it can be copied."""
        yield Line(self._head())
        yield NamedValues(tuple(self._rows()))
        yield from (Line(f"  {name}  {record}", is_verbatim=True) for name, record in self._records())
        yield Line(self._commands().rstrip("\n"), is_verbatim=True)

    def _head(self) -> str:
        return f"{self.stack}: {self.url}" + (" (simulated server)" if self.simulated else "")

    def _rows(self) -> Iterator[tuple[str, str | None]]:
        account = f" as {self.service_account}" if self.service_account else ""
        access = "public" if self.is_public else f"identity token of audience {self.audience}{account}"
        yield "model", self.model
        yield "access", access
        yield "OpenAI base URL", self.openai_base_url
        if self.address is not None:
            state = "answers" if self.address.answers else f"does not answer: {self.address.why}"
            yield "address", f"{self.address.ip or 'an unknown IP address'}, {state}"
            yield "repair", self.address.repair
        if self.door is not None:
            yield "door for keys", f"{self.door.url}, OpenAI base URL {self.door.openai_base_url}"
        yield from ((f"service in {each.region}", each.url or "its URL is not recorded") for each in self.regions)

    def _records(self) -> Iterator[tuple[str, str]]:
        records = () if self.address is None else self.address.records
        yield from (("record", f"{each.name} {each.type} {each.data}") for each in records)

    def _commands(self) -> str:
        shown = "List the models:" if self.proxy is None else "List the models, or serve clients that send no token:"
        commands = "".join(f"  {command}\n" for command in (self.curl, self.proxy) if command is not None)
        if self.door is not None:
            commands += f"\nMake a key, and use it:\n\n  {self.door.create_key}\n  {self.door.curl}\n"
        return f"\n{shown}\n\n{commands}"


def endpoint(context: Context, arguments: EndpointArguments) -> Endpoint:
    """The endpoint of a stack.

    Raises:
        UserError: The backend has no such stack, or it has no address.
    """
    deployment = context.deployment(arguments.stack)
    access, address = access_of(deployment), deployment.address
    called, reach = access, Reachability()
    if address is not None and access.url == address.url:
        reach = reach_of(context, address, deployment.stack)
        # The printed command answers: at a service where the address does not.
        called = access_of(deployment.of_one_region(None)) if reach.why else replace(access, connect_to=reach.place)
    door = deployment.door
    is_spread = address is not None or len(deployment.urls) > 1
    return Endpoint(
        stack=arguments.stack,
        url=access.url,
        openai_base_url=f"{access.url}/v1",
        model=access.model or None,
        is_public=access.public,
        audience=None if access.public else access.audience,
        service_account=access.impersonate,
        curl=_curl(context, called),
        proxy=None if access.public else f"bezel proxy {shell_word(arguments.stack)}",
        simulated=access.simulated,
        address=None if address is None else _address(address, reach),
        door=_door(arguments.stack, door.uri.rstrip("/")) if door is not None and door.uri else None,
        regions=tuple(RegionEndpoint(region=region, url=url) for region, url in deployment.urls.items() if is_spread),
    )


def _door(stack: str, url: str) -> DoorEndpoint:
    return DoorEndpoint(
        url=url,
        openai_base_url=f"{url}/v1",
        curl=f'curl -H "Authorization: Bearer $BEZEL_KEY" {shell_word(url)}/v1/models',
        create_key=f"bezel keys create {shell_word(stack)}",
    )


def _curl(context: Context, access: ServerAccess) -> str:
    """The command that lists the models, in the shell where it is printed."""
    place, options = access.connect_to, ""
    if place is not None:
        options = f" --connect-to {shell_word(f'{place.domain}:443:{place.host}:{place.port}')}"
        options += f" --cacert {shell_word(place.authority)}" if place.authority else ""
    if not access.public:
        options += f' -H "Authorization: Bearer $({token_command(access, context.environ, context.folder)})"'
    return f"curl{options} {shell_word(access.url)}/v1/models"


def _address(address: DeployedAddress, reach: Reachability) -> AddressEndpoint:
    records = (DomainRecord(name=each.name, type=each.type, data=each.data) for each in address.records)
    return AddressEndpoint(
        domain=address.domain,
        ip=address.ip or None,
        answers=not reach.why,
        why=reach.why or None,
        repair=reach.repair or None,
        records=tuple(records),
    )
