"""Rules of xgrammar's JSON schemas: what it does not convert to a grammar, and what vLLM does not ask it to convert.

Source: the behaviour of xgrammar 0.2.8 (`Grammar.from_json_schema`, strict), and vllm 0.32.0,
v1/structured_output/backend_xgrammar.py (`has_xgrammar_unsupported_json_features`). References are followed from the
root; what no reference reaches is not read. Leaves the bounds of numbers, texts, lists and objects to `schema_bounds`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from bezel_simulated_vllm.grammars.rules import expressions
from bezel_simulated_vllm.grammars.rules.json_values import check_json
from bezel_simulated_vllm.grammars.rules.schema_bounds import BOUNDS, Schema
from bezel_simulated_vllm.grammars.verdicts import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel_simulated_vllm.grammars.verdicts import Work

_FORMATS = frozenset({
    *("email", "date", "time", "date-time", "duration", "ipv4", "ipv6", "hostname", "uuid", "uri", "uri-reference"),
    *("uri-template", "json-pointer", "relative-json-pointer"),
})  # fmt: skip
_ARRAY_WORDS = ("uniqueItems", "contains", "minContains", "maxContains")
# The words that decide what a schema is, the first that it has.
_OBJECT_WORDS = ("properties", "additionalProperties", "unevaluatedProperties")
_CHOICES = ("anyOf", "oneOf", "allOf")
_LIST_WORDS = ("items", "prefixItems", "unevaluatedItems")


class _Part(NamedTuple):
    """A schema within another: its type where it names none, and whether its references are followed."""

    schema: Any
    default: str = ""
    follows: bool = True


def check_document(schema: Any, work: Work) -> None:
    """Refuse a schema that xgrammar does not convert; a text is read as JSON once more.

    Raises:
        RefusedError: it is refused.
        NotJudgedError: it takes more than the bound of work.
    """
    if isinstance(schema, str):
        try:
            schema = json.loads(schema)
        except ValueError:
            raise RefusedError("Failed to parse JSON: syntax error") from None
    elif not isinstance(schema, dict):
        raise RefusedError("The schema should be a string or a Pydantic model.")
    check_json(schema, work)
    check_conversion(schema, work)


def has_unsupported_words(schema: Any) -> bool:
    """Whether vLLM knows of a word in a schema that xgrammar ignores.

    Raises:
        RefusedError: a word has a value that cannot be compared.
    """
    pending = [schema]
    while pending:
        node = pending.pop()
        if not isinstance(node, dict):
            continue
        if _is_unsupported(node):
            return True
        for value in node.values():
            pending += [value] if isinstance(value, dict) else value if isinstance(value, list) else ()
    return False


def _is_unsupported(node: Schema) -> bool:
    kinds = _kinds(node)
    if kinds & {"integer", "number"} and "multipleOf" in node:
        return True
    if "array" in kinds and any(word in node for word in _ARRAY_WORDS):
        return True
    if "string" in kinds and (_has_unknown_format(node) or _has_form_and_length(node)):
        return True
    if "object" in kinds and (_has_names_and_more(node) or _has_patterns_and_more(node)):
        return True
    return isinstance(node.get("allOf"), list) and len(node["allOf"]) > 1


def _kinds(node: Schema) -> set[str]:
    kinds = node.get("type")
    listed = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    return {kind for kind in listed if isinstance(kind, str)}


def _has_unknown_format(node: Schema) -> bool:
    form = node.get("format", "email")
    if isinstance(form, dict | list):
        raise RefusedError(f"unhashable type: '{type(form).__name__}'")
    return form not in _FORMATS


def _has_form_and_length(node: Schema) -> bool:
    return ("pattern" in node or "format" in node) and ("minLength" in node or "maxLength" in node)


def _has_names_and_more(node: Schema) -> bool:
    if "propertyNames" not in node:
        return False
    names = node["propertyNames"]
    if isinstance(names, dict) and _has_form_and_length(names):
        return True
    return "patternProperties" in node or "properties" in node or node.get("unevaluatedProperties", True) is not True


def _has_patterns_and_more(node: Schema) -> bool:
    patterns = node.get("patternProperties")
    return isinstance(patterns, dict) and ("properties" in node or len(patterns) > 1)


def check_conversion(schema: Any, work: Work) -> None:
    """Refuse a schema that xgrammar does not convert.

    Raises:
        RefusedError: it does not convert it.
        NotJudgedError: it takes more than the bound of work.
    """
    pending = [_Part(schema)]
    followed: set[str] = set()
    while pending:
        work.spend()
        node, default, follows = pending.pop()
        if node is False:
            raise RefusedError("Schema 'false' cannot accept any value")
        if node is True:
            continue
        if not isinstance(node, dict):
            shown = json.dumps(node, separators=(",", ":"))
            raise RefusedError(f"Schema should be an object or bool, but got {shown}")
        if "$ref" in node:
            if not isinstance(node["$ref"], str):
                raise RefusedError("$ref must be a string")
            if follows and node["$ref"] not in followed:
                followed.add(node["$ref"])
                pending += [_Part(target) for target in targets(node["$ref"], schema)]
            continue
        pending += [part._replace(follows=part.follows and follows) for part in _parts(node, default)]
        if follows:
            for pattern in _patterns(node, default):
                expressions.check_pattern(pattern, work)


def targets(reference: str, root: Any) -> Iterator[Any]:
    """Return the schema that a reference points to; none where xgrammar does not follow it.

    Raises:
        RefusedError: there is none.
    """
    if reference == "#":
        yield root
    if not reference.startswith("#/"):
        return
    node = root
    for name in filter(None, reference[2:].split("/")):
        if not isinstance(node, dict) or name not in node:
            raise RefusedError(f"Cannot find field {name} in {reference}")
        node = node[name]
    yield node


def _parts(node: Schema, default: str) -> list[_Part]:
    """Check the words of a schema, and return the schemas in it with the type that each has where it names none."""
    if "const" in node:
        return []
    if "enum" in node:
        _check_list(node, "enum")
        if not node["enum"]:
            raise RefusedError("enum array must not be empty")
        return []
    for word in _CHOICES:
        if word in node:
            _check_list(node, word)
            several = word == "allOf" and len(node[word]) != 1  # it takes any value for several
            return [_Part(part, follows=not several) for part in node[word]]
    kind = node.get("type", default or _implied_kind(node))
    if isinstance(kind, list):
        return _by_kinds(node, kind)
    if not isinstance(kind, str):
        raise RefusedError("Type should be a string")
    return _of_kind(node, kind)


def _check_list(node: Schema, word: str) -> None:
    if not isinstance(node[word], list):
        raise RefusedError(f"{word} must be an array")


def _implied_kind(node: Schema) -> str:
    """Return the type of a schema that names none; "null" where it has no part."""
    if any(word in node for word in _OBJECT_WORDS):
        return "object"
    return "array" if any(word in node for word in _LIST_WORDS) else "null"


def _patterns(node: Schema, default: str) -> list[str]:
    """Return the expressions of a schema whose words have been checked; a known format stands before a pattern."""
    if any(word in node for word in ("const", "enum", *_CHOICES)):
        return []
    kind = node.get("type", default or _implied_kind(node))
    if kind == "string":
        return [node["pattern"]] if "pattern" in node and node.get("format") not in _FORMATS else []
    if kind == "object" and node.get("maxProperties") != 0:
        return list(node.get("patternProperties", ()))
    return []


def _by_kinds(node: Schema, kinds: list[Any]) -> list[_Part]:
    plain = {word: value for word, value in node.items() if word != "type"}
    if not all(isinstance(kind, str) for kind in kinds):
        raise RefusedError("type must be a string or an array of strings")
    return [_Part({**plain, "type": kind}) for kind in kinds] or [_Part(plain)]


def _of_kind(node: Schema, kind: str) -> list[_Part]:
    if kind in ("boolean", "null"):
        return []
    if kind not in BOUNDS:
        raise RefusedError(f'Unsupported type "{kind}"')
    BOUNDS[kind](node)
    if kind == "array":
        return _items(node)
    return _properties(node) if kind == "object" else []


def _items(node: Schema) -> list[_Part]:
    parts = [_Part(item) for item in node.get("prefixItems", ())]
    word = "items" if "items" in node else "unevaluatedItems"
    return parts + ([_Part(node[word])] if node.get(word, False) is not False else [])


def _properties(node: Schema) -> list[_Part]:
    parts = [_Part(part) for word in ("properties", "patternProperties") for part in node.get(word, {}).values()]
    if "propertyNames" in node:
        parts.append(_Part(node["propertyNames"], "string", follows=node.get("maxProperties") != 0))
    for word in ("additionalProperties", "unevaluatedProperties"):
        if word in node:
            return parts + ([] if isinstance(node[word], bool) else [_Part(node[word])])
    return parts
