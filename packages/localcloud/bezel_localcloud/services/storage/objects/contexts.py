"""Contexts of objects: pairs of a key and a value that lists can be filtered by. Pure.

Source: Cloud Storage's pages on object contexts and on their use. Leaves out contexts that Google's services attach.
"""

import re
from collections.abc import Callable

from bezel_localcloud.core.errors import invalid
from bezel_localcloud.core.json_types import Json

_MOST, _LONGEST = 50, 256  # contexts of an object, bytes of a key and of a value
_WRONG = re.compile(r"""['"\\/]""")
_FILTER = re.compile(r"""(?P<absent>-)?contexts\."(?P<key>[^"]+)"(?::\*|="(?P<value>[^"]*)")""")
_PERMISSIONS = {"create": "createContext", "update": "updateContext", "delete": "deleteContext"}


def with_contexts(old: Json, fields: Json, now: str) -> tuple[Json, list[str]]:
    """Give the contexts of an object their times.

    Args:
        old: The object before; {} for a new one.
        fields: Its fields now, with `contexts` as the caller wants them.
        now: Timestamp.

    Returns:
        The fields, and the permissions that the change takes.

    Raises:
        ApiError: INVALID_ARGUMENT for a key or a value that Google refuses.
    """
    before, wanted = custom(old), custom(fields)
    if len(wanted) > _MOST:
        text = f"An object can have at most {_MOST} contexts, not {len(wanted)}."
        raise invalid(text, ("contexts.custom", f"{len(wanted)} contexts"))
    contexts: Json = {}
    changes = {"delete"} if before.keys() - wanted.keys() else set()
    for key, payload in wanted.items():
        value = str(payload.get("value") or "")
        _check("key", key)
        _check("value", value)
        previous = before.get(key)
        if previous and previous["value"] == value:
            contexts[key] = previous
            continue
        changes.add("update" if previous else "create")
        contexts[key] = {"value": value, "createTime": previous["createTime"] if previous else now, "updateTime": now}
    rest = {name: value for name, value in fields.items() if name != "contexts"}
    permissions = [f"storage.objects.{_PERMISSIONS[change]}" for change in sorted(changes)]
    return rest | ({"contexts": {"custom": contexts}} if contexts else {}), permissions


def custom(row: Json) -> Json:
    """The contexts of an object."""
    return (row.get("contexts") or {}).get("custom") or {}


def matcher(text: str) -> Callable[[Json], bool]:
    """A test whether an object fits a filter, "" for all.

    Raises:
        ApiError: INVALID_ARGUMENT for a filter of another form.
    """
    if not text:
        return lambda _: True
    match = _FILTER.fullmatch(text.strip())
    if match is None:
        forms = """contexts."KEY"="VALUE", contexts."KEY":*, and the same with '-' before it"""
        raise invalid(f"Invalid filter {text!r}: expected {forms}.", ("filter", text))
    key, value, wanted = match["key"], match["value"], match["absent"] is None

    def fits(row: Json) -> bool:
        context = custom(row).get(key)
        return (context is not None and value in {None, context["value"]}) == wanted

    return fits


def _check(part: str, text: str) -> None:
    if not 0 < len(text.encode(errors="replace")) <= _LONGEST or not text[0].isalnum() or _WRONG.search(text):
        rule = f"it must have 1 to {_LONGEST} bytes, begin with a letter or a digit, and not contain ', \", \\ or /."
        raise invalid(f"Invalid context {part} {text!r}: {rule}", (f"contexts.custom.{part}", text))
