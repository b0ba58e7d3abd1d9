"""Text of a stack file with other values of single settings: comments, order and layout of everything else stay.

Owns where a value stands in the text, by the marks of the YAML parser. What writes YAML anew (ruamel.yaml, and the
engine's `pulumi config set`) changes quotes, indentation and line breaks elsewhere too. The result is read
again: where it says anything else than what was meant, as with an anchor that has two uses, nothing is changed. Pure.
"""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import yaml

from bezel.planner.base.stack_file import StackFileError, read_stack_file
from bezel_base.errors import Problem, UserError

Value = Any
"""A value as JSON has it; a text is quoted."""


class NoPlaceError(Exception):
    """The value has no place in the text."""


_CONFIG = "config"
_INDENT = "  "


def with_setting(text: str, file: str, project: str, path: Sequence[str], value: Value) -> str:
    """The text of a stack file in which a setting has a value.

    Args:
        text: The file's text.
        file: Its name, for messages.
        project: The namespace of the settings.
        path: The setting, e.g. `("scaling", "min_instances")`.
        value: The value; a list or a map takes the place of another one as a whole, and never that of a single value.

    Raises:
        UserError: The file is not valid, or the value cannot be written without changing anything else.
    """
    content = content_of(text, file)
    keys = keys_of(content, project, path)
    try:
        changed = _edit_text(text, keys, value)
        is_meant = read_stack_file(changed, file) == (_content_with(content, keys, value), [])
    except (NoPlaceError, StackFileError, yaml.YAMLError):
        is_meant = False
    if not is_meant:
        raise _by_hand(file, keys, value)
    return changed


def content_of(text: str, file: str) -> Any:
    """The content of a stack file.

    Raises:
        UserError: It is not valid.
    """
    content, problems = read_stack_file(text, file)
    if problems:
        raise UserError(*problems)
    return content


def keys_of(content: Any, project: str, path: Sequence[str]) -> tuple[str, ...]:
    """The keys of a setting in a file, from the top; as it is spelled there, if it is there."""
    config = (content or {}).get(_CONFIG) if isinstance(content or {}, dict) else None
    settings = config if isinstance(config, dict) else {}
    # The engine takes a key without a namespace as one of the project's own.
    first = path[0] if path[0] in settings else f"{project}:{path[0]}"
    return (_CONFIG, first, *path[1:])


def value_at(content: Any, keys: Sequence[str]) -> Any:
    """What a file's content has at these keys; None for nothing."""
    for key in keys:
        content = content.get(key) if isinstance(content, dict) else None
    return content


def _content_with(content: Any, keys: Sequence[str], value: Value) -> Any:
    meant = deepcopy(content) if content is not None else {}
    inside = meant
    for key in keys[:-1]:
        if not isinstance(inside, dict):
            raise NoPlaceError(key)
        if inside.get(key) is None:
            inside[key] = {}
        inside = inside[key]
    if not isinstance(inside, dict):
        raise NoPlaceError(keys)
    inside[keys[-1]] = value
    return meant


def _edit_text(text: str, keys: Sequence[str], value: Value) -> str:
    """The text with the value at its place, or with a new entry at the end of the deepest mapping that is there."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if root is None:
        return text + ("" if not text or text.endswith("\n") else "\n") + _block(keys, value, 0, "\n")
    node: yaml.Node = root
    for number, key in enumerate(keys):
        if not isinstance(node, yaml.MappingNode):
            raise NoPlaceError(key)
        values = [below for name, below in node.value if getattr(name, "value", None) == key]
        if not values:
            return _with_entry(text, node, keys[number:], value)
        (node,) = values
        if _is_null(node):
            return _put(text, node, flow(keys[number + 1 :], value))
    if isinstance(node, yaml.ScalarNode):
        return _put(text, node, flow((), value))
    if not isinstance(value, dict | list):
        raise NoPlaceError(keys)
    return text[: node.start_mark.index] + flow((), value) + text[_last_of(text, node) :]


def _last_of(text: str, node: yaml.Node) -> int:
    """End of what a collection says, before the line end of its last value."""
    end = int(node.end_mark.index) if getattr(node, "flow_style", True) else end_of(node)
    while text[end - 1] in "\r\n":
        end -= 1
    return end


def _is_null(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:null"


def _put(text: str, node: yaml.Node, new: str) -> str:
    start, end = node.start_mark.index, node.end_mark.index
    if start == end:  # nothing is written there, not even a blank after the colon
        new = f" {new}"
    return text[:start] + new + text[end:]


def _with_entry(text: str, node: yaml.MappingNode, keys: Sequence[str], value: Value) -> str:
    if node.flow_style:
        end = node.end_mark.index - 1
        head = text[:end].rstrip()
        comma = ", " if node.value else ""
        return f"{head}{comma}{keys[0]}: {flow(keys[1:], value)}{text[end:]}"
    if not node.value:
        raise NoPlaceError(keys)
    end = end_of(node)
    line = text.find("\n", end)
    newline = "\r\n" if "\r\n" in text else "\n"
    if end and text[end - 1] == "\n":
        at, before = end, ""
    elif line >= 0:
        at, before = line + 1, ""
    else:
        at, before = len(text), newline
    block = _block(keys, value, node.value[0][0].start_mark.column, newline)
    return text[:at] + before + block + text[at:]


def end_of(node: yaml.Node) -> int:
    """End of the last value in a node; a block mapping's own end is after the comments that follow it."""
    while isinstance(node, yaml.MappingNode | yaml.SequenceNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(node, yaml.MappingNode) else last
    return int(node.end_mark.index)


def _block(keys: Sequence[str], value: Value, column: int, newline: str) -> str:
    lines = [f"{' ' * column}{_INDENT * depth}{key}:" for depth, key in enumerate(keys)]
    return newline.join([*lines[:-1], f"{lines[-1]} {flow((), value)}"]) + newline


def flow(keys: Sequence[str], value: Value) -> str:
    """A value below keys, on one line."""
    shown = json.dumps(value)
    for key in reversed(keys):
        shown = f"{{{key}: {shown}}}"
    return shown


def _by_hand(file: str, keys: Sequence[str], value: Value) -> UserError:
    consequence = "the value cannot be written there without changing anything else in the file; nothing was changed."
    lines: Mapping[str, Any] = {keys[-1]: value}
    for key in reversed(keys[1:-1]):
        lines = {key: lines}
    repair = f"write it by hand: {json.dumps(lines)}, then deploy the stack."
    return UserError(Problem(f"{file}: {'.'.join(keys[1:])}", value, consequence, repair))
