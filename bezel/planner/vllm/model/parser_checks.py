"""Reasoning parsers, tool parsers, tokenizer modes and chat templates against the tokenizer and the words of Gemma 4.

Owns the parsers of other families: those for which vLLM does not start, and those that start and find nothing. Leaves
unknown names of `reasoning-parser` and `tool-call-parser` to bezel.planner.vllm.option_checks. Sources: vLLM 0.32.0's
parser/parser_manager.py, config/reasoning.py, tokenizers/registry.py and renderers/chat_utils.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import EXITS, of_option, one_of
from bezel_catalog.vllm.parsers import ParserVerdict, parser_verdicts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from bezel_base.errors import Problem
    from bezel_catalog import Model

_REASONING, _TOOL, _MODE, _TEMPLATE = "reasoning-parser", "tool-call-parser", "tokenizer-mode", "chat-template"
_MAPS, _KEY = ("structured-outputs-config", "reasoning-config"), "reasoning_parser"
_HF = "hf"  # reads what the tokenizer's configuration says, which no plan sees
_PACKAGE = "it needs a package that vLLM does not bring (cohere_melody)"
_TURN = "<|turn>"  # the mark of a turn of Gemma 4
_OUTCOMES = {
    ("reasoning", "content"): "thoughts of Gemma 4 stay in the text of every answer",
    ("reasoning", "all"): "the whole answer of Gemma 4 is returned as reasoning and its text is empty",
    ("reasoning", "error"): "every chat fails",
    ("tool", "content"): "calls of Gemma 4 stay in the text: no caller gets a tool call",
    ("tool", "error"): "every chat with tools fails",
}
_TEMPLATES = ("basic", "blip2", "chatml", "deepseek_ocr", "deepseek_vl2", "kimi_audio", "minicpmv45")
# Files of vLLM's own folder of templates; other names are files of the image.
BUILT_IN = frozenset(f"template_{name}.jinja" for name in _TEMPLATES)
# Modes that start, and render every chat in their own family's format; and those that end the start.
_FOREIGN_MODES = {"deepseek_v32": "DeepSeek", "deepseek_v4": "DeepSeek", "deepseek_v41": "DeepSeek", "kimi_k3": "Kimi"}
_LACKING_MODES = {
    "cohere": "it needs the package cohere_melody, which vLLM does not bring",
    "inkling": "Gemma 4's tokenizer lacks its tokens",
    "kimi_audio": "Gemma 4 has no tiktoken.model",
    "mistral": "Gemma 4 has no tokenizer file of Mistral",
}
_MODES = ("auto", "hf")


def check_parsers(values: Mapping[str, Any], model: Model, parsers: Iterable[str] | None) -> Iterator[Problem]:
    """Refuse parsers, modes and templates of other families than Gemma 4; for another model, unknown names only.

    Args:
        values: of the options, by option name.
        model: the checkpoint.
        parsers: the release's own reasoning parsers; None where they were not recorded, so that names are not judged.
    """
    unknown = () if parsers is None else tuple(_unknown_reasoning(values, tuple(sorted(parsers))))
    if not model.is_gemma4:
        yield from unknown
        return
    reasoning, tool = reasoning_parser(values), tool_parser(values)
    # These two are combined by their names, even where tool calls are off.
    named = str(values.get(_TOOL) or "") if reasoning or tool else ""
    names = {name for name in (reasoning[1] if reasoning else "", named) if name}
    if _HF in names and len(names) > 1:
        option = _TOOL if named == _HF else _REASONING
        consequence = f"it cannot be combined with another parser, here {', '.join(names - {_HF})}; {EXITS}"
        yield of_option(option, _HF, consequence, "write gemma4.")
    elif not tool and _needs_package(named):
        consequence = f"{_PACKAGE}, even where tool calls are off; {EXITS}"
        yield of_option(_TOOL, named, consequence, "remove it, or write gemma4.")
    elif values.get("tokenizer") is None:
        has_template = values.get(_TEMPLATE) is not None
        if reasoning:
            yield from _parser(reasoning[0], "reasoning", reasoning[1], own_format=has_template)
        yield from _parser(_TOOL, "tool", tool, own_format=has_template)
    yield from unknown
    yield from _mode(values)
    yield from _template(values)


def reasoning_parser(values: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the option that names the reasoning parser, and the name; None without one.

    Args:
        values: of the options, by option name.
    """
    places = (
        (_REASONING, ""),
        ("structured-outputs-config", "reasoning_parser"),
        ("reasoning-config", "reasoning_parser"),
    )
    for option, key in places:
        value = values.get(option)
        name = value.get(key) if key and isinstance(value, dict) else value
        if isinstance(name, str) and name:
            return (f"{option}.{key}" if key else option), name
    return None


