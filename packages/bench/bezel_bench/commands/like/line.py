"""Command line of another client, read as a shell and the client's own parser read it.

Owns which words are the client's, its options with their values, and what of the line is neither. Leaves out what an
option means here (`bezel_bench.commands.like.translate`).
"""

import contextlib
import functools
import itertools
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from bezel_base.errors import Problem, WrongValueError

# Quoted text stays, a comment and the end of a continued line go; `$(...)` and a <place to fill in> are one word.
_TEXT = re.compile(
    r"""'[^']*'|"(?:\\[\s\S]|[^"\\])*"|\\[ \t]*(?:\#.*)?(?:\n|\Z)|(?<!\S)\#.*"""
    r"""|\$\(\((?:[^()]|\([^()]*\))*\)\)|\$\([^()]*\)|`[^`]*`|<[A-Za-z][^<>|&;\n]*>|;"""
)
# Quotes and dashes of word processors, as in articles.
_TYPESET = str.maketrans(
    {"\u201c": '"', "\u201d": '"', "\u2018": "'", "\u2019": "'", "\u2013": "--", "\u2014": "--", "\xa0": " ", "\r": ""}
)
_OPERATOR = re.compile(r"[|&;]+|\d*>.*|&>.*|<(?!.*>).*")
_OPTION = re.compile(r"--?[A-Za-z].*", re.DOTALL)
_KEY = "OPENAI_API_KEY"
"""Variable whose value vLLM's clients send as a key."""
Option = tuple[str, list[str]]


@functools.cache
def clients() -> Mapping[str, Any]:
    """The other clients by their names: see clients.toml."""
    tables = tomllib.loads(Path(__file__).with_name("clients.toml").read_text(encoding="utf-8"))
    paths = tables.pop("paths")
    for row in (row for client in tables.values() for row in client["rows"] if "names" in row):
        row["names"] |= paths
    return tables


def rows_of(client: str) -> dict[str, Mapping[str, Any]]:
    """The row of each option of a client."""
    return {option: row for row in clients()[client]["rows"] for option in row["options"]}


def read_line(line: str, option: str) -> tuple[str, list[list[Option]], list[str]]:
    """The client of a command line, the options of each of its loads, and what of the line is no option.

    Most lines have one load; one with a list, such as `--concurrency 1,2,4`, has one for each level.

    Args:
        line: The line.
        option: The option that has it, for messages.

    Raises:
        WrongValueError: It is of no known client, or cannot be read.
    """
    try:
        arguments = [
            word.replace("\0", " ") for word in shlex.split(_TEXT.sub(_plain, line.translate(_TYPESET).strip("` \n")))
        ]
    except ValueError as error:
        raise WrongValueError(Problem(option, None, f"the line cannot be read: {error}.", "quote it whole.")) from None
    places = [
        (-len(start), begin, name)
        for name, client in clients().items()
        for start in map(str.split, client["starts"])
        for begin in range(len(arguments))
        if [_program(arguments[begin]), *arguments[begin + 1 : begin + len(start)]] == start
        # A program's name alone may also be that of what is installed.
        and (len(start) > 1 or "".join(arguments[begin + 1 :])[:1] == "-" or client.get("variables", "\0") in line)
    ]
    script = max(arguments, key=len, default="")
    if not places and " " in script and len(script) < len(line):
        return read_line(script, option)  # of `bash -c`
    if not places:
        names = ", ".join(client["starts"][0] for client in clients().values())
        shown = next((word for word in arguments if "=" not in word and not word.startswith("-")), None)
        consequence = "expected a load of a known client."
        raise WrongValueError(Problem(option, shown, consequence, f"begin with one of: {names}."))
    length, begin, name = min(places)
    client, end = clients()[name], begin - length
    rest = list(itertools.takewhile(lambda word: not _OPERATOR.fullmatch(word), arguments[end:]))
    notes = [f"{' '.join(arguments[end + len(rest) :])}: left to the shell"] if end + len(rest) < len(arguments) else []
    keys = {word.partition("=")[0].removeprefix("--env=") for word in arguments[:begin]} & {_KEY}
    notes += [f"{key}: `--api-key-env {key}`" for key in keys]
    options = [*_variables(arguments[:begin], client), *_options(rest, name, notes)]
    parts = [part for each in options for part in _in_parts(*each, client.get("parts", {}))]
    return name, [[*load] for load in itertools.product(*(_levels(*each, client) for each in parts))], notes


