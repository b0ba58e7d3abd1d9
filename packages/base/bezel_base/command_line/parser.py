"""Argument parser of a program, built from a table of its commands: filled when its command is called.

Its errors name the mistake, a similar option and the command for the help. Owns how the keys of a table become
arguments and groups of the help; leaves out what a command does.

A command names the function that runs it and what else the program reads of it (`CARRIED`); its subcommands inherit
these. `options` names tables of options; of those in `require` one exclusive option must be given. A key of an argument
is a parameter of `argparse.add_argument`; `exclusive` marks the options of a table that exclude each other. A command
with `dashed_values` takes a word that begins with dashes as a value unless it is one of its options. A command with
`alone` may be called without one of its subcommands, and its options may stand before or after theirs. A command with
`exit_codes`, code -> meaning, shows them at the end of its help, with those that every command has. `other_words`, word
of other programs -> command, are named where such a word is typed. The action `version` takes a `distribution`. A
The action `print` takes a `call`, MODULE:FUNCTION, which makes a text of the program's name and the value. A
command with `settings` names a function, MODULE:FUNCTION, that adds words from elsewhere to its own: it gets the tables
of its arguments and the words.
"""

import argparse
import importlib
import math
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from bezel_base.command_line.exit_codes import format_exit_codes
from bezel_base.errors import NOT_SHOWN, WrongValueError, format_value

# argparse looks for a translation of each of its words in the folders of the system, anew for each parser, of which a
# program has dozens: most of the time that a command line takes. Its words have none.
argparse._ = str  # type: ignore[attr-defined]

Spec = Mapping[str, Any]
_HELP = "help"
_STEP, _DEEPEST = 2, 4  # indents of what continues a row of the help, and of a row whose parts are long
_COMMANDS = ("command", "action")  # of a program in groups, of a command
CARRIED = ("run", "call", "needs_project", "operation")
"""Keys of a command that the parsed options carry: what runs it, with what."""


class UsageError(WrongValueError):
    """A command line that is invalid. Shown in two lines: the usage of a command with forty options would hide it."""

    def __str__(self) -> str:
        return f"{self.title}: {self.problems[0]}\nAll options: {self.title} --help"


class _ShowVersion(argparse.Action):
    """Print the version of the program's distribution, and end."""

    def __init__(self, *, distribution: str, **kwargs: Any) -> None:
        super().__init__(nargs=0, **kwargs | {"dest": argparse.SUPPRESS})
        self._distribution = distribution

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from importlib.metadata import version  # late: it takes a fifth of the time of a help

        sys.stdout.write(f"{parser.prog} {version(self._distribution)}\n")
        parser.exit()


class _Print(argparse.Action):
    """Print the text that a function makes of the value, and end."""

    def __init__(self, *, call: str, **kwargs: Any) -> None:
        super().__init__(**kwargs | {"dest": argparse.SUPPRESS})
        self._call = call

    def __call__(self, parser: argparse.ArgumentParser, _: object, value: Any, *__: object) -> NoReturn:
        module, _, function = self._call.partition(":")
        sys.stdout.write(getattr(importlib.import_module(module), function)(parser.prog, value))
        parser.exit()


