"""vLLM's parsers of tool calls and thoughts that a model's chat template calls for. Data: vllm/parser_families.toml.

A template writes the calls and thoughts of earlier turns as the model itself does, so its own texts tell the format.
They are read, never run. A wrong parser ends the start, or returns calls as text: where no row or several fit, there
is none.
"""

from __future__ import annotations

import contextlib
import functools
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bezel_catalog.loader import make, read_toml

if TYPE_CHECKING:
    from collections.abc import Iterator

_FILE = "vllm/parser_families.toml"
_LONGEST = 1 << 20
_TAG = re.compile(r"(?P<tag>\{\{|\{%|\{#)(?P<trim>[-+]?)")
_TEXT = re.compile(r"'((?:[^'\\]|\\.)*)'|\"((?:[^\"\\]|\\.)*)\"", re.DOTALL)
_SET = re.compile(r"\s*set\b")
# What stands before a text that is written, not before one that is compared, or passed to a function.
_WRITTEN = re.compile(r"(?:^|[^=!<>]=|[+~:{]|(?<![\w)\]])\(|\belse)\s*$")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_PROMPT = "add_generation_prompt"
_SWITCHES = re.compile(r"thinking|reasoning|budget")


@dataclass(frozen=True, slots=True)
class ParserFamily:
    """One class of a parser, and what a model has that it reads.

    Attributes:
        names: its registered names; the first is proposed.
        family: models that it is made for, in words.
        writes: regular expressions that the template's texts match, all of them.
        lacks: those that they do not match.
        tokens: tokens that the tokenizer must have.
        model_types: types of models that it is for; () for any.
        opens: whether the prompt of each answer opens a thought.
    """

    names: tuple[str, ...]
    family: str
    writes: tuple[str, ...]
    lacks: tuple[str, ...]
    tokens: tuple[str, ...]
    model_types: tuple[str, ...]
    opens: bool = False


@dataclass(frozen=True, slots=True)
class Proposal:
    """What is proposed for one option.

    Attributes:
        parser: the name; "" for none.
        reason: why this one, or what could not be decided.
    """

    parser: str
    reason: str


@dataclass(frozen=True, slots=True)
class TokenizerFacts:
    """What decides of a model's tokenizer.

    Attributes:
        templates: texts of its chat templates.
        tokens: its added tokens; None where they were not read.
    """

    templates: tuple[str, ...]
    tokens: frozenset[str] | None = field(default=None)


@functools.cache
def parser_families() -> dict[str, tuple[ParserFamily, ...]]:
    """Return the rows of the two kinds, `tool` and `reasoning`.

    Raises:
        DataFileError: a row has an unknown field.
    """
    content = read_toml(_FILE)
    return {
        kind: tuple(make(ParserFamily, f"{_FILE}: {kind} {number}", row) for number, row in enumerate(content[kind], 1))
        for kind in ("tool", "reasoning")
    }


def propose_tool_parser(facts: TokenizerFacts, model_type: str) -> Proposal:
    """Return the parser of tool calls that a model's template calls for.

    Args:
        facts: of its tokenizer.
        model_type: of its configuration.
    """
    return _propose("tool", "calls", facts, model_type)


def propose_reasoning_parser(facts: TokenizerFacts, model_type: str) -> Proposal:
    """Return the parser of thoughts that a model's template calls for.

    Args:
        facts: of its tokenizer.
        model_type: of its configuration.
    """
    return _propose("reasoning", "thoughts", facts, model_type)


def _propose(kind: str, what: str, facts: TokenizerFacts, model_type: str) -> Proposal:
    if not facts.templates:
        return Proposal("", f"no chat template, so the form of its {what} is not known")
    texts = "\n".join(template_texts(template) for template in facts.templates)
    opens = any(opens_thought(template) for template in facts.templates)
    fitting = [row for row in parser_families()[kind] if _writes(row, texts, opens=opens) and _is_for(row, model_type)]
    # A row that names the type knows the family; one for any type knows the form alone.
    fitting = [row for row in fitting if row.model_types] or fitting
    if not fitting:
        return Proposal("", f"its chat template writes no {what} in a form that one parser of vLLM alone reads")
    if len(fitting) > 1:
        names = " and ".join(row.names[0] for row in fitting)
        return Proposal("", f"{names} fit its chat template alike, so neither was chosen")
    row = fitting[0]
    missing = [token for token in row.tokens if token not in (facts.tokens or ())]
    if missing and facts.tokens is None:
        return Proposal("", f"{row.names[0]} needs the token {missing[0]}, and the added tokens were not read")
    if missing:
        return Proposal("", f"{row.names[0]} needs the token {missing[0]}, which the tokenizer lacks")
    return Proposal(row.names[0], f"its chat template writes {what} as {row.family} do: {_quote(row, texts)}")