def tool_parser(values: Mapping[str, Any]) -> str:
    """Return the tool parser that the server constructs; "" without one.

    Args:
        values: of the options, by option name.
    """
    name = values.get(_TOOL)
    return name if values.get("enable-auto-tool-choice") is True and isinstance(name, str) else ""


def _parser(option: str, kind: str, name: str, *, own_format: bool) -> Iterator[Problem]:
    verdict = getattr(parser_verdicts(), kind).get(name)
    if verdict is None or name == _HF:
        return
    if verdict.error:
        yield of_option(option, name, f"{_cause(verdict)}; {EXITS}", "write gemma4.")
    elif (outcome := _OUTCOMES.get((kind, verdict.reads))) and not own_format:
        consequence = f"it is made for another family: the server starts and is healthy, and {outcome}."
        yield of_option(option, name, consequence, f"write gemma4, or add the {_TEMPLATE} that asks for its format.")


def _needs_package(name: str) -> bool:
    verdict = parser_verdicts().tool.get(name)
    return verdict is not None and verdict.exception == "ImportError"


def _cause(verdict: ParserVerdict) -> str:
    if verdict.exception == "ImportError":
        return _PACKAGE
    return f"it is made for another family, whose tokens Gemma 4's tokenizer lacks ({verdict.exception})"


def _unknown_reasoning(values: Mapping[str, Any], parsers: tuple[str, ...]) -> Iterator[Problem]:
    """Unknown names in the two maps; that of `reasoning-config` counts only without the option."""
    for option in _MAPS:
        value = values.get(option)
        name = value.get(_KEY) if isinstance(value, dict) else None
        hidden = option == "reasoning-config" and values.get(_REASONING)
        plugin = values.get("reasoning-parser-plugin")
        if isinstance(name, str) and name and name not in parsers and not hidden and not plugin:
            consequence = f"vLLM does not know this parser; {EXITS}"
            yield of_option(f"{option}.{_KEY}", name, consequence, one_of(parsers, None))


def _mode(values: Mapping[str, Any]) -> Iterator[Problem]:
    mode = values.get(_MODE)
    if not isinstance(mode, str) or mode in _MODES:
        return
    if mode in _FOREIGN_MODES:
        consequence = f"every chat is written in the format of {_FOREIGN_MODES[mode]}, which Gemma 4 does not know."
        yield of_option(_MODE, mode, consequence, "remove it.")
        return
    cause = _LACKING_MODES.get(mode, "vLLM has no tokenizer of this mode")
    yield of_option(_MODE, mode, f"{cause}; {EXITS}", f"remove it, or write {' or '.join(_MODES)}.")


def _template(values: Mapping[str, Any]) -> Iterator[Problem]:
    template = values.get(_TEMPLATE)
    if not isinstance(template, str):
        return
    literal = any(character in template for character in "{}\n")
    if (literal and _TURN not in template) or template in BUILT_IN:
        consequence = f"it writes chats without {_TURN}, the mark of Gemma 4's turns: the model answers at random."
        yield of_option(_TEMPLATE, template, consequence, "remove it: the checkpoint has its own.")