class Parser(argparse.ArgumentParser):
    """Parser of a command and of its subcommands."""

    def __init__(
        self,
        *,
        spec: Spec,
        tables: Mapping[str, Spec],
        groups: Mapping[str, str] | None = None,
        shared: frozenset[str] = frozenset(),
        **kwargs: Any,
    ) -> None:
        """Take the command's part of the table of commands, and all tables of options.

        Args:
            spec: The command's part of the table.
            tables: All tables of options.
            groups: Titles of the groups of its subcommands in the help.
            shared: Options of the command above, which may stand before or after this command.
            kwargs: Arguments of `ArgumentParser`.
        """
        # No abbreviations: one that is unique today becomes ambiguous when a release adds an option.
        super().__init__(
            description=spec.get("description", spec["help"]),
            epilog=format_exit_codes(spec["exit_codes"]) if "exit_codes" in spec else None,
            allow_abbrev=False,
            **kwargs,
        )
        self.register("action", "version", _ShowVersion)
        self.register("action", "print", _Print)
        for name, parse in {
            "int": _integer,
            "float": _number,
            "positive": _positive,
            "port": _port,
            "path": Path,
        }.items():
            self.register("type", name, parse)
        self.set_defaults(parser=self, **{key: spec[key] for key in CARRIED if key in spec})
        self.set_defaults(**spec.get("defaults", {}))
        self._spec, self._tables, self._groups, self._shared = spec, tables, groups or {}, shared
        self._filled = False

    def fill(self) -> "Parser":
        """Add the arguments and the subcommands, once."""
        if not self._filled:
            self._filled = True
            self._add_arguments(self, self._spec.get("arguments", {}))
            for name in self._spec.get("options", ()):
                table = self._tables[name]
                group = self.add_argument_group(table["title"]) if "title" in table else self
                self._add_arguments(group, table["arguments"], required=name in self._spec.get("require", ()))
            if commands := self._spec.get("commands"):
                self._add_commands(commands, required=not self._spec.get("alone"))
        return self

    def _add_arguments(self, group: argparse._ActionsContainer, arguments: Spec, *, required: bool = False) -> None:
        exclusive = None
        for name, spec in arguments.items():
            # The default of one that is not given here would replace what was given before this command.
            keys = dict(spec) | ({"default": argparse.SUPPRESS} if name in self._shared else {})
            if not name.startswith("-") and "choices" not in keys:
                keys["metavar"] = metavar_of(name, keys)
            if keys.pop("exclusive", False):
                exclusive = exclusive or group.add_mutually_exclusive_group(required=required)
                exclusive.add_argument(name, **keys)
            else:
                group.add_argument(name, **keys)

    def _add_commands(self, commands: Mapping[str, Spec], *, required: bool) -> None:
        grouped = any("group" in spec for spec in commands.values())
        # Commands in groups are shown by their groups: then the list of all commands is left out of usage and help.
        actions = self.add_subparsers(
            dest=_COMMANDS[0] if grouped else _COMMANDS[1],
            required=required,
            metavar="COMMAND",
            prog=self.prog,
            help=argparse.SUPPRESS if grouped else None,
        )
        groups = {name: self.add_argument_group(title) for name, title in self._groups.items()} if grouped else {}
        shared = frozenset(self._option_string_actions) if self._spec.get("alone") else frozenset()
        for name, spec in commands.items():
            actions.add_parser(name, help=spec["help"], spec=spec, tables=self._tables, shared=shared)
            if grouped:
                groups[spec["group"]]._group_actions += actions._choices_actions[-1:]  # noqa: SLF001 - no public way
        if grouped:
            self.usage = f"{self.prog} [-h] [--errors {{text,json}}] COMMAND ..."

    def format_help(self) -> str:
        """The help; argparse leaves rows wider than the terminal: long choices, groups and titles."""
        columns = shutil.get_terminal_size().columns
        return "".join(f"{row}\n" for line in super().format_help().splitlines() for row in _fit(line, columns))

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Fill the parser, then parse; called for the parser of each subcommand on the command line."""
        self.fill()
        if (settings := self._spec.get("settings")) and args is not None:
            args = self._with_settings(settings, args)
        if self._spec.get("dashed_values") and args is not None:
            end = args.index("--") if "--" in args else len(args)
            args = [*(self._as_value(word) for word in args[:end]), *args[end:]]
        return super().parse_known_args(args, namespace)

    def _with_settings(self, settings: str, arguments: Sequence[str]) -> Sequence[str]:
        """The arguments with those that the command's own function adds."""
        tables = [self._spec.get("arguments", {})]
        tables += [self._tables[name]["arguments"] for name in self._spec.get("options", ())]
        module, _, function = settings.partition(":")
        with_settings: Sequence[str] = getattr(importlib.import_module(module), function)(tables, arguments)
        return with_settings

    def _as_value(self, word: str) -> str:
        """A word that argparse takes as a value, with a blank in front, if it is none of the command's options."""
        is_option = word.partition("=")[0] in self._option_string_actions
        return f" {word}" if word.startswith("-") and not is_option else word

    def read(self, arguments: Sequence[str]) -> argparse.Namespace:
        """Parse the arguments. The called subcommand, which knows its own options, reports unrecognized ones.

        `help COMMAND` is `COMMAND --help`. Without any argument the help is shown too, and the program ends with 2: it
        has done nothing.
        """
        commands = self._spec.get("commands", {})
        if not arguments and commands and not self._spec.get("alone"):
            self.fill().print_help()
            self.exit(2)
        if [*arguments[:1]] == [_HELP] and _HELP not in commands:
            arguments = [*arguments[1:], "--help"]
        options, unknown = self.parse_known_args(arguments)
        called: Parser = options.parser
        del options.parser
        if unknown:
            called.refuse(unknown)
        return options  # type: ignore[no-any-return]

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Report unrecognized arguments with similar options."""
        import difflib  # late: few command lines have a mistake

        options = list(self._option_string_actions)
        similar = [near for word in unknown for near in difflib.get_close_matches(word.partition("=")[0], options, n=1)]
        hint = f"; did you mean {', '.join(similar)}?" if similar else ""
        arguments = " ".join(NOT_SHOWN if format_value(word) == NOT_SHOWN else shlex.quote(word) for word in unknown)
        self.error(f"unrecognized argument: {arguments}{hint}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse what is none of the choices, with the one that was perhaps meant: argparse lists all."""
        if action.choices is None or value in action.choices:
            return
        import difflib

        choices = [str(choice) for choice in action.choices]
        word = NOT_SHOWN if format_value(value) == NOT_SHOWN else repr(value)
        similar = difflib.get_close_matches(str(value), choices, n=1)
        if action.dest in _COMMANDS:
            similar = [self._spec["other_words"][value]] if value in self._spec.get("other_words", ()) else similar
            self.error(f"no command is called {word}{f'; did you mean {similar[0]}?' if similar else ''}")
        hint = f"did you mean {similar[0]}?" if similar else f"choose from {', '.join(choices)}"
        raise argparse.ArgumentError(action, f"invalid choice: {word}; {hint}")

    def error(self, message: str) -> NoReturn:
        """Raise the error of an invalid command line."""
        raise UsageError(message, title=self.prog)


def _fit(line: str, columns: int) -> list[str]:
    """A line of the help as rows that are no wider than the terminal."""
    if len(line) <= columns:
        return [line]
    from bezel_base.terminal.display_width import wrap  # late: few helps have such a line

    for indent in (len(line) - len(line.lstrip(" ")), _DEEPEST):
        rows = wrap(line, columns - indent - _STEP, columns - indent)
        if max(map(len, rows)) <= columns - indent - _STEP:
            break
    return [" " * indent + rows[0], *(" " * (indent + _STEP) + row for row in rows[1:])]


def metavar_of(name: str, keys: Spec) -> str:
    """The name of an argument's value in the help."""
    return str(keys.get("metavar", name.upper()))


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected an integer, got {text!r}") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}") from None


def _port(text: str) -> int:
    if not 0 <= (number := _integer(text)) <= 65_535:
        raise argparse.ArgumentTypeError(f"expected a port, from 0 to 65535, got {text!r}")
    return number


def _positive(text: str) -> float:
    if not 0 < (number := _number(text)) < math.inf:
        raise argparse.ArgumentTypeError(f"expected a finite number above 0, got {text!r}")
    return number
