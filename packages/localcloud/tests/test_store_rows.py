"""Rows that the store keeps in memory: they never differ from those of its file, whatever happens to a change."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_localcloud.core import store as store_module
from bezel_localcloud.core.store import Store

NAMES = ("a", "b")
# The longest of these is not kept.
VALUES = st.sampled_from((1, 2, "x" * store_module._LONGEST_KEPT))
CHANGES = st.one_of(
    st.tuples(st.just("put"), st.sampled_from(NAMES), VALUES),
    st.tuples(st.just("delete"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("put_policy"), st.sampled_from(NAMES), VALUES),
    st.tuples(st.just("delete_policy"), st.sampled_from(NAMES), st.none()),
    st.tuples(st.just("clear"), st.none(), st.none()),
)


class EndOfTransactionError(Exception):
    """The reason why a transaction of these tests is undone."""


def change(store: Store, verb: str, name: str | None, value: object) -> None:
    """Change one row, or all."""
    match verb:
        case "put":
            store.put("kind", name, {"value": value})
        case "delete":
            store.delete("kind", name)
        case "put_policy":
            store.put_policy(name, {"value": value})
        case "delete_policy":
            store.delete_policy(name)
        case "clear":
            store.clear()


def rows(store: Store) -> list[object]:
    """All that can be read of the names."""
    return [(store.get("kind", name), store.has("kind", name), store.policy(name)) for name in NAMES]


@pytest.mark.slow
@given(st.lists(st.tuples(st.booleans(), st.lists(CHANGES, max_size=8)), max_size=5))
def test_what_is_read_is_what_a_new_reader_of_the_file_reads(tmp_path_factory, transactions):
    file = tmp_path_factory.mktemp("store") / "state.db"
    store = Store(file)
    for is_undone, changes in transactions:
        before = rows(store)
        with contextlib.suppress(EndOfTransactionError), store.transaction():
            for each in changes:
                change(store, *each)
                rows(store)
            if is_undone:
                raise EndOfTransactionError
        if is_undone:
            assert rows(store) == before
    read = rows(store)
    store.close()
    reader = Store(file)
    assert rows(reader) == read
    reader.close()


def test_what_was_read_can_be_changed_without_changing_the_row(tmp_path: Path):
    store = Store(tmp_path / "state.db")
    store.put("kind", "a", {"labels": {}})
    store.get("kind", "a")["labels"]["new"] = "value"
    assert store.get("kind", "a") == {"labels": {}}


def test_more_rows_than_are_kept_are_read_from_the_file(tmp_path: Path):
    count = store_module._MOST_KEPT + 1
    store = Store(tmp_path / "state.db")
    with store.transaction():
        for number in range(count):
            store.put("kind", str(number), {"number": number})
    assert [store.get("kind", str(number)) for number in range(count)] == [{"number": n} for n in range(count)]
    assert len(store._kept) <= store_module._MOST_KEPT
