"""Texts of arguments that are options of the benchmark's own commands: they are described once, in its package."""

from bezel_base.command_line.table import value_name
from bezel_bench.commands.table import shared_table

_DEFAULT = " (default: "


def option_text(command: str, option: str, note: str = "") -> str:
    """The text of an option of `bezel bench COMMAND`, with what holds for an agent only before its default.

    A default that the command line has as a value is left out: the argument's own stands in its schema.

    Raises:
        KeyError: There is no such command or option.
    """
    keys = shared_table().arguments_of(command)[option]
    text, _, default = str(keys["help"]).partition(_DEFAULT)
    text = text.removesuffix("; repeatable") + (f"; {note}" if note else "")
    is_valued = bool(shared_table().defaults_of(command)[value_name(option, keys)])
    return text if is_valued or not default else f"{text}{_DEFAULT}{default}"
