"""Lists of objects against a plain model of their rules."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.store import Store
from bezel_localcloud.services.storage.objects.listing import VERSIONS, Query, page

NAMES = st.lists(st.text(alphabet="ab/\t\U0010ffff", min_size=1, max_size=5), max_size=12, unique=True)
PARTS = st.text(alphabet="ab/\t", max_size=3)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    new_store = Store(tmp_path_factory.mktemp("rows") / "rows.db")
    yield new_store
    new_store.close()


def fill(store, names):
    with store.transaction():
        for kind in ("object", "noncurrentObject"):
            for key, _ in store.rows(kind):
                store.delete(kind, key)
        for name in names:
            store.put("object", f"b/{name}", {"name": name, "generation": "7"})
        for key in ("b", "b0/x", "a/x"):
            store.put("object", key, {"name": "foreign", "generation": "1"})


def list_by_pages(store, query, size):
    shown, after = [], ""
    while True:
        part = page(store, "b", query, size, after)
        assert len(part.items) + len(part.prefixes) <= size
        shown += [(row["name"], False) for row in part.items] + [(name, True) for name in part.prefixes]
        after = part.after
        if not after:
            return sorted(shown)


def expected_names(names, query):
    shown = set()
    for name in names:
        if not name.startswith(query.prefix) or name < query.start or (query.end and name >= query.end):
            continue
        rest = name[len(query.prefix) :]
        if query.delimiter and query.delimiter in rest:
            head, _, tail = rest.partition(query.delimiter)
            shown.add((query.prefix + head + query.delimiter, True))
            if not (query.trailing and not tail):
                continue
        shown.add((name, False))
    return sorted(shown)


@pytest.mark.slow
@settings(max_examples=80, deadline=None)
@given(
    names=NAMES,
    prefix=PARTS,
    delimiter=st.sampled_from(["", "/", "ab"]),
    start=PARTS,
    end=PARTS,
    size=st.integers(1, 4),
)
def test_pages_of_any_size_show_each_name_and_prefix_once(store, names, prefix, delimiter, start, end, size):
    fill(store, names)
    for trailing in (False, True):
        query = Query(prefix, delimiter, start, end, trailing)
        assert list_by_pages(store, query, size) == expected_names(names, query)


def test_versions_are_shown_oldest_first_and_pages_end_between_them(store):
    fill(store, ["a", "a\tb"])
    for generation in ("3", "20"):
        store.put("noncurrentObject", f"b/a\n{generation:0>20}", {"name": "a", "generation": generation})
    query, shown, after = Query(kinds=VERSIONS), [], ""
    while True:
        part = page(store, "b", query, 1, after)
        shown += [(row["name"], row["generation"]) for row in part.items]
        after = part.after
        if not after:
            break
    assert shown == [("a", "3"), ("a", "7"), ("a", "20"), ("a\tb", "7")]


@pytest.mark.parametrize(
    ("pattern", "fitting"),
    [
        ("*", ["a", "ab", "[x]"]),
        ("**", ["a", "ab", "a/b", "a/b/c", "[x]"]),
        ("a?", ["ab"]),
        ("a/**", ["a/b", "a/b/c"]),
        ("**/c", ["a/b/c"]),
        ("{a,a/b}", ["a", "a/b"]),
        ("[!b]", ["a"]),
        ("[a-c]b", ["ab"]),
        (r"\[x]", ["[x]"]),
    ],
)
def test_a_pattern_selects_names_as_google_describes(store, pattern, fitting):
    fill(store, ["a", "ab", "a/b", "a/b/c", "[x]"])
    assert [row["name"] for row in page(store, "b", Query(pattern=pattern), 100).items] == sorted(fitting)


@pytest.mark.parametrize("pattern", ["[a", "{a,b"])
def test_a_pattern_that_is_not_closed_is_refused(store, pattern):
    with pytest.raises(ApiError, match="Invalid glob pattern"):
        page(store, "b", Query(pattern=pattern), 100)
