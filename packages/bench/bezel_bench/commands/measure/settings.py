"""Options of a measuring command from elsewhere than the command line: a YAML file, a result, variables.

The command line counts first, then `BEZEL_BENCH_OPTION` of the environment, then the file that `--config` names. Owns
what a key and a value of these become on the command line, and the options that a result keeps. Called while the
command line is parsed, so it imports what a file or a variable needs only where there is one.
"""

import argparse
import functools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bezel_base.errors import Problem, WrongValueError

PREFIX = "BEZEL_BENCH_"
_CONFIG = "--config"
_BODY = "--extra-body"
_HELP = ("-h", "--help")
_SCHEMA = "bezel.bench/"
# Of one call, and no property of the measurement; headers may be secret.
_NOT_KEPT = ("config", "errors", "force", "header", "json", "out")
_NUMBERS = {"int": int, "float": float, "positive": float}
_TWICE = "it stands twice in one object, and one value would be lost."
Arguments = Mapping[str, Mapping[str, Any]]
_OfPairs = Callable[[Iterable[tuple[str, Any]]], dict[str, Any]]


def add_settings(tables: Sequence[Arguments], arguments: Sequence[str]) -> list[str]:
    """The words of a command line with those that a file and the environment add in front.

    Args:
        tables: The arguments of the command by name, one table for each group of options that may exclude each other.
        arguments: The words after the command.

    Raises:
        WrongValueError: The file cannot be read, or has another key or value than the command takes.
    """
    variables = {name: value for name, value in os.environ.items() if name.startswith(PREFIX) and value}
    typed = {word.partition("=")[0] for word in arguments}
    if not (variables or _CONFIG in typed) or typed.intersection(_HELP):
        return [*arguments]
    problems: list[Problem] = []
    added: list[str] = []
    # Those that end the command, such as --like, stand on the command line alone.
    options = {name: keys for table in tables for name, keys in table.items() if keys.get("action") != "print"}
    sources = [_of_environment(options, variables, problems)]
    if file := _config_file(arguments) or sources[0].get(_CONFIG, ("", None))[1]:
        sources.append(_of_file(options, Path(str(file)), problems))
    for source in sources:
        taken = typed | {word.partition("=")[0] for word in added}
        excluded = {name for table in tables for name in _exclusives(table) if taken.intersection(_exclusives(table))}
        for name, (place, value) in source.items():
            if name not in taken | excluded:
                added += _words(name, options[name], place, value, problems)
    if problems:
        raise WrongValueError(*problems)
    return [*added, *arguments]


