"""Compared fields: a table of paths, each with Google's default, and the comparison of a resource by it. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bezel.outside_changes.change import NOT_SET, Kind

CHOSEN = object()
"""Default of a field that Google chooses: only a declared value is compared."""


@dataclass(frozen=True)
class Field:
    """A compared field.

    Attributes:
        path: Its path in Google's API.
        kind: What a change of it does.
        default: Google's default, which an undeclared field has.
        flag: Flag of gcloud that restores it, where a refresh cannot.
        declared: Its path in the declaration, "" where it is the same.
    """

    path: str
    kind: Kind
    default: Any = CHOSEN
    flag: str = ""
    declared: str = ""

    def differs(self, wanted: Any, there: Any) -> bool:
        """Whether a live value is neither the declared one nor, without one, the default."""
        if wanted is None and self.default is CHOSEN:
            return False
        default = "" if self.default is CHOSEN else self.default
        return not _same(default if wanted is None else wanted, there, default)


def differences(
    fields: Iterable[Field], declared: Mapping[str, Any], live: Mapping[str, Any]
) -> Iterator[tuple[Field, Any, Any]]:
    """Each field that differs, with its live and its declared value."""
    for item in fields:
        wanted, there = declared_at(declared, item.declared or item.path), value_at(live, item.path)
        if item.differs(wanted, there):
            yield item, there, wanted


def declared_at(declared: Mapping[str, Any], path: str) -> Any:
    """The value at a path of a declaration; None for an empty one."""
    value = value_at(declared, path)
    return None if value in ("", [], {}) else value


def value_at(values: Any, path: str) -> Any:
    """The value at a path, None without one."""
    for part in path.split("."):
        values = values.get(part) if isinstance(values, Mapping) else None
    return values


def text_of(value: Any) -> str:
    """A value as it is shown."""
    if value is None or value in ("", [], {}, ()):
        return NOT_SET
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, list | tuple):
        return (
            " or ".join(map(str, value)) if all(isinstance(each, int) for each in value) else ", ".join(map(str, value))
        )
    return str(value)


def short_name(name: object) -> str:
    """Last part of a name."""
    return str(name or "").rpartition("/")[2]


def same_resource(wanted: str, there: str) -> bool:
    """Whether two names are those of one resource; one may be short, the other a path or an address."""
    paths = [f"projects/{name.partition('projects/')[2]}" if "projects/" in name else "" for name in (wanted, there)]
    return paths[0] == paths[1] if all(paths) else short_name(wanted) == short_name(there)


def _same(wanted: Any, there: Any, default: Any) -> bool:
    """Whether two values are the same; responses leave out zero values, and list the unspecified one by its name."""
    if isinstance(there, str) and there.endswith("_UNSPECIFIED"):
        there = None
    there = default if there is None or there in ((), [], {}) else there
    if isinstance(wanted, list | tuple) or isinstance(there, list | tuple):
        return sorted(map(str, wanted or ())) == sorted(map(str, there or ()))
    if isinstance(wanted, bool) or isinstance(there, bool):
        return bool(wanted) == bool(there)
    if isinstance(wanted, int | float) or isinstance(there, int | float):
        return float(wanted or 0) == float(there or 0)
    return (wanted or "") == (there or "")
