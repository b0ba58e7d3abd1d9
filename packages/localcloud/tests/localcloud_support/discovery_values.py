"""Values that Google's discovery documents allow, and values that they may not, for hypothesis to choose from."""

import base64
from functools import cache

from hypothesis import strategies as st

from localcloud_support.discovery_check import RANGES
from localcloud_support.discovery_documents import document

_TEXTS = st.one_of(
    st.sampled_from(["", "a", "name-1", "*", "projects/bezel-local", "v1.2", "\u00e9\u4e2d\U0001f600", "a\nb"]),
    st.text(max_size=9),
)
_STRINGS = {
    "byte": st.binary(max_size=9).map(lambda data: base64.b64encode(data).decode()),
    "google-datetime": st.sampled_from(["2026-11-21T10:00:00Z", "2026-01-01T00:00:00.123456789+02:00"]),
    "google-duration": st.sampled_from(["0s", "3600s", "1.5s", "-3s", "315576000000s"]),
    "google-fieldmask": st.sampled_from(["", "labels", "*", "template.containers", "displayName,description", "x.y"]),
}
_STRINGS["date-time"] = _STRINGS["google-datetime"]
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=8,
)


def valid(name, schema, depth=0):
    """Values that are valid under a schema of a document, small ones.

    Args:
        name: File name of the document.
        schema: A schema, or a reference to one.
        depth: How deep the schema stands.
    """
    if "$ref" in schema:
        return _referenced_values(name, schema["$ref"], depth)
    kind = schema.get("type", "object")
    if kind == "array":
        return st.lists(valid(name, schema["items"], depth + 1), max_size=2)
    if kind == "object":
        return _object(name, schema, depth)
    return _scalar(schema)


@cache
def _referenced_values(name, schema, depth):
    return st.deferred(lambda: valid(name, document(name)["schemas"][schema], depth))


def _object(name, schema, depth):
    fields, values = schema.get("properties", {}), schema.get("additionalProperties")
    if depth > 4 or not (fields or values):
        return st.just({})
    if not fields:
        return st.dictionaries(_TEXTS, valid(name, values, depth + 1), max_size=2)
    chosen = st.lists(st.sampled_from(sorted(fields)), max_size=max(2, 7 - depth), unique=True)
    return chosen.flatmap(
        lambda keys: st.fixed_dictionaries({key: valid(name, fields[key], depth + 1) for key in keys})
    )


def _scalar(schema):
    kind, form = schema["type"], schema.get("format", "")
    if kind == "any":
        return st.sampled_from(["a", 1, True])
    if kind == "boolean":
        return st.booleans()
    if form in RANGES:
        least, most = RANGES[form]
        numbers = st.integers(max(least, -9), 9) | st.sampled_from([least, most])
        return numbers.map(str) if kind == "string" else numbers
    if kind in {"number", "integer"}:
        return st.integers(0, 3) if kind == "integer" else st.floats(0, 1)
    return st.sampled_from(schema["enum"]) if "enum" in schema else _STRINGS.get(form, _TEXTS)


def spoiled_values(name, schema):
    """A valid object in which one value, somewhere, is any JSON at all."""
    return st.builds(_spoil, valid(name, schema), ANY_JSON, st.lists(st.integers(0, 20), min_size=1, max_size=4))


def _spoil(value, wrong, path):
    at = value
    for step in path[:-1]:
        inner = _at(at, step)
        if not isinstance(inner, dict | list) or not inner:
            break
        at = inner
    if isinstance(at, list) and at:
        at[path[-1] % len(at)] = wrong
    elif isinstance(at, dict):
        at[sorted(at)[path[-1] % len(at)] if at else "name"] = wrong
    return value


def _at(value, step):
    items = list(value) if isinstance(value, list) else [value[key] for key in sorted(value)]
    return items[step % len(items)] if items else None
