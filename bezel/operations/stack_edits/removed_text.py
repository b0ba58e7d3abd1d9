"""Text of a stack file without single settings: comments, order and layout of everything else stay.

As of `file_text`: where the result says anything else than what was meant, nothing is changed. Pure.
"""

import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import yaml

from bezel.operations.stack_edits.file_text import NoPlaceError, content_of, end_of, flow, keys_of
from bezel.planner.base.stack_file import StackFileError, read_stack_file
from bezel_base.errors import Problem, UserError

_SETTING = 2
"""Keys of a setting without a section: `config`, and its own."""


def without_setting(text: str, file: str, project: str, path: Sequence[str]) -> str:
    """The text of a stack file without a setting, and without the section that it was alone in.

    A setting that is not there leaves the text as it is.

    Args:
        text: The file's text.
        file: Its name, for messages.
        project: The namespace of the settings.
        path: The setting, e.g. `("scaling", "min_instances")`.

    Raises:
        UserError: The file is not valid, or the setting cannot be removed without changing anything else.
    """
    content = content_of(text, file)
    keys = keys_of(content, project, path)
    if not is_there(content, keys):
        return text
    try:
        while len(keys) > _SETTING and len(_map_at(content, keys[:-1])) == 1:
            keys = keys[:-1]
        meant = deepcopy(content)
        del _map_at(meant, keys[:-1])[keys[-1]]
        changed = _remove(text, keys, _map_at(meant, keys[:-1]))
        is_meant = read_stack_file(changed, file) == (meant, [])
    except (NoPlaceError, StackFileError, yaml.YAMLError):
        is_meant = False
    if not is_meant:
        consequence = "it cannot be removed without changing anything else in the file; nothing was changed."
        repair = f"remove {json.dumps(keys[-1])} by hand."
        raise UserError(Problem(f"{file}: {'.'.join(keys[1:])}", None, consequence, repair))
    return changed


def is_there(content: Any, keys: Sequence[str]) -> bool:
    """Whether a file's content has something at these keys."""
    for key in keys:
        if not isinstance(content, dict) or key not in content:
            return False
        content = content[key]
    return True


def _map_at(content: Any, keys: Sequence[str]) -> dict[str, Any]:
    for key in keys:
        content = content[key]
    if not isinstance(content, dict):
        raise NoPlaceError(keys)
    return content


def _remove(text: str, keys: Sequence[str], rest: Mapping[str, Any]) -> str:
    """The text without an entry of a mapping, of which the rest stays; a flow mapping is written anew."""
    above, name, value = _entry_at(text, keys)
    if above.flow_style:
        return text[: above.start_mark.index] + flow((), rest) + text[above.end_mark.index :]
    if not rest:
        raise NoPlaceError(keys)
    begin = text.rfind("\n", 0, name.start_mark.index) + 1
    end = max(end_of(value), int(name.end_mark.index))
    if text[end - 1] != "\n":
        line = text.find("\n", end)
        end = len(text) if line < 0 else line + 1
    return text[:begin] + text[end:]


def _entry_at(text: str, keys: Sequence[str]) -> tuple[yaml.MappingNode, yaml.Node, yaml.Node]:
    """The mapping that holds the last key, the key and its value."""
    node: yaml.Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    for number, key in enumerate(keys):
        if not isinstance(node, yaml.MappingNode):
            break
        entries = [pair for pair in node.value if getattr(pair[0], "value", None) == key]
        if len(entries) != 1:
            break
        if number == len(keys) - 1:
            return node, *entries[0]
        node = entries[0][1]
    raise NoPlaceError(keys)
