"""Command lines of other load clients as commands here: `run --like "vllm bench serve ..."`.

Owns the reading of such a line, by the table of its client (clients.toml), and the text that is printed. Leaves out
options that become several ones here (`bezel_bench.commands.like.compose`).
"""

import difflib
import functools
import itertools
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bezel_base.credentials.names import option_names_secret
from bezel_base.errors import Problem, WrongValueError
from bezel_bench.commands.like.compose import Command, compose
from bezel_bench.commands.table import shared_table

_LIKE = "--like"


@functools.cache
def clients() -> Mapping[str, Any]:
    """The other clients by their names, each with `title`, `words`, `flags` and `rows`."""
    return tomllib.loads(Path(__file__).with_name("clients.toml").read_text(encoding="utf-8"))


def show_like(program: str, line: str) -> str:
    """The text of `run --like`: the command here, then a comment for each option that it has not.

    Args:
        program: The program and its command, e.g. "bezel-bench run".
        line: The command line of the other client.

    Raises:
        WrongValueError: It is of no known client, or cannot be read.
    """
    command = translate(line)
    command_line = [*program.split()[:-1], command.name]
    for name, values in command.options.items():
        command_line += [word for value in values for word in ([name] if value is None else [name, value])]
    return "\n".join([shlex.join(command_line), *(f"# {note}" for note in command.notes)]) + "\n"


def translate(line: str) -> Command:
    """The command here of a command line of another client.

    Raises:
        WrongValueError: It is of no known client, or cannot be read.
    """
    try:
        arguments = shlex.split(line.replace("\\\n", " "))
    except ValueError as error:
        raise WrongValueError(Problem(_LIKE, None, f"the line cannot be read: {error}.", "quote it whole.")) from None
    head = [Path(part).name for part in itertools.takewhile(lambda part: not part.startswith("-"), arguments)]
    name = next((name for name, client in clients().items() if set(client["words"]) & set(head)), None)
    if name is None:
        names = ", ".join(client["title"].partition(" 0")[0].replace("`", "") for client in clients().values())
        shown = " ".join(head) or None
        raise WrongValueError(Problem(_LIKE, shown, "no known client is called so.", f"begin with one of: {names}."))
    client = clients()[name]
    command = Command()
    composed: dict[str, list[str]] = {}
    rows = {option: row for row in client["rows"] for option in row["options"]}
    for option, values in _options(arguments[len(head) :], client["flags"], parts=name == "guidellm"):
        row = rows.get(option)
        if row is None:
            near = next(iter(difflib.get_close_matches(option, rows, n=1)), "")
            command.notes.append(f"{option}: unknown" + (f"; perhaps {near}" if near else ""))
        elif row.get("composed"):
            composed.setdefault(option, []).extend(values)
        elif "here" in row:
            command.options[row["here"]] = [_scale(values[-1] if values else "", row.get("scale"))]
        else:
            shown = "" if option_names_secret(option) else "".join(f" {value}" for value in values)
            command.notes.append(f"{option}{shown}: {row.get('does') or 'no counterpart: ' + row['why']}")
    compose(name, composed, command)
    _leave_out_others(command)
    return command


def _leave_out_others(command: Command) -> None:
    """Note the options that the command here does not take: a sweep elsewhere has those of a single load."""
    taken = shared_table().arguments_of(command.name)
    for option in [option for option in command.options if option not in taken]:
        values = " ".join(str(value) for value in command.options.pop(option))
        command.notes.append(f"{option} {values}: not of `{command.name}`; `run` has it")


def _options(arguments: Sequence[str], flags: Sequence[str], *, parts: bool) -> list[tuple[str, list[str]]]:
    """The options of a line in their order, each with its values; with `parts`, each part of a value as its own."""
    options: list[tuple[str, list[str]]] = []
    for typed in arguments:
        word = _SHORT.get(typed, typed)
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            options.append((name.replace("_", "-"), [value] if equals else []))
        elif options and options[-1][0] not in flags:
            options[-1][1].append(word)
    if not parts:
        return options
    apart: list[tuple[str, list[str]]] = []
    for name, values in options:
        pairs = [part for value in values for part in value.split(",") if "=" in part]
        if name in _IN_PARTS and pairs:
            apart += [(f"{name} {key}", [value]) for key, _, value in (pair.partition("=") for pair in pairs)]
        else:
            apart.append((name, values))
    return apart


_SHORT = {"-m": "--model", "-u": "--url", "-H": "--header", "-c": "--config", "-l": "--label", "-f": "--config"}
_IN_PARTS = ("--backend", "--profile", "--constraint", "--data", "--seed")


def _scale(value: str, scale: float | None) -> str:
    if scale is None:
        return value
    try:
        return f"{float(value) * scale:g}"
    except ValueError:
        return value
