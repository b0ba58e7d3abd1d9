"""Two previews of the same have one digest; any change of operation, resource or input has another."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel.engine.changes.planned import (
    UNKNOWNS,
    Planned,
    changed_outputs,
    difference,
    digest,
    is_rest_of,
    planned_changes,
)
from bezel.engine.events.values import Change
from tests.support.gitops.events import BUCKET, OBJECT, urn

NAMES = st.text("abcdefxyz-", min_size=1, max_size=8)
HEX = st.text("0123456789abcdef", min_size=7, max_size=7)
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text('ab.[]"`é', max_size=4))
INPUTS = st.dictionaries(
    st.text("klm.[", min_size=1, max_size=3),
    st.recursive(PLAIN, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text("pq", max_size=1), inner)),
    max_size=3,
)
OPS = st.sampled_from(["create", "update", "replace", "delete"])
CHANGES = st.lists(
    st.builds(
        lambda op, name, inputs: Change(op, urn(BUCKET, name), BUCKET, ("p",), {}, None if op == "delete" else inputs),
        OPS,
        NAMES,
        INPUTS,
    ),
    max_size=4,
    unique_by=lambda change: change.urn,
)


def two(suffix: str, unknown: str) -> list[Change]:
    """A bucket with a generated name, and an object that is named after it."""
    bucket = {"__defaults": ["name"], "name": f"data-{suffix}", "location": "US"}
    note = {"bucket": f"data-{suffix}", "uri": f"gs://data-{suffix}/note", "etag": unknown}
    return [
        Change("create", urn(BUCKET, "data"), BUCKET, new=bucket),
        Change("create", urn(OBJECT, "note"), OBJECT, new=note),
    ]


def of(changes: list[Change]) -> str:
    return digest(planned_changes(changes))


@pytest.mark.slow
@settings(max_examples=50)
@given(CHANGES, st.randoms())
def test_the_order_of_resources_and_inputs_does_not_count(changes, dice):
    other = [
        replace(item, new=item.new and dict(sorted(item.new.items(), reverse=dice.random() < 0.5))) for item in changes
    ]
    dice.shuffle(other)
    assert of(other) == of(changes)
    assert difference(planned_changes(changes), planned_changes(other)) == []


@pytest.mark.slow
@settings(max_examples=50)
@given(HEX, HEX)
def test_generated_names_do_not_count_wherever_they_stand(first, second):
    unknown = min(UNKNOWNS)
    assert of(two(first, unknown)) == of(two(second, unknown))
    chosen, other = (
        [replace(item, new={**item.new, "__defaults": []}) for item in two(hex_, unknown)]
        for hex_ in ("0000001", "0000002")
    )
    assert of(chosen) != of(other)


def test_the_kind_of_an_unknown_value_does_not_count():
    """The kind of an unknown value does not count but that it is unknown does."""
    digests = {of(two("0123456", unknown)) for unknown in UNKNOWNS}
    assert len(digests) == 1
    assert of(two("0123456", "known")) not in digests


@pytest.mark.slow
@settings(max_examples=50)
@given(CHANGES.filter(bool), st.data())
def test_any_change_of_operation_resource_property_or_input_counts(changes, data):
    item = data.draw(st.sampled_from(changes))
    rest = [change for change in changes if change is not item]
    op = data.draw(OPS.filter(lambda op: op != item.op))
    others: list[Change | None] = [
        replace(item, op=op),
        replace(item, urn=f"{item.urn}x"),
        replace(item, type=OBJECT),
        replace(item, properties=("q",)),
        None,
    ]
    if item.new is not None:
        others += [replace(item, new={**item.new, "zz": value}) for value in (None, "", [], {}, 0, "0", False)]
    digests = [of(rest + ([other] if other else [])) for other in others]
    assert of(changes) not in digests
    assert len({*digests[5:]}) == len(digests[5:])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": {"b": 1}}, {"a.b": 1}),
        ({"a": [1]}, {"a[0]": 1}),
        ({"a": [[1], 2]}, {"a": [[1, 2]]}),
        ({"a": {"b": {}}}, {"a": {}}),
        ({"a": True}, {"a": 1}),
    ],
)
def test_inputs_of_another_shape_are_others(one, other):
    assert of([Change("create", "u", BUCKET, new=one)]) != of([Change("create", "u", BUCKET, new=other)])


@pytest.mark.slow
@settings(max_examples=50)
@given(CHANGES)
def test_planned_changes_are_read_back_as_written_and_hold_no_value(changes):
    """Planned changes are read back as they were written and hold no value."""
    planned = planned_changes(changes)
    assert tuple(Planned.read(item.as_json()) for item in planned) == planned
    secret = planned_changes([Change("create", "u", BUCKET, new={"key": "hush-hush"})])
    assert "hush" not in repr([item.as_json() for item in secret])


@pytest.mark.parametrize("content", [{}, {"op": "create"}, {"inputs": []}, [], None, "text"])
def test_what_is_no_planned_change_is_a_value_error(content: Any):
    with pytest.raises(ValueError, match="expected a planned change"):
        Planned.read(content)


def test_the_difference_names_what_is_new_gone_and_changed():
    """The difference names what is new, what is gone and which property differs."""
    unknown = min(UNKNOWNS)
    reviewed = planned_changes(two("0000001", unknown))
    changed = [*two("0000002", "known")[1:], Change("delete", urn(BUCKET, "old"), BUCKET, old={})]
    lines = difference(reviewed, planned_changes(changed))
    assert lines == [
        f"new: delete old ({BUCKET})",
        f"gone: create data ({BUCKET})",
        f"differs: create note ({OBJECT}): bucket, etag, uri",
    ]


REVIEWED = [
    Change("create", urn(BUCKET, "a"), BUCKET, new={"n": "1", "etag": min(UNKNOWNS)}),
    Change("replace", urn(BUCKET, "b"), BUCKET, ("n",), {}, {"n": "2"}),
    Change("update", urn(BUCKET, "c"), BUCKET, ("n",), {}, {"n": "3"}),
    Change("delete", urn(BUCKET, "d"), BUCKET, (), {}),
]


@pytest.mark.parametrize(
    ("op", "name", "inputs", "is_rest"),
    [
        ("create", "a", {"n": "1", "etag": min(UNKNOWNS)}, True),
        ("create", "a", {"n": "1", "etag": "known by now"}, True),
        ("update", "a", {"n": "1", "etag": "known by now"}, True),
        ("create", "a", {"n": "2", "etag": "known by now"}, False),
        ("create", "a", {"n": "1", "etag": "known by now", "more": "1"}, False),
        ("delete", "a", None, False),
        ("delete", "b", None, True),
        ("create", "b", {"n": "2"}, True),
        ("update", "c", {"n": "3"}, True),
        ("replace", "c", {"n": "3"}, False),
        ("delete", "c", None, False),
        ("delete", "d", None, True),
        ("create", "d", {}, False),
        ("create", "e", {}, False),
    ],
)
def test_only_the_rest_of_reviewed_changes_follows_a_killed_run(op, name, inputs, is_rest):
    remaining = [Change(op, urn(BUCKET, name), BUCKET, (), {}, inputs)]
    assert is_rest_of(planned_changes(REVIEWED), planned_changes(remaining)) is is_rest
    assert is_rest_of(planned_changes(REVIEWED), [])


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ({"a": 1, "b": {"c": [1]}}, {"a": 1, "b": {"c": [2]}}, ("b",)),
        ({"a": 1}, {"b": 2}, ("a", "b")),
        (None, {"a": 1}, ("a",)),
        ({"a": 1}, {"a": 1}, ()),
        ({"a": 1}, {"a": {"b": min(UNKNOWNS)}}, ()),  # not known before the deploy
        ({"a": 1}, None, ()),  # the program failed
    ],
)
def test_changed_outputs_are_those_with_another_known_value(old, new, names):
    assert changed_outputs(old, new) == names
