"""Planned properties of a resource, from the desired and the known ones, and the differences between them.

Pure functions. The central rule is about a property that the program leaves out: a value chosen by Google (COMPUTED)
is unchanged, any other returns to its default. Null and the zero of a kind are the same value.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from bezel_pulumi_offline.lifecycle.comparisons import KEPT
from bezel_pulumi_offline.lifecycle.fields import Field, Fields, Kind, Mark
from bezel_pulumi_offline.lifecycle.mapping import zero
from bezel_pulumi_offline.lifecycle.sets import ZEROS, in_state_order, without_repeats
from bezel_pulumi_offline.lifecycle.values import UNKNOWN, Properties, has_unknown, unknown


def plan(
    fields: Fields,
    inputs: Mapping[str, Any],
    prior: Mapping[str, Any] | None,
    project: str | None = None,
    *,
    creating: bool | None = None,
) -> Properties:
    """Return all properties as planned for after the operation.

    Args:
        fields: The type's properties.
        inputs: The checked inputs.
        prior: The outputs so far, or None where the object does not exist yet: then Google's choices are unknown.
        project: The value of a property marked PROJECT that the program does not set.
        creating: Whether the whole resource does not exist yet; `prior` may also be None for an object inside an
            existing one.
    """
    creating = prior is None if creating is None else creating
    result: Properties = {}
    for field in fields:
        value = None if field.marks & Mark.OUTPUT else inputs.get(field.name)
        before = None if prior is None else prior.get(field.name)
        if value is not None:
            result[field.name] = _planned_value(field, value, before, creating=creating)
        elif field.marks & Mark.PROJECT and prior is None:
            result[field.name] = project
        elif field.marks & (Mark.COMPUTED | Mark.OUTPUT):
            result[field.name] = UNKNOWN if prior is None else before
        elif field.kind is Kind.BLOCKS or (field.kind is Kind.ITEMS and before == []):
            result[field.name] = []
        elif field.kind is Kind.TABLE and before == {}:
            result[field.name] = {}
        elif field.same and before is not None and field.same(before, field.default):
            result[field.name] = before  # what makes no difference stays as it is
        else:
            result[field.name] = field.default
    return result


def _planned_value(field: Field, value: Any, before: Any, *, creating: bool) -> Any:
    if unknown(value) or (field.kind is Kind.ITEMS and has_unknown(value)):
        return UNKNOWN
    if field.kind is Kind.BLOCK:
        prior = before if isinstance(before, Mapping) else None
        planned = plan(field.fields, value, prior, creating=creating)
        if field.marks & Mark.SET:
            return _member(field, value, prior, planned, creating=creating)
        return planned
    if field.kind is Kind.BLOCKS:
        befores = before if isinstance(before, list) else []
        members = in_state_order(field, without_repeats(field, value)) if field.marks & Mark.SET else value
        if field.marks & Mark.SET:
            befores = _equal_members(field, members, befores, creating=creating)
        return [
            UNKNOWN
            if unknown(item)
            else _fill_zeros(
                field, plan(field.fields, item, befores[index] if index < len(befores) else None, creating=creating)
            )
            for index, item in enumerate(members)
        ]
    if field.kind is Kind.ITEMS and field.marks & Mark.SET:
        return in_state_order(field, without_repeats(field, value))
    if field.same and field.same not in KEPT and field.same(before, value):
        return before  # a difference that the provider suppresses: what is known stays
    if field.kept and isinstance(value, Mapping) and isinstance(before, Mapping):
        return {name: item for name, item in before.items() if field.kept in ("*", name)} | dict(value)
    return value


def _member(
    field: Field, value: Mapping[str, Any], prior: Mapping[str, Any] | None, planned: Properties, *, creating: bool
) -> Properties:
    """Plan a set of one member: an equal member is unchanged, a different one replaces it.

    The new member inherits nothing from the old one: values that Google chose for the old one are null, or unknown
    before a create.
    """
    if prior is not None and not any(differences(field.fields, prior, planned)):
        return dict(prior)
    fresh = plan(field.fields, value, None, creating=creating)
    if not creating:
        fresh = {name: None if unknown(made) and not unknown(value.get(name)) else made for name, made in fresh.items()}
    return _fill_zeros(field, fresh)


def _equal_members(
    field: Field, items: list[Any], befores: list[Any], *, creating: bool
) -> list[Mapping[str, Any] | None]:
    """Return the known member that each desired one of a set equals: it keeps the values that Google has computed.

    A known member is that of one desired one at most. Those that set more properties come first: one that leaves out a
    computed property equals the known members with any value of it.
    """
    equals: list[Mapping[str, Any] | None] = [None] * len(items)
    free = [before for before in befores if isinstance(before, Mapping)]
    mappings = [index for index, item in enumerate(items) if isinstance(item, Mapping)]
    for index in sorted(mappings, key=lambda place: -len(items[place])):
        for before in free:
            planned = plan(field.fields, items[index], before, creating=creating)
            if not any(differences(field.fields, before, planned)):
                equals[index] = before
                free.remove(before)
                break
    return equals


def _fill_zeros(field: Field, planned: Properties) -> Properties:
    """Replace nulls in a member of a set: a text or list that is left out is the zero of its kind at once."""
    empty: dict[Kind, Any] = {Kind.TEXT: "", Kind.ITEMS: []} if field.marks & Mark.SET else {}
    kinds = {inner.name: inner.kind for inner in field.fields}
    return {name: empty.get(kinds[name]) if value is None else value for name, value in planned.items()}


def foreseen_properties(
    fields: Fields, planned: Mapping[str, Any], prior: Mapping[str, Any], *, inside: bool = False
) -> Properties:
    """Return the planned properties as the preview of an update shows them, where an absent value is a zero.

    Args:
        fields: The properties.
        planned: The planned ones.
        prior: The outputs so far: one that is zero there stays as it is.
        inside: Whether they are of an object in the resource, whose values and lists are never null; those of the
            resource itself are null until they have been read.
    """
    result: Properties = {}
    for field in fields:
        value, before = planned.get(field.name), prior.get(field.name)
        if value is None and field.kind not in (Kind.BLOCK, Kind.ASSET):
            value = before if before is not None and zero(before) else ZEROS.get(field.kind, 0) if inside else None
        elif field.kind is Kind.BLOCK and isinstance(value, Mapping) and not unknown(value):
            value = foreseen_properties(field.fields, value, before if isinstance(before, Mapping) else {}, inside=True)
        elif field.kind is Kind.BLOCKS and isinstance(value, list):
            befores = before if isinstance(before, list) else []
            befores = [item if isinstance(item, Mapping) else {} for item in befores]
            value = [
                item
                if unknown(item)
                else foreseen_properties(
                    field.fields, item, befores[index] if index < len(befores) else {}, inside=True
                )
                for index, item in enumerate(value)
            ]
        result[field.name] = value
    return result


def without_ignored(items: Iterable["PropertyDifference"], ignored: Collection[str]) -> Iterator["PropertyDifference"]:
    """Yield the differences that are neither in an ignored property nor secondary to ignored ones.

    Args:
        items: All differences.
        ignored: Paths of properties whose changes the program ignores.
    """
    left = [difference for difference in items if not any(_within(difference.path, path) for path in ignored)]
    if not all(difference.secondary for difference in left):
        yield from left


def _within(path: str, parent: str) -> bool:
    return path == parent or path.startswith((parent + ".", parent + "["))


@dataclass(frozen=True, slots=True)
class PropertyDifference:
    """One differing value.

    Attributes:
        path: Path of the value.
        kind: ADD, DELETE or UPDATE.
        replaces: Whether it requires a new resource.
        secondary: Whether it is reported only together with another difference of the resource.
    """

    path: str
    kind: str
    replaces: bool
    secondary: bool = False

    @property
    def top(self) -> str:
        """The top-level property that contains it."""
        return self.path.split(".", 1)[0].split("[", 1)[0]


def differences(
    fields: Fields, prior: Mapping[str, Any], planned: Mapping[str, Any], prefix: str = ""
) -> Iterator[PropertyDifference]:
    """Yield every value in which the planned properties differ from the known ones, leaves only.

    A block marked NEW requires a new resource when it is added or removed; for a change inside it, the marks of the
    changed properties decide, as they do when the block is added or removed with them.
    """
    for field in fields:
        if field.marks & Mark.OUTPUT and not field.marks & Mark.LOCAL:
            continue  # set by Google only; it follows from the other changes
        yield from _field(
            field,
            prior.get(field.name),
            planned.get(field.name),
            prefix + field.name,
            replaces=bool(field.marks & Mark.NEW),
        )


def _field(field: Field, old: Any, new: Any, path: str, *, replaces: bool) -> Iterator[PropertyDifference]:
    if unknown(new):
        if not field.marks & Mark.OUTPUT and not (field.same and field.same(old, new)):
            yield PropertyDifference(path, "ADD" if old is None else "UPDATE", replaces)
    elif field.kind is Kind.BLOCK and isinstance(old, Mapping) and isinstance(new, Mapping):
        changes = list(differences(field.fields, old, new, path + "."))
        yield from _replacements(field, old, new, path) if changes and field.marks & Mark.SET else changes
        if not field.marks & Mark.SET:
            yield from _secondary(field, old, new, path)
    elif field.kind is Kind.TABLE and not (zero(old) and zero(new)):
        yield from _table(old, new or {}, path, replaces=replaces)
    elif field.kind is Kind.BLOCKS and field.marks & Mark.SET and path == field.name:
        yield from _set(field, old or [], new or [], path, replaces=replaces)
    elif field.kind in (Kind.BLOCKS, Kind.ITEMS) and not _same(field, old, new):
        yield from _list(field, old, new or [], path, replaces=replaces)
    elif not _same(field, old, new):
        replaces = replaces or bool(field.renews and field.renews(old, new))
        yield PropertyDifference(path, _kind(old, new), replaces or _needs_new(field, old, new))


def _secondary(field: Field, old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[PropertyDifference]:
    """Report the maps of an object that were never read as added, wherever else the resource changes, as recorded."""
    for inner in field.fields:
        if inner.kind is Kind.TABLE and old.get(inner.name) is None and zero(new.get(inner.name)):
            yield PropertyDifference(f"{path}.{inner.name}", "ADD", replaces=False, secondary=True)


def _replacements(
    field: Field, old: Mapping[str, Any], new: Mapping[str, Any], path: str
) -> Iterator[PropertyDifference]:
    """Report every value in which a member of a set differs from its replacement, also a zero that becomes null."""
    for inner in field.fields:
        before, after = old.get(inner.name), new.get(inner.name)
        if before != after:
            yield PropertyDifference(f"{path}.{inner.name}", _kind(before, after), bool(inner.marks & Mark.NEW))


def _needs_new(field: Field, old: Any, new: Any) -> bool:
    """Whether an object that is added or removed sets a property that requires a new resource (NEW).

    A property of a removed object returns to its default, so that one which has it has not changed.
    """
    value = new if old is None else old
    if not isinstance(value, Mapping):
        return False
    for inner in field.fields:
        had = value.get(inner.name)
        if zero(had) or (new is None and had == inner.default):
            continue
        if inner.marks & Mark.NEW or (_needs_new(inner, None, had) if old is None else _needs_new(inner, had, None)):
            return True
    return False


def _same(field: Field, old: Any, new: Any) -> bool:
    if field.marks & Mark.EMPTY and (old is None) != (new is None):
        return False  # the presence of an empty object has a meaning
    return old == new or (zero(old) and zero(new)) or bool(field.same and field.same(old, new))


def _table(
    old: Mapping[str, Any] | None, new: Mapping[str, Any], path: str, *, replaces: bool
) -> Iterator[PropertyDifference]:
    if old is None:
        yield PropertyDifference(path, "ADD", replaces)
        return
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key):
            where = f"{path}.{key}" if key.replace("_", "a").isalnum() else f'{path}["{key}"]'
            yield PropertyDifference(where, _kind(old.get(key), new.get(key)), replaces)


def _list(
    field: Field, old: list[Any] | None, new: list[Any], path: str, *, replaces: bool
) -> Iterator[PropertyDifference]:
    if not old or not new:  # the whole list is added or removed
        kind, renewed = (
            ("DELETE", any(_needs_new(field, item, None) for item in old))
            if old
            else ("ADD", any(_needs_new(field, None, item) for item in new))
        )
        yield PropertyDifference(path, kind, replaces or renewed)
        return
    if field.kind is Kind.ITEMS and field.marks & Mark.SET and {*new} < {*old}:  # members of a set only go
        removed = [index for index, item in enumerate(old) if item not in new]
        yield from (PropertyDifference(f"{path}[{index}]", "DELETE", replaces) for index in removed)
        return
    for index in range(max(len(old), len(new))):
        before = old[index] if index < len(old) else None
        after = new[index] if index < len(new) else None
        where = f"{path}[{index}]"
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from differences(field.fields, before, after, where + ".")
        elif before != after and not (field.same and field.same([before], [after])):
            yield PropertyDifference(where, _kind(before, after), replaces or _needs_new(field, before, after))


def _set(field: Field, old: list[Any], new: list[Any], path: str, *, replaces: bool) -> Iterator[PropertyDifference]:
    """Report a set of objects of the resource itself: its removed members, or all of it where there are new ones."""

    def has(members: list[Any], wanted: Any) -> bool:
        return any(
            isinstance(each, Mapping)
            and isinstance(wanted, Mapping)
            and not any(differences(field.fields, each, wanted))
            for each in members
        )

    if any(not has(old, member) for member in new):
        yield PropertyDifference(path, "UPDATE" if old else "ADD", replaces)
    else:
        for index, member in enumerate(old):
            if not has(new, member):
                yield PropertyDifference(f"{path}[{index}]" if new else path, "DELETE", replaces)
                if not new:
                    return


def _kind(old: Any, new: Any) -> str:
    return "ADD" if old is None else "DELETE" if new is None else "UPDATE"