def _writes(row: ParserFamily, texts: str, *, opens: bool) -> bool:
    if row.opens and not opens:
        return False
    return all(re.search(one, texts) for one in row.writes) and not any(re.search(one, texts) for one in row.lacks)


def _is_for(row: ParserFamily, model_type: str) -> bool:
    return not row.model_types or model_type in row.model_types


def _quote(row: ParserFamily, texts: str) -> str:
    """The first words of the template that decided."""
    match = re.search(row.writes[0], texts) if row.writes else None
    return " ".join(match[0].split()) if match else "each prompt ends with <think>"


def template_texts(template: str) -> str:
    """Return the texts that a Jinja template can write, one after another, without what it puts in between.

    Those of expressions and of variables that are set to a text; the conditions' are left out.
    """
    return "".join(_texts(template[:_LONGEST]))


def _texts(template: str) -> Iterator[str]:
    at = 0
    trims = False
    while match := _TAG.search(template, at):
        tag = match["tag"]
        text = template[at : match.start("tag")]
        text = text.lstrip() if trims else text
        yield text.rstrip() if match["trim"] == "-" else text
        end = _end(template, match.end(), {"{{": "}}", "{%": "%}", "{#": "#}"}[tag])
        if end == len(template):
            return  # it is not closed: Jinja refuses the template
        inner = template[match.end() : end]
        trims, at = inner.endswith("-"), end + 2
        yield from _inner(tag, inner.removesuffix("-"))
    rest = template[at:]
    yield rest.lstrip() if trims else rest


def _inner(tag: str, inner: str) -> Iterator[str]:
    """The texts that an expression writes, or that a variable is set to."""
    if tag == "{#" or (tag == "{%" and not _SET.match(inner)):
        return
    for match in _TEXT.finditer(inner):
        if _WRITTEN.search(inner, max(0, match.start() - 40), match.start()):
            yield _unescape(match)


def _end(template: str, begin: int, closing: str) -> int:
    """Where a tag ends: at its closing mark outside of texts; where all ends, without one."""
    at = begin
    while at < len(template):
        if closing != "#}" and template[at] in "'\"":
            if (text := _TEXT.match(template, at)) is None:
                break
            at = text.end()
        elif template.startswith(closing, at):
            return at
        else:
            at += 1
    return len(template)


def _unescape(match: re.Match[str]) -> str:
    text = match[1] if match[1] is not None else match[2]
    return re.sub(r"\\(.)", lambda escape: _ESCAPES.get(escape[1], escape[1]), text, flags=re.DOTALL)


def opens_thought(template: str) -> bool:
    """Whether the prompt of every answer ends in an opened thought, whatever the caller asks for."""
    _, mark, tail = template[-_LONGEST:].rpartition(_PROMPT)
    if not mark or _SWITCHES.search(tail):
        return False
    return template_texts("{% if " + tail).rstrip().endswith("<think>")


def added_tokens(configuration: object, beginning: str = "") -> frozenset[str] | None:
    """Return the added tokens of a tokenizer; None where it lists none.

    Args:
        configuration: content of tokenizer_config.json.
        beginning: first part of tokenizer.json, whose list of added tokens stands before its vocabulary.
    """
    listed = configuration.get("added_tokens_decoder") if isinstance(configuration, dict) else None
    entries: list[object] = [*listed.values()] if isinstance(listed, dict) else []
    match = re.search(r'"added_tokens"\s*:\s*(?=\[)', beginning)
    if match:
        with contextlib.suppress(ValueError, RecursionError):  # longer than the part: not known whole
            entries += json.JSONDecoder().raw_decode(beginning, match.end())[0]
    tokens = {str(each["content"]) for each in entries if isinstance(each, dict) and "content" in each}
    return frozenset(tokens) or None
