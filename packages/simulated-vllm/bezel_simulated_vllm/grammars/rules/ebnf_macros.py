"""Macros of xgrammar's EBNF: dispatches on tags and tokens, sets of tokens, expressions.

Source: the behaviour of xgrammar 0.2.8 (`Grammar.from_ebnf`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from bezel_simulated_vllm.grammars.verdicts import NotJudgedError, RefusedError

if TYPE_CHECKING:
    from bezel_simulated_vllm.grammars.rules.ebnf_tokens import Token

MACROS = frozenset({"TagDispatch", "Token", "ExcludeToken", "TokenTagDispatch", "Regex", "Substring"})
_VALUES = ("string", "integer", "boolean", "name")
_DEEPEST = 100


class _Value(NamedTuple):
    """A value of a macro: its kind (that of the token, or "tuple"), and the text or the list of values."""

    kind: str
    value: Any


def check_macro(name: str, listed: list[Token], at: int, rules: set[str]) -> int:
    """Check a macro, and return the index of the token after it.

    Args:
        name: which of `MACROS`.
        listed: the tokens of the grammar.
        at: the index of the token after the name.
        rules: the names of the grammar's rules.

    Raises:
        RefusedError: its arguments are none of it.
    """
    at, positional, named = _arguments(listed, at)
    if name in ("Token", "ExcludeToken"):
        if named or not positional or any(value.kind != "integer" for value in positional):
            raise RefusedError(f"EBNF parser error: {name}() arguments must be non-negative integers")
    elif name == "Substring":
        if named or any(value.kind != "string" for value in positional):
            raise RefusedError("EBNF parser error: Substring() arguments must be strings")
    elif name == "Regex":
        _check_regex(positional, named)
    else:
        _check_dispatch(positional, named, rules, "string" if name == "TagDispatch" else "integer")
    return at


def _check_regex(positional: list[_Value], named: dict[str, _Value]) -> None:
    if [value.kind for value in positional] != ["string"]:
        raise RefusedError("EBNF parser error: Regex expects exactly one string argument")
    for name, value in named.items():
        if name not in ("json_string", "flags"):
            raise RefusedError(f"EBNF parser error: Regex does not support the named argument {name}")
        kind = "boolean" if name == "json_string" else "string"
        if value.kind != kind:
            raise RefusedError(f"EBNF parser error: {name} must be a {kind}")
        if name == "flags" and set(value.value) - set("isu"):
            raise RefusedError("EBNF parser error: regular-expression flag is not supported")


def _check_dispatch(positional: list[_Value], named: dict[str, _Value], rules: set[str], kind: str) -> None:
    if set(named) - {"loop_after_dispatch", "excludes"}:
        raise RefusedError("EBNF parser error: Unknown named argument")
    triggers = []
    for pair in positional:
        if pair.kind != "tuple" or [value.kind for value in pair.value] != [kind, "name"] or not pair.value[0].value:
            raise RefusedError("EBNF parser error: Each tag dispatch element must be a pair (tag, rule)")
        if pair.value[1].value not in rules:
            raise RefusedError(f'EBNF parser error: Rule "{pair.value[1].value}" is not defined')
        triggers.append(pair.value[0].value)
    if named.get("loop_after_dispatch", _Value("boolean", "")).kind != "boolean":
        raise RefusedError("EBNF parser error: loop_after_dispatch must be a boolean literal")
    excludes = named.get("excludes", _Value("tuple", []))
    if excludes.kind != "tuple" or any(value.kind != kind or not value.value for value in excludes.value):
        raise RefusedError("EBNF parser error: excludes must be a tuple")
    for excluded in (value.value for value in excludes.value):
        for trigger in triggers:
            if trigger.startswith(excluded) if kind == "string" else int(trigger) == int(excluded):
                raise RefusedError(
                    f"EBNF parser error: Exclude string must not be a prefix of trigger string: {excluded}"
                )


def _arguments(listed: list[Token], at: int) -> tuple[int, list[_Value], dict[str, _Value]]:
    positional: list[_Value] = []
    named: dict[str, _Value] = {}
    if listed[at].kind != "(":
        raise RefusedError("EBNF parser error: Expect ( after macro function name")
    at += 1
    while listed[at].kind != ")" or positional or named:
        if listed[at].kind == "name" and listed[at + 1].kind == "=":
            name = listed[at].value
            at, named[name] = _value(listed, at + 2)
        else:
            at, value = _value(listed, at)
            positional.append(value)
        if listed[at].kind == ")":
            break
        if listed[at].kind != ",":
            raise RefusedError("EBNF parser error: Expect , or ) in macro arguments")
        at += 1
    return at + 1, positional, named


def _value(listed: list[Token], at: int, depth: int = 0) -> tuple[int, _Value]:
    token = listed[at]
    if token.kind in _VALUES:
        return at + 1, _Value(token.kind, token.value)
    if token.kind != "(":
        raise RefusedError("EBNF parser error: Expect string, integer, boolean, or tuple in macro argument")
    if depth > _DEEPEST:
        raise NotJudgedError("tuples deep in one another")
    at += 1
    values: list[_Value] = []
    while listed[at].kind != ")":
        at, value = _value(listed, at, depth + 1)
        values.append(value)
        if listed[at].kind == ",":
            at += 1
        elif listed[at].kind != ")":
            raise RefusedError("EBNF parser error: Expect , or ) in tuple")
    return at + 1, _Value("tuple", values)
