"""Properties to JSON and back, for every row and for any values."""

import itertools
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bezel_pulumi_offline.lifecycle.fields import Field, Kind, Mark
from bezel_pulumi_offline.lifecycle.mapping import Nulls, body, outputs, zero
from bezel_pulumi_offline.lifecycle.plan import differences, plan, without_ignored
from bezel_pulumi_offline.lifecycle.sets import in_request_order, in_state_order
from bezel_pulumi_offline.lifecycle.values import UNKNOWN, decode, encode
from bezel_pulumi_offline.resources import TYPES

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


@pytest.mark.slow
@pytest.mark.parametrize("kind", SENT, ids=lambda kind: kind.pulumi_type)
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_what_is_sent_and_echoed_is_no_change(kind: Any, data: st.DataObject) -> None:
    fields = tuple(item for item in kind.fields if "abels" not in item.name and "nnotations" not in item.name)
    wanted = data.draw(objects(fields))
    planned = plan(fields, wanted, None, "p")
    echoed = outputs(fields, body(fields, planned), planned, Nulls.ALL)
    again = plan(fields, wanted, echoed, "p")
    assert list(without_ignored(differences(fields, echoed, again), [])) == []


def test_set_members_with_and_without_a_computed_value_are_no_change() -> None:
    fields = TYPES["gcp:compute/backendService:BackendService"].fields
    wanted = {"backends": [{}, {"maxRatePerEndpoint": 0.5}]}
    planned = plan(fields, wanted, None, "p")
    echoed = outputs(fields, body(fields, planned), planned, Nulls.ALL)
    assert [*differences(fields, echoed, plan(fields, wanted, echoed, "p"))] == []
    other = {"backends": [{}, {"maxRatePerEndpoint": 0.25}]}
    assert [*differences(fields, echoed, plan(fields, other, echoed, "p"))] != []


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(JSON)
def test_values_survive_the_protocol(value: Any) -> None:
    assert decode(encode({"value": value}))["value"] == value


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(JSON)
def test_zero_is_what_says_nothing(value: Any) -> None:
    assert zero(value) == (
        value in (None, "", 0, [], {}) or (isinstance(value, dict) and all(map(zero, value.values())))
    )


def field_at(kind: str, path: str) -> Field:
    fields = TYPES[kind].fields
    for name in path.split("."):
        field = next(item for item in fields if item.name == name)
        fields = field.fields
    return field


def test_a_set_is_sent_in_the_order_of_its_checksums() -> None:
    envs = field_at("gcp:cloudrunv2/service:Service", "template.containers.envs")
    secret = {"name": "HF_TOKEN", "valueSource": {"secretKeyRef": {"secret": "hf-token", "version": "latest"}}}
    plain = {"name": "VLLM_LOGGING_LEVEL", "value": "INFO"}
    assert in_request_order(envs, [plain, secret]) == [secret, plain] == in_request_order(envs, [secret, plain])


@pytest.mark.parametrize(
    ("kind", "path", "ordered"),
    [
        (
            "gcp:cloudrunv2/service:Service",
            "template.containers.envs",
            [{"name": "A", "value": "2"}, {"name": "B", "value": "1"}, {"name": "C", "value": ""}],
        ),
        ("gcp:compute/firewall:Firewall", "sourceRanges", ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"]),
        ("gcp:compute/firewall:Firewall", "targetTags", ["a", "b", "c"]),
        (  # by their action, their condition, their id: the properties in alphabetical order
            "gcp:artifactregistry/repository:Repository",
            "cleanupPolicies",
            [{"id": "z", "action": "DELETE"}, {"id": "a", "action": "KEEP"}, {"id": "b", "action": "KEEP"}],
        ),
    ],
)
def test_a_set_is_in_the_state_in_the_order_of_its_content(kind: str, path: str, ordered: list[Any]) -> None:
    field = field_at(kind, path)
    for members in itertools.permutations(ordered):
        assert in_state_order(field, list(members)) == ordered
    assert in_state_order(field, [UNKNOWN, *ordered])[-1] == UNKNOWN
