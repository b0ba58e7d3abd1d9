"""Update masks: the fields of a resource that a PATCH changes. Pure.

A field that the mask names is copied from the body, and cleared if the body leaves it out; fields that the mask does
not name keep their value, whatever the body holds; "*" names every settable field.
"""

import copy
from collections.abc import Set as AbstractSet
from typing import Any

from bezel_localcloud.core.errors import invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.http.messages import camel, definitions


def apply_mask(old: Json, body: Json, mask: list[str], message: str, settable: AbstractSet[str]) -> Json:
    """The settable fields of a resource after a PATCH.

    Args:
        old: The current resource.
        body: The caller's JSON.
        mask: Paths in camelCase or snake_case, such as "template.service_account"; not empty.
        message: Name of the resource's definition.
        settable: Its fields that can be changed.

    Raises:
        ApiError: INVALID_ARGUMENT for a path that is no field or cannot be changed.
    """
    if mask == ["*"]:
        return {key: value for key, value in body.items() if key in settable}
    updated = copy.deepcopy({key: value for key, value in old.items() if key in settable})
    for path in mask:
        *parents, last = [camel(part) for part in path.split(".")]
        _check(path, [*parents, last], message, settable)
        target, source = updated, body
        for parent in parents:
            target, source = target.setdefault(parent, {}), source.get(parent) or {}
        if last in source:
            target[last] = source[last]
        else:
            target.pop(last, None)
    return updated


def _check(path: str, names: list[str], message: str, settable: AbstractSet[str]) -> None:
    api, kind = message.partition(".")[0], f"@{message.partition('.')[2]}"
    for name in names:
        if kind.startswith("{}"):  # the key of a map
            kind = kind[2:]
        elif kind.startswith("@") and name in definitions()[f"{api}.{kind[1:]}"]:
            kind = definitions()[f"{api}.{kind[1:]}"][name].removeprefix("!")
        else:
            raise invalid(f"Field '{path}' of the update mask is unknown.", ("update_mask", path))
    if names[0] not in settable:
        text = f"Field '{path}' of the update mask cannot be updated; these can: {', '.join(sorted(settable))}."
        raise invalid(text, ("update_mask", path))


def merge(old: Any, new: Any) -> Any:
    """A value after a JSON merge patch (RFC 7396): messages are merged, null removes, everything else is replaced.

    Nulls in lists are removed too, so that `merge({}, body)` is a body without nulls.
    """
    if isinstance(new, list):
        return [merge(None, item) for item in new if item is not None]
    if not isinstance(new, dict):
        return new
    old = old if isinstance(old, dict) else {}
    both = old | {key: merge(old.get(key), value) for key, value in new.items()}
    return {key: value for key, value in both.items() if value is not None}