def kept_options(options: argparse.Namespace, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The options that differ from their defaults, as a result keeps them and `--config` takes them again."""
    values = {name: getattr(options, name, default) for name, default in defaults.items() if name not in _NOT_KEPT}
    # The file of a data set is found again by its name, the server of a turn by its variant's.
    for option, name in (("dataset", "file"), ("arm", "url"), ("arm", "stack")):
        if values.get(option):
            values[name] = defaults[name]
    return {
        name: str(value) if isinstance(value, Path) else value
        for name, value in values.items()
        if value != defaults[name]
    }


def object_of(place: str, pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these names and values, in the option or the file that the place names.

    Raises:
        WrongValueError: Names stand twice.
    """
    pairs = [*pairs]
    counts = Counter(name for name, _ in pairs)
    if twice := [name for name, count in counts.items() if count > 1]:
        raise WrongValueError(*(Problem(f"{place}: {name}", None, _TWICE, "leave one out.") for name in twice))
    return dict(pairs)


def _exclusives(table: Arguments) -> set[str]:
    return {name for name, keys in table.items() if keys.get("exclusive")}


def _config_file(arguments: Sequence[str]) -> str:
    """The last file that the command line names; "" for none."""
    file = ""
    for place, word in enumerate(arguments):
        name, equals, value = word.partition("=")
        if name == _CONFIG:
            file = value if equals else "".join(arguments[place + 1 : place + 2])
    return file


def _of_environment(
    options: Arguments, variables: Mapping[str, str], problems: list[Problem]
) -> dict[str, tuple[str, Any]]:
    """The options that variables set: name -> the variable and its value. One of another command is left out."""
    from bezel_bench.commands.table import shared_spec  # late: few environments have such a variable

    every = {name for table in shared_spec()["tables"].values() for name in table["arguments"]}
    values: dict[str, tuple[str, Any]] = {}
    for variable, value in sorted(variables.items()):
        name = f"--{variable.removeprefix(PREFIX).lower().replace('_', '-')}"
        if name in options:
            values[name] = (variable, value)
        elif name not in every:
            near = _nearest(name, every)
            repair = f"write {_variable(near)}, or unset it." if near else "unset it."
            problems.append(Problem(variable, None, f"the command has no option {name}.", repair))
    return values


def _of_file(options: Arguments, file: Path, problems: list[Problem]) -> dict[str, tuple[str, Any]]:
    """The options that a file sets: name -> the place and the value."""
    try:
        document = _read(file)
    except (OSError, ValueError, RecursionError) as error:
        repair = "name a YAML file of options, e.g. `users: 8`, or a result of `bezel bench`."
        reason = error.strerror if isinstance(error, OSError) else error
        problems.append(Problem(_CONFIG, str(file), f"it cannot be read: {reason}.", repair))
        return {}
    except WrongValueError as error:
        problems += [each for each in error.problems if isinstance(each, Problem)]
        return {}
    names = {*options} - {_CONFIG}
    values: dict[str, tuple[str, Any]] = {}
    for key, value in document:
        name = f"--{key.replace('_', '-')}"
        place = f"{file}: {key}"
        if name in values:
            problems.append(Problem(place, None, _TWICE, "leave one out."))
        elif name in names and name != _BODY and _nests(value):
            problems.append(Problem(place, None, "expected a text, or a list of texts.", "write e.g. [a, b]."))
        elif name in names:
            values[name] = (place, value)
        else:
            near = _nearest(name, names).removeprefix("--")
            repair = f"write {near}, or leave it out." if near else "leave it out."
            problems.append(Problem(place, None, "the command has no such option.", repair))
    return values


def _read(file: Path) -> list[tuple[str, Any]]:
    """The keys and values of a file; of a result, the options that it was measured with.

    Raises:
        OSError: It cannot be read.
        ValueError: It has another content.
        WrongValueError: Names stand twice in one of its objects.
    """
    text, of_pairs = file.read_text(encoding="utf-8-sig"), functools.partial(object_of, str(file))
    try:
        document = json.loads(text, object_pairs_hook=of_pairs)
    except ValueError:
        return _read_yaml(text, of_pairs)
    if isinstance(document, dict) and str(document.get("schema", "")).startswith(_SCHEMA):
        document = document["manifest"].get("options", {}) if isinstance(document.get("manifest"), dict) else None
    if not isinstance(document, dict):
        raise ValueError("expected options with their values")  # noqa: TRY004 - a content of a file
    return [*document.items()]


def _read_yaml(text: str, of_pairs: _OfPairs) -> list[tuple[str, Any]]:
    """The keys and values of a YAML text; a value as it is written: `no`, `08`, `4:30` and a date are texts."""
    import yaml  # late: most command lines name no file

    try:
        node = yaml.compose(text, yaml.SafeLoader)
    except yaml.YAMLError as error:
        raise ValueError(" ".join(str(error).split())) from None
    if not isinstance(node, yaml.MappingNode):
        raise ValueError("expected options with their values")  # noqa: TRY004 - a content of a file
    return [(str(key.value), _value(value, of_pairs, typed=False)) for key, value in node.value]


def _value(node: Any, of_pairs: _OfPairs, *, typed: bool) -> Any:
    """The value of a part of a YAML text; inside a mapping with JSON's types."""
    if node.id == "mapping":
        return of_pairs((str(key.value), _value(value, of_pairs, typed=True)) for key, value in node.value)
    if node.id == "sequence":
        return [_value(each, of_pairs, typed=typed) for each in node.value]
    if node.tag.endswith(":null"):
        return None
    try:
        # Python's True and False are taken too.
        return json.loads(node.value.lower()) if typed and node.style is None else node.value
    except ValueError:
        return node.value


def _nests(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(isinstance(each, list | dict) for each in value))


def _nearest(name: str, names: set[str]) -> str:
    import difflib  # late: few names are wrong

    return next(iter(difflib.get_close_matches(name, sorted(names), n=1)), "")


def _variable(name: str) -> str:
    return f"{PREFIX}{name.removeprefix('--').replace('-', '_').upper()}"


def _words(name: str, keys: Mapping[str, Any], place: str, value: Any, problems: list[Problem]) -> list[str]:
    """The words that set an option; [] where the value is its default, or a problem was added."""
    shown = None if name == "--header" else value
    if value is None:
        return []
    if keys.get("action") == "store_true":
        text = str(value).lower()
        if text in ("true", "1", "yes", "on"):
            return [name]
        if text not in ("false", "0", "no", "off"):
            problems.append(Problem(place, shown, "expected true or false.", "write one of them."))
        return []
    if keys.get("action") == "append":
        items = value if isinstance(value, list) else str(value).splitlines()
        return [f"{name}={item}" for item in items]
    if isinstance(value, dict):
        text = json.dumps(value)
    else:
        text = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    if number := _NUMBERS.get(keys.get("type", "")):
        try:
            number(text)
        except ValueError:
            consequence = "expected a whole number." if number is int else "expected a number."
            problems.append(Problem(place, shown, consequence, f"write e.g. {keys.get('default') or 1}."))
            return []
    if "choices" in keys and text not in keys["choices"]:
        choices = ", ".join(keys["choices"])
        problems.append(Problem(place, shown, "the option has no such value.", f"choose one of {choices}."))
        return []
    return [f"{name}={text}"]
