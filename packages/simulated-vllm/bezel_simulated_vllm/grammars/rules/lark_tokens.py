"""Tokens of xgrammar's Lark grammars: names, strings, expressions, numbers, special tokens, directives and signs.

Source: the behaviour of xgrammar 0.2.8 (`Grammar.from_lark`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.grammars.verdicts import RefusedError

if TYPE_CHECKING:
    from bezel_simulated_vllm.grammars.verdicts import Work

_SPACE = re.compile(r"[ \t\f]+|#[^\r\n]*|//[^\r\n]*")
_FORMS = (
    ("newline", re.compile(r"\r\n|\r|\n")),
    ("sign", re.compile(r"::|\.\.|->")),
    ("number", re.compile(r"[+-]?[0-9]+(?:\.(?!\.)[0-9]*)?(?:[eE][+-]?[0-9]*)?")),
    ("sign", re.compile(r"[:,.+=()\[\]{}|&~*]")),
    ("name", re.compile(r"[?!]?[A-Za-z_][A-Za-z0-9_-]*")),
    ("sign", re.compile(r"\?")),
    ("string", re.compile(r'"(?:[^"\\\r\n]|\\[^\r\n])*"i?')),
    ("expression", re.compile(r"/((?:[^/\\]|\\.)*)/([A-Za-z]*)", re.DOTALL)),
    ("special", re.compile(r"<[^\s<>]*>")),
    ("grammar", re.compile(r"@[A-Za-z0-9_-]+")),
    ("directive", re.compile(r"%[A-Za-z_]*")),
)
_WITH_JSON = {"%json": "json", "%regex": "structured", "%grammar_options": "options"}
_PLAIN = {"%import": "import", "%ignore": "ignore", "%lark": "lark", "%if": "if"}
_JSON_SPACE = re.compile(r"[ \t\r\n\f\v]*")


@dataclass(frozen=True)
class LarkToken:
    """One token.

    Attributes:
        kind: "name", "string", "expression", "number", "special", "grammar", "newline", "end", a directive without its
            sign, or the sign itself.
        text: what stands in the grammar; an expression without its slashes.
        value: the flags of an expression, or the value of a directive with JSON.
    """

    kind: str
    text: str
    value: Any = None


def fault(text: str) -> RefusedError:
    """Return the error of a Lark grammar."""
    return RefusedError(f"Lark error: {text}")


def tokens(source: str, work: Work) -> list[LarkToken]:
    """Return the tokens of a grammar, with an "end" after the last.

    Raises:
        RefusedError: the text has a part that is no token.
    """
    place = 0
    listed: list[LarkToken] = []
    while place < len(source):
        work.spend()
        if space := _SPACE.match(source, place):
            place = space.end()
            continue
        place, token = _token(source, place)
        listed.append(token)
    return [*listed, LarkToken("end", "")]


def _token(source: str, place: int) -> tuple[int, LarkToken]:
    for kind, form in _FORMS:
        if part := form.match(source, place):
            if kind == "directive":
                return _directive(source, part[0], part.end())
            if kind == "expression":
                return part.end(), LarkToken(kind, part[1], part[2])
            return part.end(), LarkToken(part[0] if kind == "sign" else kind, part[0])
    texts = {'"': "unterminated string literal", "/": "unterminated regular expression", "<": "invalid special token"}
    raise fault(texts.get(source[place], f"unexpected character '{source[place]}'"))


def _directive(source: str, name: str, end: int) -> tuple[int, LarkToken]:
    if name not in _WITH_JSON:
        return end, LarkToken(_PLAIN.get(name, "unsupported"), name)
    space = _JSON_SPACE.match(source, end)
    try:
        value, end = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode(source, space.end() if space else end)
    except (ValueError, RecursionError):
        raise fault(f"failed to parse JSON value after {name}") from None
    return end, LarkToken(_WITH_JSON[name], name, value)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)
