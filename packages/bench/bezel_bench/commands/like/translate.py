"""Command lines of other load clients as commands here: `run --like "vllm bench serve ..."`.

Owns what each option of such a line becomes, by the table of its client (clients.toml), and the text that is printed.
Leaves out the reading of the line (`.line`) and options that become several ones here (`.compose`).
"""

import argparse
import difflib
import re
import shlex
from collections.abc import Mapping
from typing import Any

from bezel_base.credentials.headers import is_credential_name
from bezel_base.credentials.names import option_names_secret
from bezel_base.errors import redact
from bezel_bench.commands.like.compose import Command, Values, compose
from bezel_bench.commands.like.line import Option, clients, read_line, rows_of
from bezel_bench.commands.measure.usage import RULES
from bezel_bench.commands.table import PROGRAM, shared_table

_LIKE = "--like"
_OPEN = re.compile(r"[$<{`]")
"""What begins a part of a value that the reader of a line is to fill in, or a shell."""
_VARIABLE = re.compile(r'"(\$\w+|\$\{\w+\})"')


def show_like(program: str, line: str) -> str:
    """The text of `run --like`: the command here, then a comment for each option that it has not.

    Args:
        program: The program and its command, e.g. "bezel-bench run".
        line: The command line of the other client.

    Raises:
        WrongValueError: It is of no known client, or cannot be read.
    """
    commands = translate(line)
    texts = []
    for number, command in enumerate(commands, 1):
        if len(commands) > 1 and (out := command.options.get("--out")):
            command.set("--out", re.sub(r"(\.json)?$", f"-{number}.json", str(out[-1]), count=1))
        arguments = _arguments(command)
        if not program.startswith(PROGRAM):
            arguments.append("--public")  # no other client has an identity token
        texts.append(" ".join([*program.split()[:-1], *map(_quote, arguments)]))
    notes = dict.fromkeys(redact(note) for command in commands for note in command.notes)
    return "\n".join([*texts, *(f"# {' '.join(note.split())}" for note in notes)]) + "\n"


def translate(line: str) -> list[Command]:
    """The commands here of a command line of another client: one for each of its loads.

    Raises:
        WrongValueError: It is of no known client, or cannot be read.
    """
    client, loads, notes = read_line(line, _LIKE)
    commands = [_translate_load(client, options, notes) for options in loads]
    composed = {option for option, row in rows_of(client).items() if row.get("composed") and not row.get("form")}
    for command, options in zip(commands, loads, strict=True):
        for place, (option, values) in enumerate(options):
            # With another value, or without the flag, the command would be the same.
            others = [*options[:place], *([(option, ["<$>"])] if values else []), *options[place + 1 :]]
            if option in composed and _translate_load(client, others, []).options == command.options:
                command.notes.append(f"{' '.join([option, *values])}: of no effect in this line")
    return commands


def _translate_load(client: str, options: list[Option], notes: list[str]) -> Command:
    command, composed, rows = Command(notes=[*notes]), Values(), rows_of(client)
    dataset, order = (dict(options).get("--dataset-name") or ["random"])[-1].replace("_", "-"), [*rows]
    dataset = "random" if dataset.startswith("$") else dataset
    # Of two options that become one here, the later in the table counts.
    for option, values in sorted(options, key=lambda each: order.index(each[0]) if each[0] in rows else -1):
        row, value = _row(rows, option), values[-1] if values else ""
        near = "" if row else next(iter(difflib.get_close_matches(option, rows, n=1)), "")
        shown = option if any(map(_has_secret, (option, near))) else " ".join([option, *values])
        if row is None:
            command.notes.append(f"{shown}: unknown" + (f"; perhaps {near}" if near else ""))
        elif "field" in row and option != "--extra-body":
            command.add_field(option.removeprefix(row["field"]).replace("-", "_"), value)
        elif row.get("composed"):
            composed.setdefault(option, []).extend(values)
        elif "here" in row and dataset.startswith(row.get("of", "")):
            _set(command, row, shown, value)
        else:
            why = f"no counterpart: {row.get('why', 'of another data set')}"
            command.notes.append(f"{shown}: {row.get('does') or why}")
    defaults = clients()[client]["defaults"]
    compose(client, composed, command, next((defaults[name] for name in defaults if dataset.startswith(name)), {}))
    _settle(command)
    return command


def _has_secret(option: str) -> bool:
    """Whether the value of an option, or of a part of one such as `--backend headers.X-Key`, may be a key."""
    return option_names_secret(option) or ("headers." in option and is_credential_name(option.rpartition(".")[2]))


def _row(rows: Mapping[str, Mapping[str, Any]], option: str) -> Mapping[str, Any] | None:
    """The row of an option, or that of the option of whose value it is a part: `--extra-body.top_k`."""
    while option not in rows and re.search(r"[ .]", option):
        option = re.sub(r"[ .][^ .]*$", "", option)
    return rows.get(option)


def _set(command: Command, row: Mapping[str, Any], shown: str, value: str) -> None:
    """Set the one option of a row."""
    if (names := row.get("names")) and (value := names.get(typed := value.strip("/"), "")) == "":
        command.notes.append(f"{shown}: no {typed} here; choose {row['here']}")
        return
    if (scale := row.get("scale")) and re.fullmatch(r"[\d.]+", value):
        value = f"{float(value) * scale:g}"
    elif scale:
        command.notes.append(f"{shown}: give {row['here']} that times {scale:g}")
        return
    before = command.value(row["here"], value)
    if before != value:
        command.notes.append(f"{row['here']} {before}: {shown} counts")
    command.set(row["here"], value)


def _settle(command: Command) -> None:
    """Note what the command here does not take, and what would have no effect.

    Raises:
        UserError: A value is not of the option's kind.
    """
    arguments = shared_table().arguments_of(command.name)
    for option in [option for option in command.options if option not in arguments]:
        command.leave_out(option, f"not of `{command.name}`; `run` has it")
    chosen_values = {option.lstrip("-").replace("-", "_"): values[-1] for option, values in command.options.items()}
    chosen = argparse.Namespace(**shared_table().defaults_of(command.name) | {"endpoint": "chat"} | chosen_values)
    # Not read: they may be elsewhere.
    chosen.trace, chosen.file = None, chosen_values.get("file") or chosen_values.get("dataset")
    for rule in RULES[command.name]:
        if rule.option in chosen_values and rule.is_ignored(chosen):
            command.leave_out(f"--{rule.option.replace('_', '-')}", rule.consequence)
    values = [str(value) for name, values in command.options.items() if name != "--extra-body" for value in values]
    if "--url" not in command.options:
        command.notes.append("the line has no address: add --url")
    elif re.search("[@?]", f"{command.options['--url']} {command.options.get('--also-url')}"):
        del command.options["--url"]
        command.options.pop("--also-url", None)
        command.notes.append("the address may hold a password; add --url without it")
    elif not any(map(_OPEN.search, values)):
        shared_table().parser(PROGRAM).read(_arguments(command))


def _arguments(command: Command) -> list[str]:
    arguments, order = [command.name], [*shared_table().arguments_of(command.name)]
    for name in sorted(command.options, key=order.index):
        arguments += [word for value in command.options[name] for word in ([name] if value is None else [name, value])]
    return arguments


def _quote(word: str) -> str:
    """A word for a shell, in which its variables count."""
    if "$" not in word and "`" not in word:
        return shlex.quote(word)
    return '"' + re.sub(r'(["\\])', r"\\\1", _VARIABLE.sub(r"\1", word)) + '"'
