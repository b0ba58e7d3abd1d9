"""Variables in a text, as a POSIX shell and compose files write them: `$NAME`, `${NAME}`, `${NAME:-default}`.

Only variables that the text itself sets have a value: no variable of this process is read, and no command is run. What
has none stays as it is written, and is `OPEN`. Pure.
"""

from __future__ import annotations

import re

_DEEPEST = 10
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|\d")
_INSIDE = re.compile(r"(\w+)(:?[-+?=])?(.*)", re.DOTALL)
_QUOTED = re.compile(r"([\"'])(.*)\1", re.DOTALL)
PLACEHOLDER = re.compile(r"<[A-Za-z][\w .-]*>")
"""A word that the reader of a document is to fill in, such as `<PROJECT>`."""
OPEN = re.compile(rf"\$\{{.*?\}}|\$\(|`|{PLACEHOLDER.pattern}", re.DOTALL)
"""What is still to be filled in: a variable without a value, a command's output, a placeholder."""


def expand(text: str, variables: dict[str, str], depth: int = 0) -> str:
    """A text with its variables; `$$` is a dollar, as compose files have it.

    Args:
        text: The text.
        variables: Those that have a value.
        depth: Of a default inside of a default; below ten of them a text stays as it is.
    """
    parts, place = [], 0
    while place < len(text):
        if text[place] != "$":
            end = text.find("$", place)
            end = len(text) if end < 0 else end
            parts.append(text[place:end])
            place = end
        elif text.startswith("$$", place):
            parts.append("$")
            place += 2
        else:
            value, place = expand_at(text, place, variables, depth)
            parts.append(value)
    return "".join(parts)


def expand_at(text: str, place: int, variables: dict[str, str], depth: int = 0) -> tuple[str, int]:
    """The value of the variable that begins with the `$` at a place, and the place after it."""
    if text.startswith("${", place):
        end = closing_place(text, place + 2, "{", "}")
        return _value_in_braces(text[place + 2 : end], variables, depth), end + 1
    if match := _NAME.match(text, place + 1):
        return variables.get(match[0], f"${{{match[0]}}}"), match.end()
    return "$", place + 1


def closing_place(text: str, place: int, opening: str, closing: str) -> int:
    """The place of the sign that closes what was opened before a place; the end of the text without one."""
    depth = 1
    for at in range(place, len(text)):
        depth += (text[at] == opening) - (text[at] == closing)
        if depth == 0:
            return at
    return len(text)


def _value_in_braces(inside: str, variables: dict[str, str], depth: int) -> str:
    match = _INSIDE.fullmatch(inside) if depth < _DEEPEST else None
    if match is None or (match[3] and not match[2]):
        return f"${{{inside}}}"  # a form that needs a shell, such as `${LIST[@]}`
    name, operator, other = match[1], match[2] or "", match[3]
    value = variables.get(name)
    has_value = bool(value) if ":" in operator else value is not None
    if operator.endswith("+"):
        return _other(other, variables, depth) if has_value else ""
    if has_value and value is not None:
        return value
    return _other(other, variables, depth) if operator[-1:] in ("-", "=") else f"${{{name}}}"


def _other(text: str, variables: dict[str, str], depth: int) -> str:
    """A default, without the quotes around it."""
    quoted = _QUOTED.fullmatch(text)
    return expand(quoted[2] if quoted else text, variables, depth + 1)
