"""An operation: what the registry says of it, and the models and functions that its places name.

An operation is imported when it is called. Its arguments and its result are described by the models in its signature,
`def function(context: Context, arguments: XArguments) -> XResult`.
"""

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_type_hints

from bezel.operations.arguments.model import Arguments
from bezel.operations.context import Context
from bezel.operations.results import Result
from bezel.operations.touches import Touches
from bezel_base.command_line.exit_codes import exit_codes_of

Kind = Literal["reading", "changing", "job"]


@dataclass(frozen=True)
class Operation:
    """A row of the registry.

    Attributes:
        name: Its name, which is also that of the MCP tool, with `_` between words.
        function: `MODULE:FUNCTION` below `bezel.operations`.
        kind: `reading` changes nothing; `changing` needs a confirmed plan; `job` runs for minutes, with progress.
        help: What it does, in one line.
        command: Its words on the command line, e.g. `secret set`.
        group: Group of the help that lists the command; empty for a subcommand, which its command lists.
        needs_project: Whether its command has to be called in a Pulumi project.
        apply: Of a changing operation, `MODULE:FUNCTION` that carries out the plan which `function` returns.
        touches: What it touches; an operation without it is not served to a client that is limited to some stacks.
        exit_codes: Exit codes that its command has beside those of every command, or that mean more, with what each
            means. A code that a result or an error of the operation has stands here.
    """

    name: str
    function: str
    kind: Kind
    help: str
    command: str
    group: str = ""
    needs_project: bool = True
    apply: str = ""
    touches: Touches | None = None
    exit_codes: Mapping[int, str] = field(default_factory=dict)

    def all_exit_codes(self) -> dict[int, str]:
        """Every exit code of its command -> what it means."""
        return exit_codes_of({str(int(code)): meaning for code, meaning in self.exit_codes.items()})

    def command_line(self) -> str:
        """What a person types for it, without arguments."""
        return f"bezel {self.command}"

    def load(self) -> Callable[[Context, Any], Result]:
        """The function; of a changing operation, the one that plans."""
        return _load(self.function)

    def load_apply(self) -> Callable[[Context, Any], Result]:
        """The function that carries out a plan: `apply(context: Context, plan: Plan) -> Outcome`."""
        return _load(self.apply)

    def check_scope(self, context: Context, arguments: Arguments) -> None:
        """Check that arguments name nothing beyond the stack, for a caller that is limited to some stacks.

        Raises:
            BeyondStackError: They do.
            UserError: The stack cannot be planned.
        """
        if self.touches is not None and self.touches.check:
            _load(self.touches.check)(context, arguments)

    def arguments(self) -> type[Arguments]:
        """The model of its arguments."""
        function = self.load()
        name = list(inspect.signature(function).parameters)[1]
        model: type[Arguments] = get_type_hints(function)[name]
        return model

    def result(self) -> type[Result]:
        """The model of its result; of a changing operation, its plan."""
        model: type[Result] = get_type_hints(self.load())["return"]
        return model

    def outcome(self) -> type[Result]:
        """The model of what `apply` returns."""
        model: type[Result] = get_type_hints(self.load_apply())["return"]
        return model


def _load(place: str) -> Callable[[Context, Any], Result]:
    module, _, name = place.partition(":")
    function: Callable[[Context, Any], Result] = getattr(importlib.import_module(f"bezel.operations.{module}"), name)
    return function
