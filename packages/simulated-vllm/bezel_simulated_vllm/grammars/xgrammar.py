"""xgrammar: the library where it is installed, else the rules of this project.

Source: vllm 0.32.0, v1/structured_output/backend_xgrammar.py (`validate_xgrammar_grammar`, `compile_grammar`) and
utils.py (`grammar_is_likely_lark`, `choice_as_grammar`). The library comes with the extra `xgrammar`, with torch.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import json
import re
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.grammars.rules import ebnf, engine_only, expressions, lark, schemas, tags
from bezel_simulated_vllm.grammars.verdicts import NotJudgedError, RefusedError, Work

if TYPE_CHECKING:
    from bezel_simulated_vllm.grammars.constraint import Constraint

_ESCAPES = {"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
_TEXTS = {
    "regex": "Failed to transform regex into a grammar: {error}",
    "choice": "Failed to transform choices into a grammar: {error}",
    "json": "Failed to transform json schema into a grammar: {error}",
    "grammar": "Invalid grammar specification.",
    "structural_tag": "Invalid structural tag specification.",
}
_UNSUPPORTED = "The provided JSON schema contains features not supported by xgrammar."


@functools.cache
def is_installed() -> bool:
    """Whether the library is there."""
    return importlib.util.find_spec("xgrammar") is not None


def check(constraint: Constraint) -> None:
    """Refuse a constraint that the backend `xgrammar` refuses when a request comes.

    Raises:
        RefusedError: with the text that vLLM sends.
        NotJudgedError: no rule tells.
    """
    if constraint.is_empty or constraint.kind == "json_object":
        return
    if constraint.kind == "json":
        schema = _schema(constraint)
        try:
            unsupported = schemas.has_unsupported_words(schema)
        except RefusedError as error:
            raise RefusedError(_TEXTS["json"].format(error=error)) from None
        if unsupported:
            raise RefusedError(_UNSUPPORTED)
    _convert(constraint)


def compile_constraint(constraint: Constraint) -> None:
    """Refuse a constraint that the engine does not compile with xgrammar.

    Raises:
        RefusedError: with the text that vLLM sends at validation, or what the library says in the engine.
        NotJudgedError: no rule tells.
    """
    if constraint.is_empty or constraint.kind == "json_object":
        return
    _convert(constraint)
    if constraint.kind == "json":
        engine_only.check_schema(_schema(constraint), Work())
    elif constraint.kind == "grammar" and not is_likely_lark(constraint.text):
        engine_only.check_grammar(constraint.text, Work())


def _convert(constraint: Constraint) -> None:
    try:
        constraint.text.encode()
        (_ask_library if is_installed() else _ask_rules)(constraint)
    except (RefusedError, UnicodeEncodeError) as error:
        raise RefusedError(_TEXTS[constraint.kind].format(error=error)) from None


def _schema(constraint: Constraint) -> Any:
    try:
        return json.loads(constraint.text)
    except ValueError:
        raise RefusedError("Invalid JSON grammar specification.") from None


def _ask_rules(constraint: Constraint) -> None:
    text, work = constraint.text, Work()
    if constraint.kind == "regex":
        expressions.check(text, work)
    elif constraint.kind == "json":
        schemas.check_document(_schema(constraint), work)
    elif constraint.kind == "choice":
        grammar = _grammar_of(json.loads(text))
        grammar.encode()
        ebnf.check(grammar, work)
    elif constraint.kind == "grammar":
        (lark if is_likely_lark(text) else ebnf).check(text, work)
    else:
        tags.check(text, work)


def _ask_library(constraint: Constraint) -> None:
    library: Any = importlib.import_module("xgrammar")
    text = constraint.text
    # xgrammar 0.2.8 ends the process on a dispatch on tokens within other formats.
    if constraint.kind == "structural_tag" and "token_dispatch" in text:
        raise NotJudgedError("a dispatch on tokens")
    try:
        if constraint.kind == "regex":
            library.Grammar.from_regex(text)
        elif constraint.kind == "json":
            library.Grammar.from_json_schema(_schema(constraint))
        elif constraint.kind == "choice":
            library.Grammar.from_ebnf(_grammar_of(json.loads(text)))
        elif constraint.kind == "grammar":
            (library.Grammar.from_lark if is_likely_lark(text) else library.Grammar.from_ebnf)(text)
        else:
            _ask_library_of_tag(library, text)
    except RefusedError:
        raise
    except Exception as error:  # noqa: BLE001 - vLLM refuses on each of them
        raise RefusedError(str(error)) from None


def _ask_library_of_tag(library: Any, text: str) -> None:
    tag = json.loads(text)
    if "structures" not in tag:
        library.Grammar.from_structural_tag(text)
        return
    items = [
        library.StructuralTagItem(begin=each["begin"], schema=json.dumps(each["schema"]), end=each["end"])
        for each in tag["structures"]
    ]
    library.Grammar.from_structural_tag(items, tag["triggers"])


def is_likely_lark(grammar: str) -> bool:
    """Whether vLLM takes a grammar for Lark: no line has `::=`."""
    return not any("::=" in re.split("#|//", line, maxsplit=1)[0] for line in grammar.split("\n"))


def _grammar_of(choices: list[str]) -> str:
    """Return the grammar that vLLM makes of choices."""
    return "root ::= " + " | ".join('"' + "".join(map(_escape, choice)) + '"' for choice in choices)


def _escape(sign: str) -> str:
    if sign in _ESCAPES:
        return _ESCAPES[sign]
    return f"\\u{ord(sign):04x}" if ord(sign) < 0x20 or ord(sign) == 0x7F else sign
