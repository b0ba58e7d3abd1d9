"""outlines: the expressions that its engine takes, and the schemas that become one.

Source: vllm 0.32.0, v1/structured_output/backend_outlines.py. Expressions are judged by Python's own parser, as
in vLLM; schemas where `outlines_core` is installed (extra `outlines`).
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
import warnings
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.grammars.verdicts import NotJudgedError, RefusedError

if TYPE_CHECKING:
    from bezel_simulated_vllm.grammars.constraint import Constraint

_BACKEND = "Outlines structured outputs backend does not support {kind} specifications"
_UNSUPPORTED = (
    "Regex uses unsupported feature for structured outputs: {feature}. Only basic matching constructs are "
    "supported—lookarounds, backreferences, and unicode boundaries are not."
)
_UNANCHORED = (
    "Regex does not have a anchored universal start stateThis means that the Regex uses anchors (^) or look-arounds in "
    "a way which requires context before any token is matched.structured outputs needs regexes that can match without "
    "needing that context. Try rewriting the pattern without using these constructs. Pattern:\n{pattern}"
)
_ASSERTIONS = (_constants.ASSERT, _constants.ASSERT_NOT)
_CONSUMERS = (_constants.LITERAL, _constants.IN, _constants.ANY)


def check(constraint: Constraint) -> None:
    """Refuse a constraint that the backend `outlines` refuses when a request comes.

    Raises:
        RefusedError: with the text that vLLM sends.
        NotJudgedError: a schema, where the library is not installed.
    """
    if constraint.is_empty:
        return
    if constraint.kind == "regex":
        _check_expression(constraint.text)
    elif constraint.kind == "json":
        _check_expression(_expression_of(constraint.text))
    elif constraint.kind == "choice":
        _check_expression("(" + "|".join(re.escape(choice) for choice in json.loads(constraint.text)) + ")")
    elif constraint.kind in ("json_object", "grammar"):
        raise RefusedError(_BACKEND.format(kind=constraint.kind))


def _expression_of(schema: str) -> str:
    try:
        json.loads(schema)
    except ValueError:
        raise RefusedError("Invalid JSON grammar specification.") from None
    if importlib.util.find_spec("outlines_core") is None:
        raise NotJudgedError("a schema for outlines_core, which is not installed")
    library: Any = importlib.import_module("outlines_core.json_schema")
    try:
        return str(library.build_regex_from_schema(schema))
    except Exception as error:  # noqa: BLE001 - vLLM refuses on each of them
        raise RefusedError(f"Failed to transform json schema into a regex: {error}") from None


def _check_expression(pattern: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of classes that a later Python may read otherwise
            parsed = _parser.parse(pattern)
    except re.error as error:
        raise RefusedError(f"Error parsing regex: {error}") from None
    except RecursionError:
        raise NotJudgedError("an expression beyond Python's parser") from None
    if feature := _unsupported_feature(parsed):
        raise RefusedError(_UNSUPPORTED.format(feature=feature))
    if _needs_context(parsed):
        raise RefusedError(_UNANCHORED.format(pattern=pattern))


def _unsupported_feature(parsed: Any) -> str:
    """Return what the engine of the library does not take, "" where it takes all."""
    for kind, value in parsed:
        if kind in (_constants.GROUPREF, _constants.GROUPREF_EXISTS):
            return "Backreferences are unsupported."
        if kind in _ASSERTIONS:
            return "Look-Around assertion are unsupported."
        if kind == _constants.AT:
            if value in (_constants.AT_BOUNDARY, _constants.AT_NON_BOUNDARY):
                return "Unicode word boundaries are unsupported."
            continue
        inner = value[1] if kind == _constants.BRANCH else value if isinstance(value, tuple) else (value,)
        for part in inner:
            if isinstance(part, _parser.SubPattern) and (feature := _unsupported_feature(part)):
                return feature
    return ""


def _consumes(parsed: Any) -> bool:
    """Whether an expression takes at least one character somewhere."""
    for kind, value in parsed:
        if kind in _CONSUMERS:
            return True
        if kind == _constants.MAX_REPEAT and value[1] != 0 and _consumes(value[2]):
            return True
        if kind == _constants.BRANCH and any(map(_consumes, value[1])):
            return True
        if kind == _constants.SUBPATTERN and _consumes(value[3]):
            return True
    return False


def _needs_context(parsed: Any) -> bool:
    """Whether an anchor stands before all that takes a character."""
    for kind, value in parsed:
        if kind == _constants.AT or kind in _ASSERTIONS:
            return True
        if kind in _CONSUMERS:
            return False
        parts = _alternatives(kind, value)
        if any(map(_needs_context, parts)):
            return True
        if any(map(_consumes, parts)):
            return False
    return False


def _alternatives(kind: Any, value: Any) -> list[Any]:
    """Return the expressions within a part."""
    if kind == _constants.BRANCH:
        return list(value[1])
    if kind == _constants.SUBPATTERN:
        return [value[3]]
    return [value[2]] if kind == _constants.MAX_REPEAT else []