def _plain(match: re.Match[str]) -> str:
    text = match[0]
    return {"'": text, '"': text, "\\": " ", "#": "", ";": " ; "}.get(text[0], text.replace(" ", "\0"))


def _program(word: str) -> str:
    """The program of a path, or of the name of an image; "" of an address."""
    return "" if "://" in word else Path(word).name.partition(":")[0]


def _variables(arguments: Sequence[str], client: Mapping[str, Any]) -> Iterator[Option]:
    """Yield the options that variables before the client's name set, e.g. of `docker run -e`."""
    for word in arguments:
        if match := re.fullmatch(rf"(?:--env=)?{client.get('variables', '$')}(\w+)=(.*)", word, re.DOTALL):
            yield f"--{match[1].lower().replace('_', '-')}", [match[2]]


def _options(arguments: Sequence[str], client: str, notes: list[str]) -> list[Option]:
    options: list[Option] = []
    flags, several = clients()[client]["flags"], clients()[client]["several"]
    short = {name for name in clients()[client].get("same", {}) if name[1] != "-"}
    for place, typed in enumerate(arguments):
        if typed == "--":
            notes.append(f"{len(arguments[place:]) - 1} words behind --: for another program")
            break
        if _OPTION.fullmatch(typed):
            name, equals, value = typed.partition("=")
            if name not in short and name[:2] in short:  # `-mNAME`
                name, equals, value = typed[:2], "=", typed[2:].removeprefix("=")
            options.append((_full_name(name, client), [value] if equals else []))
        elif options and options[-1][0] not in flags and (not options[-1][1] or options[-1][0] in several):
            options[-1][1].append(typed)
        else:
            notes.append(f"{typed}: the value of no option")
    for name in clients()[client]["levels"]:
        # An option that is repeated for each level lists them too.
        if len(levels := [value for option, values in options if option == name for value in values]) > 1:
            options = [*(each for each in options if each[0] != name), (name, [",".join(levels)])]
    return options


def _full_name(typed: str, client: str) -> str:
    """The name of an option: of a short one, of another spelling, and of the beginning of one, where that is enough."""
    name = typed.replace("_", "-") if typed.startswith("--") else typed
    name = clients()[client].get("same", {}).get(name, name)
    rows = rows_of(client)
    longer = [option for option in rows if option.startswith(name)] if clients()[client].get("abbreviates") else []
    return longer[0] if len(longer) == 1 and name not in rows else name


def _in_parts(name: str, values: list[str], parts: Mapping[str, str]) -> Iterator[Option]:
    """Yield each part of a value, `key=value,...` or JSON, as an option of its own: `--data prompt_tokens`."""
    if name == "--override":
        name, values = f"--{values[0].replace('.', ' ')}" if values else name, values[1:]
    fields = dict(_fields(values[0])) if name in parts and values else {}
    if name == "--constraint" and "kind" in fields:
        name = f"{name} {fields.pop('kind')}"
        fields = fields or {"": ""}
    if fields:
        yield from ((f"{name} {key}".rstrip(), [value] if key else []) for key, value in fields.items())
    else:
        yield parts.get(name) or name, values


def _fields(text: str) -> Iterator[tuple[str, str]]:
    if text.lstrip().startswith("{"):
        import yaml  # late: few lines have such a value

        with contextlib.suppress(yaml.YAMLError):
            yield from _flat(yaml.safe_load(text))
    if re.match(r"[\w.]+=", text):
        # A value ends at the next key: a list has commas too.
        pairs = re.findall(r"([\w.]+)=((?:(?!,\s*[\w.]+=)[\s\S])*)", text)
        yield from ((key, value.strip().strip("[]")) for key, value in pairs)


def _flat(document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in document.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        elif value is not None:
            text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
            yield f"{prefix}{key}", text.lower() if isinstance(value, bool) else text


def _levels(name: str, values: list[str], client: Mapping[str, Any]) -> list[Option]:
    """An option of each load: several of one that lists levels."""
    if name not in client["levels"] or not values:
        return [(name, values)]
    return [(client["levels"][name], [level.strip()]) for level in values[-1].strip("[]").split(",")]
