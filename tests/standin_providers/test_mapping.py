"""Properties to JSON and back, for every row and for any values."""

from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel.standin_providers.lifecycle.fields import Field, Kind, Mark
from bezel.standin_providers.lifecycle.mapping import Nulls, body, outputs, zero
from bezel.standin_providers.lifecycle.plan import differences, plan
from bezel.standin_providers.lifecycle.sets import in_set_order
from bezel.standin_providers.lifecycle.values import decode, encode
from bezel.standin_providers.resources import TYPES

TEXT = st.text("abc/._-", min_size=1, max_size=6)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=4),
    max_leaves=12,
)


def values(field: Field) -> st.SearchStrategy[Any]:
    simple: dict[Kind, st.SearchStrategy[Any]] = {
        Kind.TEXT: TEXT,
        Kind.FLAG: st.booleans(),
        Kind.WHOLE: st.integers(0, 2**31 - 1),
        Kind.BIG: st.integers(0, 2**53),
        Kind.REAL: st.floats(0, 1),
        Kind.TABLE: st.dictionaries(TEXT, TEXT, max_size=3),
        Kind.ITEMS: st.lists(TEXT, max_size=3),
        Kind.ASSET: TEXT,
    }
    if field.kind in simple:
        return simple[field.kind]
    # Members with a key of their own on the wire cannot share one.
    unique = (lambda item: item["id"]) if field.marks & Mark.KEYED else None
    whole = objects(field.fields, all_of=bool(unique))
    return whole if field.kind is Kind.BLOCK else st.lists(whole, max_size=3, unique_by=unique)


@cache
def objects(fields: tuple[Field, ...], *, all_of: bool = False) -> st.SearchStrategy[dict[str, Any]]:
    settable = {item.name: values(item) for item in fields if not item.marks & (Mark.OUTPUT | Mark.REFUSED)}
    return st.fixed_dictionaries(settable) if all_of else st.fixed_dictionaries({}, optional=settable)


SENT = [kind for kind in TYPES.values() if kind.collection or kind.title == "bucket"]


@pytest.mark.parametrize("kind", SENT, ids=lambda kind: kind.pulumi_type)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_what_is_sent_and_echoed_is_no_change(kind: Any, data: st.DataObject) -> None:
    fields = tuple(item for item in kind.fields if "abels" not in item.name and "nnotations" not in item.name)
    wanted = data.draw(objects(fields))
    planned = plan(fields, wanted, None, "p")
    echoed = outputs(fields, body(fields, planned), planned, Nulls.ALL)
    again = plan(fields, wanted, echoed, "p")
    assert list(differences(fields, echoed, again)) == []


@settings(max_examples=50, deadline=None)
@given(JSON)
def test_values_survive_the_protocol(value: Any) -> None:
    assert decode(encode({"value": value}))["value"] == value


@settings(max_examples=50, deadline=None)
@given(JSON)
def test_zero_is_what_says_nothing(value: Any) -> None:
    assert zero(value) == (
        value in (None, "", 0, [], {}) or (isinstance(value, dict) and all(map(zero, value.values())))
    )


def test_a_set_stands_in_the_providers_order() -> None:
    template = next(item for item in TYPES["gcp:cloudrunv2/service:Service"].fields if item.name == "template")
    containers = next(item for item in template.fields if item.name == "containers")
    envs = next(item for item in containers.fields if item.name == "envs")
    secret = {"name": "HF_TOKEN", "valueSource": {"secretKeyRef": {"secret": "hf-token", "version": "latest"}}}
    plain = {"name": "VLLM_LOGGING_LEVEL", "value": "INFO"}
    assert in_set_order(envs, [plain, secret]) == [secret, plain] == in_set_order(envs, [secret, plain])
