"""Rules of xgrammar's Lark grammars: names, terminals, imports, options, and what stands in their bodies.

Source: the behaviour of xgrammar 0.2.8 (`Grammar.from_lark`, without a tokenizer, as vLLM validates). Rules with a
temperature, and those that end at a text of their own (`lazy`, `stop`, `suffix`), are parsed and not judged.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.grammars.rules import expressions, schemas
from bezel_simulated_vllm.grammars.rules.lark_parser import Definition, Document, Parser, Part
from bezel_simulated_vllm.grammars.rules.lark_tokens import fault, tokens
from bezel_simulated_vllm.grammars.verdicts import NotJudgedError, RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from bezel_simulated_vllm.grammars.verdicts import Work

_COMMON = frozenset({
    *("DIGIT", "HEXDIGIT", "INT", "SIGNED_INT", "DECIMAL", "_EXP", "FLOAT", "SIGNED_FLOAT", "NUMBER", "SIGNED_NUMBER"),
    *("ESCAPED_STRING", "LCASE_LETTER", "UCASE_LETTER", "LETTER", "WORD", "CNAME", "WS_INLINE", "WS", "CR", "LF"),
    *("NEWLINE", "SH_COMMENT", "CPP_COMMENT", "C_COMMENT", "SQL_COMMENT"),
})  # fmt: skip
_NOT_JUDGED = {"lazy", "stop", "suffix", "temperature", "stop_capture"}
_IN_RULES_ONLY = {"json", "lark", "special", "grammar"}
_FIELDS = {"substring_chunks", "substring_chars", "substring_words"}
_TOKEN_RANGE = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?")
_MOST_TOKENS = 1_000_000


def check(source: str, work: Work) -> None:
    """Refuse a grammar that xgrammar does not compile.

    Raises:
        RefusedError: it does not compile it.
        NotJudgedError: it has a part that no rule is known for, or takes more than the bound of work.
    """
    _check_document(Parser(tokens(source, work), work).document(), work)


def _check_document(document: Document, work: Work) -> None:
    named = _definitions(document)
    terminals = [definition for definition in document.definitions if definition.is_terminal]
    _check_cycles(terminals, named)
    for body in [*(definition.body for definition in terminals), *document.ignores]:
        _check_body(body, named, work, in_terminal=True)
    rules = [definition for definition in document.definitions if not definition.is_terminal]
    for definition in rules:
        if not definition.attributes & _NOT_JUDGED:
            _check_body(definition.body, named, work, in_terminal=False)
    if any(definition.attributes & _NOT_JUDGED for definition in rules):
        raise NotJudgedError("a rule with attributes of its own")


def _definitions(document: Document) -> dict[str, Definition]:
    """Return the definitions by name, with those that are imported."""
    for path, name in document.imports:
        if path.removeprefix("common.") not in _COMMON or not path.startswith("common."):
            raise fault(f"unknown common import '{path}'")
        document.definitions.append(Definition(name, is_terminal=True, body=Part("all")))
    for options in document.options:
        _check_options(options)
    named: dict[str, Definition] = {}
    for definition in document.definitions:
        if definition.name in named:
            raise fault(f"duplicate rule or terminal '{definition.name}'")
        named[definition.name] = definition
    if "start" not in named:
        raise fault("no start rule found")
    if named["start"].is_terminal:
        raise fault("start must be a rule")
    return named


def _check_options(options: Any) -> None:
    if not isinstance(options, dict):
        raise fault("%grammar_options value must be an object")
    for name, value in options.items():
        if name not in ("allow_initial_skip", "no_forcing", "allow_invalid_utf8"):
            raise fault(f"unknown %grammar_options option '{name}'")
        if not isinstance(value, bool) or (value and name != "allow_initial_skip"):
            raise fault(f"%grammar_options option '{name}' is not supported")


def _check_cycles(terminals: list[Definition], named: dict[str, Definition]) -> None:
    """Refuse terminals that name rules, nothing, or each other in a circle."""
    uses = {definition.name: list(_names(definition.body)) for definition in terminals}
    for name, used in uses.items():
        for each in used:
            if each not in named:
                raise fault(f"unknown name '{each}'")
            if each not in uses:
                raise fault(f"terminal '{name}' cannot reference rule '{each}'")
    left = {name: set(used) for name, used in uses.items()}
    while done := {name for name, used in left.items() if not used}:
        left = {name: used - done for name, used in left.items() if name not in done}
    if left:
        raise fault(f"circular reference in terminal '{next(iter(left))}'")


def _names(body: Part) -> list[str]:
    parts, names = [body], []
    while parts:
        part = parts.pop()
        names += [part.text] if part.kind == "name" else []
        parts += part.children
    return names


def _check_body(body: Part, named: dict[str, Definition], work: Work, *, in_terminal: bool) -> None:
    parts = [body]
    while parts:
        work.spend()
        part = parts.pop()
        parts += part.children
        if part.kind == "not":
            raise fault("regular-expression complement '~' is not supported")
        if in_terminal and part.kind in _IN_RULES_ONLY:
            raise fault(f"{part.kind} cannot be used in terminals")
        if part.kind == "name":
            if part.text not in named:
                raise fault(f"unknown name '{part.text}'")
            if in_terminal and not named[part.text].is_terminal:
                raise fault(f"terminal cannot reference rule '{part.text}'")
        else:
            _check_part(part, work)


def _check_part(part: Part, work: Work) -> None:
    if part.kind == "expression":
        _check_expression(part.text, part.value, work)
    elif part.kind == "json":
        try:
            schemas.check_conversion(part.value, work)
        except RefusedError as error:
            raise fault(f"failed to compile inline JSON schema: {error}") from None
    elif part.kind == "lark":
        _check_document(part.value, work)
    elif part.kind in _LEAVES:
        _LEAVES[part.kind](part)


def _check_string(part: Part) -> None:
    if part.value and not part.text.isascii():
        raise fault("case-insensitive string literals currently support ASCII characters only")


def _check_range(part: Part) -> None:
    if len(part.text) != 1 or len(part.value) != 1 or part.text > part.value:
        raise fault("character range endpoints must be one character")


def _check_expression(pattern: str, flags: str, work: Work) -> None:
    for flag in flags:
        if flag not in "isu":
            raise fault(f"regular-expression flag '{flag}' is not supported")
    try:
        expressions.check(pattern, work)
    except RefusedError as error:
        if "i" in flags:  # its automaton takes more than the conversion
            raise NotJudgedError("an expression whose case does not matter") from None
        raise fault(f"failed to compile regular expression: {error}") from None


def _check_structured(part: Part) -> None:
    value = part.value
    if not isinstance(value, dict):
        raise fault("%regex value must be an object")
    for name in value:
        if name not in _FIELDS:
            raise fault(f"unknown field '{name}' in %regex")
    fields = {name: each for name, each in value.items() if each is not None}
    if len(fields) != 1:
        raise fault("only one field can be set on %regex" if fields else "no fields set on %regex")
    name, each = next(iter(fields.items()))
    texts = each if name == "substring_chunks" else [each]
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts) or name == "substring_words":
        raise fault(f"{name} is not supported yet")


def _check_special(part: Part) -> None:
    token = part.text
    if not (token.startswith("<[") and token.endswith("]>") and len(token) > 3):
        raise fault(f"named special token {token} requires tokenizer_info")
    listed = token[2:-2].removeprefix("^")
    if "*" in listed:
        raise fault("wildcard special token requires tokenizer_info")
    ranges = [each for each in listed.split(",") if each.strip()]
    if not ranges:
        raise fault("empty numeric special-token range")
    for each in ranges:
        bounds = _TOKEN_RANGE.fullmatch(each)
        low = int(bounds[1]) if bounds else -1
        high = int(bounds[2] or low) if bounds else -1
        if low < 0 or not low <= high < 2**31 or high - low > _MOST_TOKENS:
            raise fault(f"invalid numeric special-token range '{each}'")


def _refuse_grammar(part: Part) -> None:
    raise fault(f"unknown named grammar '{part.text}'")


_LEAVES: dict[str, Callable[[Part], None]] = {
    "string": _check_string,
    "range": _check_range,
    "structured": _check_structured,
    "special": _check_special,
    "grammar": _refuse_grammar,
}
