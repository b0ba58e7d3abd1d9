"""Reasoning parsers, tool parsers and tokenizer modes, as the server constructs them with the model's tokenizer.

Source: vllm 0.32.0, config/reasoning.py, parser/parser_manager.py and tokenizers/registry.py; the parsers' own errors
are those that its classes raised (catalogue, vllm/parsers.toml).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_catalog import vllm_options
from bezel_catalog.vllm.parser_families import parser_families
from bezel_catalog.vllm.parsers import ParserVerdict, parser_verdicts
from bezel_simulated_vllm.configuration.failures import StartError, refusal

if TYPE_CHECKING:
    import argparse

    from bezel_simulated_vllm.configuration.checkpoint import Checkpoint

_TOKENIZERS = ("deepseek_v32", "deepseek_v4", "deepseek_v41", "hf", "kimi_k3")
_FAILING = ("cohere", "inkling", "kimi_audio", "mistral")


def check_reasoning_config(options: argparse.Namespace, model: Checkpoint) -> None:
    """Check the parser that the engine's configuration constructs to find the marks of a thought.

    Raises:
        StartError: its class refuses the tokenizer.
    """
    name = options.reasoning_parser or _key(options.reasoning_config)
    parsers = _reasoning_parsers(options)
    if name and name not in parsers and not options.reasoning_parser_plugin:
        raise refusal("reasoning-parser", name=name, known=", ".join(parsers))
    verdict = _verdict("reasoning", name, model)
    if verdict is None or verdict.stage != "config" or options.tokenizer or name == "hf":
        return
    if verdict.exception == "ValueError":  # pydantic's validator catches this kind
        raise refusal("parser-class", reason=verdict.error)
    raise StartError(verdict.exception, verdict.error)


def check_structured_outputs(options: argparse.Namespace) -> None:
    """Check the name of the parser inside --structured-outputs-config.

    Raises:
        StartError: the server knows no such parser.
    """
    name, parsers = _key(options.structured_outputs_config), _reasoning_parsers(options)
    if name and name not in parsers and not options.reasoning_parser_plugin:
        raise refusal("structured-parser", name=name, known=",".join(parsers))


def check_tokenizer(options: argparse.Namespace) -> None:
    """Check the mode of the tokenizer, which the API process loads before it starts the engine.

    Raises:
        StartError: there is no such mode, or its files or tokens are missing.
    """
    mode = options.tokenizer_mode
    if mode in _FAILING:
        raise refusal(f"tokenizer-{mode}", model=options.model)
    if mode not in (*_TOKENIZERS, "auto"):
        raise refusal("tokenizer-mode", mode=mode)


def check_application(options: argparse.Namespace, model: Checkpoint) -> None:
    """Check what the API process constructs when the engine runs: both parsers together.

    Raises:
        StartError: one of them cannot be constructed.
    """
    reasoning = options.reasoning_parser or _key(options.structured_outputs_config)
    tool = options.tool_call_parser if options.enable_auto_tool_choice else None
    # The server combines the parsers by their names, that of tool calls also where they are off.
    named = options.tool_call_parser if reasoning or tool else None
    names = {name for name in (reasoning, named) if name}
    if "hf" in names:
        if len(names) > 1:
            raise refusal("parser-hf", release=options.release, reasoning=reasoning, tool=named)
        return
    for verdict in (parser_verdicts().reasoning.get(reasoning or ""), parser_verdicts().tool.get(named or "")):
        if verdict is not None and verdict.exception == "ImportError":
            raise StartError(verdict.exception, verdict.error, "application")
    if options.tokenizer:
        return
    for verdict in (_verdict("reasoning", reasoning, model), _verdict("tool", tool, model)):
        if verdict is None or not verdict.error:
            continue
        flags = [f"--tool-call-parser {tool}"] if tool else []
        flags += [f"--reasoning-parser {reasoning}"] if reasoning else []
        raise refusal("parser-tokens", flags=" and ".join(flags), model=options.model, reason=verdict.error)


def _verdict(kind: str, name: str | None, model: Checkpoint) -> ParserVerdict | None:
    """The recorded verdict on a parser; of another family than Gemma 4, where the tokenizer lacks what it needs."""
    verdict: ParserVerdict | None = getattr(parser_verdicts(), kind).get(name or "")
    if verdict is None or not verdict.error or model.model_type.startswith("gemma4"):
        return verdict
    needed = next((row.tokens for row in parser_families()[kind] if name in row.names), ())
    if model.parser_tokens is None or not needed or model.parser_tokens.issuperset(needed):
        return None
    return verdict


def _reasoning_parsers(options: argparse.Namespace) -> tuple[str, ...]:
    """Return the names of the release's own parsers, as the server lists them."""
    return tuple(sorted(vllm_options(options.release).registered["reasoning-parser"]))


def _key(value: object) -> str:
    name = value.get("reasoning_parser") if isinstance(value, dict) else None
    return name if isinstance(name, str) else ""
