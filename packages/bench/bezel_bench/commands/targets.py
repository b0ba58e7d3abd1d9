"""Targets of a benchmark: what is known of the server that options name, and how requests to it are authorised.

`bezel-bench` knows an address and the user's own headers (`UrlTargets`). `bezel bench` also finds the server of a stack
and sends identity tokens (`bezel.cli.bench.stack_targets`).
"""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from bezel_base.errors import Problem
from bezel_bench.commands.measure.usage import OptionsError
from bezel_bench.commands.table import PROGRAM
from bezel_bench.load.plan import Endpoint, Target, TokenSource

if TYPE_CHECKING:
    from bezel_bench.result.document import Cell
    from bezel_bench.result.platform_series import PlatformSeries
    from bezel_bench.result.records import Platform, PriceBasis, ServedBy


@dataclass(frozen=True)
class Deployment:
    """A server as far as it is known without the options and without asking it.

    Attributes:
        url: Its address; "" where only the options name it.
        model: The served model's id; "" where the server is asked.
        public: Whether it accepts requests without an identity token.
        simulated: Whether it is a simulated one.
        impersonate: Service account whose identity token it accepts.
        outputs: Outputs of the stack that deployed it, {} without a stack; `url` is the address that is measured.
        ca_file: PEM file of the authority that verifies its certificate; "" is the machine's own.
        at: Where to connect, as of `Target`.
    """

    url: str = ""
    model: str = ""
    public: bool = False
    simulated: bool = False
    impersonate: str | None = None
    outputs: Mapping[str, Any] = field(default_factory=dict)
    ca_file: str = ""
    at: str = ""


@dataclass(frozen=True)
class Record:
    """What a result says of a server beside the options and the server's own report; null where it is unknown."""

    served_by: "ServedBy | None" = None
    platform: "Platform | None" = None
    price: "PriceBasis | None" = None
    checkpoint: str | None = None


class Targets(Protocol):
    """The servers that a program can measure.

    Attributes:
        program: Name of the program, as results record it.
        typed: The program as a user types it, to continue a command.
    """

    program: str
    typed: str

    def endpoint(self, options: argparse.Namespace) -> Endpoint:
        """Return the endpoint that is measured where the options name none.

        Raises:
            UserError: The server has none that can be measured.
        """

    def find(self, options: argparse.Namespace) -> Deployment:
        """Return what is known of the server that the options name.

        Raises:
            UserError: There is none.
        """

    def identity(self, target: Target, impersonate: str | None) -> TokenSource:
        """Return the headers with the identity of the caller, none where the server needs none.

        Raises:
            UserError: No identity can be had.
        """

    def record(self, options: argparse.Namespace, outputs: Mapping[str, Any]) -> Record:
        """Return what a result says of the server.

        Raises:
            UserError: The deployment of the server is wrong.
        """

    def platform_series(
        self,
        options: argparse.Namespace,
        outputs: Mapping[str, Any],
        cells: "Sequence[Cell]",
        show: Callable[[str], None],
    ) -> "Mapping[str, Sequence[PlatformSeries]]":
        """Return what the server's platform has measured over loads, by the cell's id; nothing without a platform.

        Args:
            options: The options that name the server.
            outputs: The stack's outputs.
            cells: The loads, which have just ended.
            show: Receives progress messages of a wait.
        """


class UrlTargets:
    """Servers named by their addresses, which get the user's own headers at most."""

    program = PROGRAM
    typed = PROGRAM

    def endpoint(self, options: argparse.Namespace) -> Endpoint:
        """Return the endpoint of chats: a server's address says nothing of its model."""
        del options
        return "chat"

    def find(self, options: argparse.Namespace) -> Deployment:
        """Return that nothing is known, and no identity needed."""
        del options
        return Deployment(public=True)

    def identity(self, target: Target, impersonate: str | None) -> TokenSource:
        """Return no headers."""
        del target, impersonate
        return dict

    def record(self, options: argparse.Namespace, outputs: Mapping[str, Any]) -> Record:
        """Return that nothing is known."""
        del options, outputs
        return Record()

    def platform_series(
        self,
        options: argparse.Namespace,
        outputs: Mapping[str, Any],
        cells: "Sequence[Cell]",
        show: Callable[[str], None],
    ) -> "Mapping[str, Sequence[PlatformSeries]]":
        """Return that no platform is known."""
        del options, outputs, cells, show
        return {}


def check_no_project(options: argparse.Namespace) -> None:
    """Refuse options that need a project, or credentials of Google.

    Raises:
        OptionsError: There are some; the text lists all of them.
    """
    if problems := [*_of_project(options)]:
        raise OptionsError(*problems)


def _of_project(options: argparse.Namespace) -> Iterator[Problem]:
    if stack := getattr(options, "stack", None):
        consequence = f"{PROGRAM} reads no project, so it cannot find the server of a stack."
        yield Problem("--stack", stack, consequence, "give --url, or use `bezel bench` in the stack's project.")
    for name in ("impersonate", "audience"):
        if value := getattr(options, name, None):
            consequence = f"{PROGRAM} sends no identity token of Google."
            repair = "use `bezel bench`, or give a token of your own by --api-key-env or --header."
            yield Problem(f"--{name}", value, consequence, repair)
    for text in getattr(options, "arm", ()):
        name, _, server = text.partition("=")
        if name and server and "://" not in server:
            consequence = f"without http:// it names a stack, and {PROGRAM} reads no project."
            yield Problem("--arm", text, consequence, "write NAME=URL, or use `bezel bench` in the stack's project.")
