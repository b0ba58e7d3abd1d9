"""Table of a program's commands, as TOML files describe them: read, joined, and asked for the options of a command.

Owns what every program has: `--errors` of the root, its exit codes, and the table `json`. Leaves out what the keys mean
to argparse (`bezel_base.command_line.parser`).
"""

from collections.abc import Mapping
from typing import Any

from bezel_base.command_line.parser import Parser, Spec, metavar_of

_ERRORS: Spec = {
    "choices": ["text", "json"],
    "default": "text",
    "help": "form of errors on standard error (default: text)",
}
_TABLES: Spec = {"json": {"arguments": {"--json": {"action": "store_true", "help": "print JSON"}}}}


class CommandTable:
    """The commands of a program.

    Attributes:
        spec: The command of the program itself, with its `commands` and the `tables` of options.
    """

    def __init__(self, spec: Spec) -> None:
        """Take the content of the program's TOML files.

        Args:
            spec: The program's command; it gets the option `--errors` and the tables that every program has.

        Raises:
            ValueError: It has a table or an option of its own with such a name.
        """
        arguments, tables = spec.get("arguments", {}), spec.get("tables", {})
        self.spec: Spec = {
            "exit_codes": {},
            **spec,
            "arguments": merge_tables({"--errors": _ERRORS}, arguments),
            "tables": merge_tables(_TABLES, tables),
        }

    def parser(self, program: str) -> Parser:
        """The parser of the program of this name."""
        return Parser(spec=self.spec, tables=self.spec["tables"], groups=self.spec.get("groups", {}), prog=program)

    def arguments_of(self, *command: str) -> dict[str, Spec]:
        """The arguments of a command, given by its words, by their names on the command line.

        Raises:
            KeyError: There is no such command.
        """
        spec = self.spec
        for word in command:
            spec = spec["commands"][word]
        return self.arguments(spec)

    def arguments(self, spec: Spec) -> dict[str, Spec]:
        """The arguments of a command, given by its part of the table, by their names on the command line."""
        tables = (self.spec["tables"][name]["arguments"] for name in spec.get("options", ()))
        return {name: keys for arguments in (spec.get("arguments", {}), *tables) for name, keys in arguments.items()}

    def defaults_of(self, *command: str) -> dict[str, Any]:
        """Each default of the arguments of a command, given by its words, by the name of the argument's value."""
        return {
            value_name(name, keys): keys.get("default", False if keys.get("action") == "store_true" else None)
            for name, keys in self.arguments_of(*command).items()
        }


def merge_tables(first: Spec, second: Spec) -> dict[str, Any]:
    """Two parts of tables as one, in this order.

    Raises:
        ValueError: Both have a value for the same key.
    """
    result = dict(first)
    for key, value in second.items():
        if key not in result:
            result[key] = value
        elif isinstance(result[key], Mapping) and isinstance(value, Mapping):
            result[key] = merge_tables(result[key], value)
        else:
            raise ValueError(f"two tables of commands set {key!r}")
    return result


def value_name(name: str, keys: Spec) -> str:
    """The name of an argument's value among the parsed options."""
    return str(keys.get("dest", name.lstrip("-").replace("-", "_")))


def shown_name(name: str, keys: Spec) -> str:
    """The name of an argument in texts: `--zone`, or as the usage line has it, e.g. STACK."""
    return name if name.startswith("-") else metavar_of(name, keys)
