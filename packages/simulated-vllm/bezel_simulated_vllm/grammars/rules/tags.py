"""Rules of xgrammar's structural tags: formats in one another, and tags that begin with one of several triggers.

Source: the behaviour of xgrammar 0.2.8 (`Grammar.from_structural_tag`, without a tokenizer, as vLLM validates).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.grammars.rules import ebnf, expressions, schemas
from bezel_simulated_vllm.grammars.rules.json_values import check_json
from bezel_simulated_vllm.grammars.rules.tag_formats import (
    FORMATS,
    UNTYPED,
    Format,
    inner_formats,
    is_unlimited,
)
from bezel_simulated_vllm.grammars.verdicts import RefusedError

if TYPE_CHECKING:
    from bezel_simulated_vllm.grammars.verdicts import Work


def check(text: str, work: Work) -> None:
    """Refuse a structural tag that vLLM or xgrammar does not take.

    Args:
        text: its JSON.
        work: the bound.

    Raises:
        RefusedError: it is refused.
        NotJudgedError: it has a part that no rule is known for, or takes more than the bound of work.
    """
    try:
        tag = json.loads(text)
    except (ValueError, RecursionError):
        raise RefusedError("Failed to parse JSON") from None
    check_json(tag, work)
    if isinstance(tag, dict | list | str) and "structures" in tag:
        tag = _current(tag)
    if not isinstance(tag, dict):
        raise RefusedError("Structural tag must be an object")
    if tag.get("type", "structural_tag") != "structural_tag":
        raise RefusedError('Structural tag\'s type must be a string "structural_tag"')
    if "format" not in tag:
        raise RefusedError("Structural tag must have a format field")
    _check_format(_resolve_types(tag["format"], work), work)


def _current(tag: Any) -> dict[str, Any]:
    """Return a tag of the former form in the present one.

    Raises:
        RefusedError: it is none.
    """
    try:
        tags = [
            {
                "type": "tag",
                "begin": each["begin"],
                "content": {"type": "json_schema", "json_schema": each["schema"]},
                "end": each["end"],
            }
            for each in tag["structures"]
        ]
        triggers = tag["triggers"]
    except (KeyError, TypeError, IndexError):
        raise RefusedError("Invalid structural tag specification.") from None
    if not all(isinstance(each[name], str) for each in tags for name in ("begin", "end")):
        raise RefusedError("Input should be a valid string")
    return {"type": "structural_tag", "format": {"type": "triggered_tags", "triggers": triggers, "tags": tags}}


def _resolve_types(form: Any, work: Work, depth: int = 0) -> Format:
    """Return a format with the type that it has, and those in it.

    Raises:
        RefusedError: it has none.
    """
    work.spend()
    if depth > 100:
        raise RefusedError("Formats are nested deeper than 100 levels")
    if not isinstance(form, dict):
        raise RefusedError("Format must be an object")
    if "type" in form:
        kind = form["type"]
        if not isinstance(kind, str) or kind not in FORMATS:
            raise RefusedError(f"Format type not recognized: {kind}")
        return _of_type(form, kind, work, depth)
    for kind in UNTYPED:
        try:
            return _of_type({**form, "type": kind}, kind, work, depth, named=False)
        except RefusedError:
            continue
    raise RefusedError("Invalid format")


def _of_type(form: Format, kind: str, work: Work, depth: int, *, named: bool = True) -> Format:
    FORMATS[kind](form)
    if kind == "any_text" and not named and "excludes" not in form:
        raise RefusedError("Any text format should not have any fields other than type")
    parts = []
    for part in inner_formats(form):
        if "tags" in kind and (not isinstance(part, dict) or part.get("type", "tag") != "tag"):
            raise RefusedError('Tag format\'s type must be a string "tag"')
        parts.append(_resolve_types({**part, "type": "tag"} if "tags" in kind else part, work, depth + 1))
    return {**form, "parts": parts}


def _check_format(form: Format, work: Work) -> None:
    """Refuse what a format of the right form does not convert to."""
    kind = form["type"]
    if kind == "json_schema" or kind == "qwen_xml_parameter":
        schemas.check_conversion(form["json_schema"], work)
    elif kind == "grammar":
        ebnf.check(form["grammar"], work)
    elif kind == "regex":
        expressions.check(form["pattern"], work)
    elif kind == "triggered_tags":
        _check_triggers(form)
    for part in form["parts"]:
        _check_format(part, work)
    if kind == "tag" and is_unlimited(form["parts"][0]) and not form["parts"][0].get("excludes"):
        ends = form["end"] if isinstance(form["end"], list) else [form["end"]]
        if not any(ends) and not form["parts"][0].get("exclude_tokens"):
            raise RefusedError("When the content is unlimited, at least one end string must be non-empty")


def _check_triggers(form: Format) -> None:
    begins = [tag["begin"] for tag in form["parts"]]
    calls_once = form.get("at_least_one") and form.get("stop_after_first")
    for tag in form["parts"]:
        if not isinstance(tag["begin"], str):
            raise RefusedError("Tags in triggered_tags must have a string begin, not a token format")
        begun = sum(tag["begin"].startswith(trigger) for trigger in form["triggers"])
        if begun != 1:
            many = "matches multiple triggers" if begun else "does not match any trigger"
            raise RefusedError(f"One tag {many} in a triggered tags format")
    if not calls_once and not all(any(begin.startswith(trigger) for begin in begins) for trigger in form["triggers"]):
        raise RefusedError("Internal check failed: a trigger has no tag")
