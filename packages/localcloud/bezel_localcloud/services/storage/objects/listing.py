"""Lists of objects: prefixes, delimiters, ranges of names, patterns, generations, and their pages."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bezel_localcloud.core.errors import invalid
from bezel_localcloud.core.files.objects import LIVE, NONCURRENT, SOFT_DELETED
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.patterns import PatternError, glob
from bezel_localcloud.core.store import Store
from bezel_localcloud.core.work import TooMuchWorkError, Work
from bezel_localcloud.services.storage.objects.contexts import matcher

CURRENT, VERSIONS, DELETED = (LIVE,), (LIVE, NONCURRENT), (SOFT_DELETED,)
"""Kinds of the rows that a list shows."""
_CHUNK = 500  # rows read at a time
_STEPS, _STEPS_OF_A_ROW = 200_000, 20  # of a page: 10,000 rows, with a simple pattern


@dataclass(frozen=True)
class Query:
    """What a list shows.

    Attributes:
        prefix: Beginning of the names.
        delimiter: Ends the part of a name behind the prefix that is shown; longer names are folded into it.
        start: First name.
        end: Name before which the list ends, "" for none.
        trailing: Whether an object whose name ends with the delimiter is shown besides its folded prefix.
        pattern: Pattern of the names and folded prefixes, "" for all.
        contexts: Filter of the objects by their contexts, "" for all; folded prefixes are shown in any case.
        kinds: Kinds of rows: live objects only, all generations, or soft-deleted ones.
    """

    prefix: str = ""
    delimiter: str = ""
    start: str = ""
    end: str = ""
    trailing: bool = False
    pattern: str = ""
    contexts: str = ""
    kinds: tuple[str, ...] = CURRENT


@dataclass(frozen=True)
class Entry:
    """One line of a list.

    Attributes:
        name: Name of the object, or the folded prefix.
        row: The object, None for a prefix.
        key: Where it stands in the list; lists continue behind a key.
    """

    name: str
    row: Json | None
    key: str


@dataclass(frozen=True)
class Page:
    """One page of a list; `after` is the key of its last entry where more follow, else ""."""

    items: list[Json]
    prefixes: list[str]
    after: str = ""


def page(store: Store, bucket: str, query: Query, size: int, after: str = "") -> Page:
    """Return the entries behind a key, at most `size` of them.

    A page ends early, with a key to continue behind, where more rows would have to be read than a request may: as with
    Google, a page can have fewer entries than what follows.

    Raises:
        ApiError: INVALID_ARGUMENT for a malformed pattern or filter, or a pattern that takes too much work.
    """
    work = Work(_STEPS)
    fits, has_contexts = _matcher(query.pattern, work), matcher(query.contexts)
    shown: list[Entry] = []
    examined = after
    try:
        for key, entry in _entries(store, bucket, query, after):
            work.spend(_STEPS_OF_A_ROW)
            if entry and fits(entry.name) and (entry.row is None or has_contexts(entry.row)):
                if len(shown) == size:
                    return _page(shown, shown[-1].key)
                shown.append(entry)
            examined = key
    except TooMuchWorkError:
        return _page(shown, examined)
    return _page(shown, "")


def _page(shown: list[Entry], after: str) -> Page:
    items = [entry.row for entry in shown if entry.row is not None]
    return Page(items, [entry.name for entry in shown if entry.row is None], after)


def _entries(store: Store, bucket: str, query: Query, after: str) -> Iterator[tuple[str, Entry | None]]:
    """(key, entry) of each row behind a key in the order of names, then of generations; None for one that is folded."""
    folded = ""
    after_name, _, after_generation = after.partition("\n")
    for row in _rows(store, bucket, query, after_name):
        name, generation = row["name"], f"{row['generation']:0>20}"
        if query.end and name >= query.end:
            return
        head, delimiter, rest = _partition(name[len(query.prefix) :], query.delimiter)
        prefix = query.prefix + head + delimiter
        # A folded prefix stands before all that it folds, and a page may end with it.
        if delimiter and prefix != folded and prefix > after_name and not after_name.startswith(prefix):
            yield prefix, Entry(prefix, None, prefix)
        folded = prefix if delimiter else folded
        key = f"{name}\n{generation}"
        if (not delimiter or (query.trailing and not rest)) and (name, generation) > (after_name, after_generation):
            yield key, Entry(name, row, key)
        else:
            yield key, None


def _partition(name: str, delimiter: str) -> tuple[str, str, str]:
    return name.partition(delimiter) if delimiter else (name, "", "")


def _rows(store: Store, bucket: str, query: Query, after: str) -> Iterator[Json]:
    """The rows from a name on."""
    prefix = f"{bucket}/{query.prefix}"
    first = max(query.start, after)
    if query.kinds != (LIVE,):
        rows = [row for kind in query.kinds for _, row in store.rows(kind, prefix) if row["name"] >= first]
        yield from sorted(rows, key=lambda row: (row["name"], int(row["generation"])))
        return
    first_row = store.get(LIVE, f"{bucket}/{first}")
    if first and first_row and first.startswith(query.prefix):
        yield first_row
    name = f"{bucket}/{first}" if first else ""
    while rows_now := store.rows(LIVE, prefix, after=name, limit=_CHUNK):
        yield from (row for _, row in rows_now)
        name = rows_now[-1][0]


def _matcher(pattern: str, work: Work) -> Callable[[str], bool]:
    if not pattern:
        return lambda _: True
    try:
        compiled = glob(pattern, work)
    except (PatternError, TooMuchWorkError) as error:
        raise invalid(f"Invalid glob pattern {pattern[:200]!r}: {error}", ("matchGlob", str(error))) from None
    return lambda name: compiled.fits(name, work)
