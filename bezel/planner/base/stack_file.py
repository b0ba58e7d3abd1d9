"""Reader of stack files: values as the engine reads them, and values that two YAML readers interpret differently.

The engine reads YAML with Go's yaml.v3, most other tools by YAML 1.1: `2030-01-01` becomes a date, `on` text or true,
`1:30` text or 90, `010` becomes 8. Such a value is refused with both readings; quoting it repairs it. Pure: leaves
files to the caller, and what the values mean to `bezel.planner.base.parse`.

Source: what `pulumi config --json` 3.259.0 made of each form, and the resolvers of PyYAML.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import yaml

from bezel.planner.base.problems import NAMESPACE
from bezel_base.errors import NOT_SHOWN, Problem, UserError, format_value

if TYPE_CHECKING:
    from collections.abc import Iterable

_PREFIX = f"{NAMESPACE}:"
_STR, _NULL, _BOOL, _INT, _FLOAT, _DAY = (
    f"tag:yaml.org,2002:{kind}" for kind in ("str", "null", "bool", "int", "float", "timestamp")
)
_MERGE = "tag:yaml.org,2002:merge"
_STRUCTURES = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")

_TRUTH = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_PLAIN_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_PLAIN_FLOAT = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+][0-9]+)?")

_DATE = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?")
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_SWITCH = re.compile(r"(?:yes|no|on|off)", re.IGNORECASE)
_INFINITE = re.compile(r"[-+]?\.(?:inf|nan)", re.IGNORECASE)
_EXPONENT = re.compile(r"[-+]?[0-9][0-9_.]*[eE][-+]?[0-9]+")
_NUMBER_LIKE = re.compile(r"[-+]?(?:0[xXoObB][0-9a-fA-F_]+|[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9_]+)")

_READINGS = (
    (_DATE, "the engine reads a date and adds a time to it, so a different text arrives"),
    (_SEXAGESIMAL, "some YAML readers read a number to base 60, the engine reads text"),
    (_SWITCH, "some YAML readers read true or false, the engine reads text"),
    (_INFINITE, "the engine cannot pass on a number that is not finite"),
    (_EXPONENT, "some YAML readers read a number, others text"),
    (_NUMBER_LIKE, "YAML readers disagree on the number: a leading 0, 0x or _ changes it for some of them"),
)


class StackFileError(UserError, ValueError):
    """The text is not YAML of keys and values; the problem names the line."""


def engine_key(key: str, project: str) -> str:
    """A key below `config` as the engine names it: `NAMESPACE:NAME`.

    `cost`, `bezel:cost` and `bezel:config:cost` are one key in the project `bezel`.

    Args:
        key: As a file spells it.
        project: Name of the project, which is the namespace of a key without one.

    Source: `ParseKey` of the engine, tried with `pulumi config --json` 3.259.0, which refuses any other colons.
    """
    namespace, colon, name = key.partition(":")
    if not colon:
        return f"{project}:{key}"
    return f"{namespace}:{name.removeprefix('config:')}"


def spellings(keys: Iterable[object], project: str) -> dict[str, list[str]]:
    """Key as the engine names it -> its spellings in a file, as `engine_key` reads them.

    With several spellings the order of a map in the engine decides which value arrives.
    """
    by_key: dict[str, list[str]] = {}
    for key in map(str, keys):
        by_key.setdefault(engine_key(key, project), []).append(key)
    return by_key


def problems_of_spellings(content: object, project: str, name: str) -> list[Problem]:
    """Keys of a stack file that the engine renames, or finds under several spellings.

    Args:
        content: The file's content, as `read_stack_file` returns it.
        project: Name of the project.
        name: The file's name, for messages.
    """
    config = content.get("config") if isinstance(content, dict) else None
    if not isinstance(config, dict):
        return []
    problems = []
    for key, variants in spellings(config, project).items():
        if len(variants) > 1:
            consequence = (
                f"the engine reads each of {', '.join(variants)} as {key}, and which value arrives is left to chance."
            )
            problems.append(Problem(f"{name}: {key}", None, consequence, f"keep {key} only."))
        elif key.startswith((f"{project}:", _PREFIX)) and variants[0] not in (key, key.removeprefix(f"{project}:")):
            consequence = f"the engine reads it as {key}, so readers look for it in vain."
            problems.append(Problem(f"{name}: {variants[0]}", None, consequence, f"write {key}."))
    return problems


def problems_of_namespace(content: object, project: str, name: str) -> list[Problem]:
    """Keys of a stack file that are named like settings, but in the namespace of a project with another name.

    A program of one's own may have such keys; the program of this project reads none of them.

    Args:
        content: The file's content, as `read_stack_file` returns it.
        project: Name of the project.
        name: The file's name, for messages.
    """
    config = content.get("config") if isinstance(content, dict) else None
    if project == NAMESPACE or not isinstance(config, dict):
        return []
    from bezel.planner.base.settings import Settings  # late: few projects come here

    problems = []
    for spelling in map(str, config):
        key = engine_key(spelling, project)
        setting_name = key.removeprefix(f"{project}:")
        if setting_name != key and setting_name in Settings.model_fields:
            consequence = f"the engine reads it as {key}, a key of the project's own program: no stack reads it."
            problems.append(Problem(f"{name}: {spelling}", None, consequence, f"write {_PREFIX}{setting_name}."))
    return problems


def read_stack_file(text: str, name: str) -> tuple[Any, list[Problem]]:
    """The content of a stack file as the engine reads it.

    Args:
        text: The file's content.
        name: The file's name, for messages.

    Returns:
        The content (None for an empty file), and every value in it that two readers interpret differently.

    Raises:
        StackFileError: It is not valid YAML, or refers to itself.
    """
    try:
        root = yaml.compose(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        reader = _Reader(name)
        return (None if root is None else reader.value(root, "", ())), reader.problems
    except (yaml.YAMLError, RecursionError) as error:
        consequence = f"it is not valid YAML, so the stack cannot be read: {error}."
        raise StackFileError(Problem(name, None, consequence, "correct the file at that line.")) from None


_MOST_VALUES = 50_000
"""Values of a file; a few lines of aliases of aliases would be billions."""


class _Reader:
    """Convert the nodes of one file into values, and collect its problems."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0
        self.problems: list[Problem] = []

    def value(self, node: yaml.Node, path: str, above: tuple[yaml.Node, ...]) -> Any:
        if node in above:
            raise self._unreadable(node, f"{path} refers to itself.")
        self._count += 1
        if self._count > _MOST_VALUES:
            raise self._unreadable(node, f"it has more than {_MOST_VALUES:,} values, each alias counted.")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, path)
        if node.tag not in _STRUCTURES:
            self._refuse(node, path, f"no setting has the type {node.tag}", "remove the tag.")
        inside = (*above, node)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, f"{path}.{number}", inside) for number, item in enumerate(node.value)]
        return self._mapping(node, path, inside)

    def _mapping(self, node: yaml.Node, path: str, inside: tuple[yaml.Node, ...]) -> dict[str, Any]:
        own_values: dict[str, Any] = {}
        merged: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag == _MERGE:
                for part in value_node.value if isinstance(value_node, yaml.SequenceNode) else [value_node]:
                    value = self.value(part, path, inside)
                    merged = value | merged if isinstance(value, dict) else merged
                continue
            if not isinstance(key_node, yaml.ScalarNode):
                raise self._unreadable(key_node, "a key is not text.")
            key = self._key(key_node, path)
            below = f"{path}.{key}" if path else key
            if key in own_values:
                self._refuse(key_node, below, "the key is listed twice: one of its values would be lost", "remove one.")
            own_values[key] = self.value(value_node, below, inside)
        return merged | own_values

    def _key(self, node: yaml.ScalarNode, path: str) -> str:
        if not node.style and node.tag in {_NULL, _FLOAT}:
            self._refuse(node, path, "other YAML readers read a key that is not text differently", _quote(node.value))
            return str(node.value)
        key = self._scalar(node, path)
        # As in the engine: keys are text.
        return str(key).lower() if isinstance(key, bool) else str(key)

    def _scalar(self, node: yaml.ScalarNode, path: str) -> object:
        text = str(node.value)
        if node.tag not in {_STR, _NULL, _BOOL, _INT, _FLOAT, _DAY}:
            self._refuse(node, path, f"no setting has the type {node.tag}", _quote(text))
            return text
        if node.style and node.tag == _STR:
            return text
        if node.tag == _NULL:
            return None
        if text in _TRUTH and node.tag == _BOOL:
            return _TRUTH[text]
        if _PLAIN_INT.fullmatch(text) and node.tag == _INT:
            return int(text)
        if _PLAIN_FLOAT.fullmatch(text) and node.tag == _FLOAT:
            return float(text)
        for pattern, consequence in _READINGS:
            if pattern.fullmatch(text):
                switch = "write true or false; for text, " if pattern is _SWITCH else ""
                self._refuse(node, path, consequence, switch + _quote(text))
                break
        return text

    def _refuse(self, node: yaml.Node, path: str, consequence: str, repair: str) -> None:
        value = node.value if isinstance(node, yaml.ScalarNode) else "(a map or a list)"
        key = f"{self._place(node)}: {path.removeprefix('config.')}"
        self.problems.append(Problem(key, value, f"{consequence}.", repair))

    def _unreadable(self, node: yaml.Node, consequence: str) -> StackFileError:
        return StackFileError(Problem(self._place(node), None, consequence, "write plain keys and values."))

    def _place(self, node: yaml.Node) -> str:
        return f"{self._name} line {node.start_mark.line + 1}"


def _quote(text: str) -> str:
    if format_value(text) == NOT_SHOWN:
        return "quote it."
    return f'quote it: "{text}".' if '"' not in text and "\\" not in text else f"quote it: '{text}'."
