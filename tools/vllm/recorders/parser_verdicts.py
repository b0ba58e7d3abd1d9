"""Record what vLLM's reasoning and tool parsers make of Gemma 4: which end the start, and what the others find.

Run it with the Python of an environment that has vLLM 0.32.0, on a folder with a Gemma 4 tokenizer; no GPU is used:

    VENV/bin/python tools/vllm/recorders/parser_verdicts.py FOLDER > FILE

FILE is packages/catalog/bezel_catalog/data/vllm/parsers.toml.

Every parser of both registries is constructed as the server does at start (`ParserManager.get_parser` with the
tokenizer; a reasoning parser by itself before, as `ReasoningConfig.initialize_token_ids` does) and, where it starts,
reads one answer of Gemma 4 with a thought and one with a tool call. Every pair of parsers is constructed as well:
the last line on stderr says how many pairs do not follow from the two parsers alone.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")

from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest
from vllm.parser.parser_manager import ParserManager
from vllm.reasoning import ReasoningParserManager
from vllm.tokenizers import get_tokenizer
from vllm.tool_parsers import ToolParserManager

HEAD = """\
# What vLLM's parsers make of Gemma 4. Made by tools/vllm/recorders/parser_verdicts.py with vllm 0.32.0 and a
# tokenizer with the marks of Gemma 4. `error` ends the start, in the configuration or once the engine runs (`stage`).
# `reads` is what becomes of a thought or a call where it starts: "thought" or "call" as it should be, "content" (it
# stays in the text), "all" (no text is left), "error" (the request fails).
release = "0.32.0"\
"""
THOUGHT, ANSWER = "The user wants a greeting.", "Hello there."
THINKING = f"<|channel>thought\n{THOUGHT}\n<channel|>{ANSWER}"
CALL = '<|tool_call>call:get_weather{city:<|"|>Paris<|"|>}<tool_call|>'
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}


def main() -> None:
    """Print the catalogue's table."""
    folder = sys.argv[1]
    tokenizer = get_tokenizer(folder)
    reasoning, tools = sorted(ReasoningParserManager.list_registered()), sorted(ToolParserManager.list_registered())
    print(HEAD)
    singles = {}
    for kind, names in (("reasoning", reasoning), ("tool", tools)):
        for name in names:
            error = singles[kind, name] = construct(tokenizer, **{kind: name})
            print(f"\n[{kind}.{name}]")
            if error is None:
                reads = read_thought(tokenizer, name) if kind == "reasoning" else read_call(tokenizer, name)
                print(f"reads = {json.dumps(reads)}")
                continue
            early = construct_alone(tokenizer, name) if kind == "reasoning" else None
            error = early or error
            print(f"stage = {json.dumps('config' if early else 'application')}")
            print(f"exception = {json.dumps(type(error).__name__)}")
            print(f"error = {json.dumps(reason(error), ensure_ascii=False)}")
    check_pairs(tokenizer, reasoning, tools, singles)


def construct(tokenizer: Any, reasoning: str | None = None, tool: str | None = None) -> Exception | None:
    """Return the error with which the server ends, None where it starts."""
    try:
        ParserManager.get_parser(
            tool_parser_name=tool,
            reasoning_parser_name=reasoning,
            enable_auto_tools=tool is not None,
            model_name="MODEL",
            tokenizer=tokenizer,
        )
    except Exception as error:  # noqa: BLE001 - whatever a parser raises ends the start
        return error
    return None


def construct_alone(tokenizer: Any, name: str) -> Exception | None:
    """Return the error of a reasoning parser by itself, which the configuration raises first."""
    try:
        ReasoningParserManager.get_reasoning_parser(name)(tokenizer)
    except Exception as error:  # noqa: BLE001 - whatever a parser raises ends the start
        return error
    return None


def reason(error: Exception) -> str:
    """Return the parser's own words, without the sentence that names the flags."""
    named = isinstance(error.__cause__, Exception) and "cannot be used with the tokenizer" in str(error)
    return str(error.__cause__ if named else error)


def parse(tokenizer: Any, text: str, **names: str) -> tuple[str | None, str | None, list[Any] | None] | Exception:
    """Return reasoning, content and tool calls of an answer, or the error of the parser."""
    request = ChatCompletionRequest(messages=[{"role": "user", "content": "Hi"}], tools=[TOOL], model="m")
    parser = ParserManager.get_parser(
        tool_parser_name=names.get("tool"),
        reasoning_parser_name=names.get("reasoning"),
        enable_auto_tools="tool" in names,
        model_name="MODEL",
        tokenizer=tokenizer,
    )
    tokens = tokenizer.encode(text, add_special_tokens=False)
    try:
        parsed: tuple[str | None, str | None, list[Any] | None] = parser(tokenizer, request.tools).parse(
            text, request, enable_auto_tools="tool" in names, model_output_token_ids=tokens
        )
    except Exception as error:  # noqa: BLE001 - the server answers the request with it
        return error
    return parsed


def read_thought(tokenizer: Any, name: str) -> str:
    """Return what becomes of a thought: "thought" apart from the answer, "content", "all" (no answer), or "error"."""
    parsed = parse(tokenizer, THINKING, reasoning=name)
    if isinstance(parsed, Exception):
        return "error"
    thought, content, _ = parsed
    if THOUGHT in (thought or "") and (content or "").strip() == ANSWER:
        return "thought"
    return "content" if ANSWER in (content or "") else "all"


def read_call(tokenizer: Any, name: str) -> str:
    """Return what becomes of a tool call: "call", "content", "lost" or "error"."""
    parsed = parse(tokenizer, CALL, tool=name)
    if isinstance(parsed, Exception):
        return "error"
    _, content, calls = parsed
    if calls:
        call = (calls[0].name, json.loads(calls[0].arguments))
        return "call" if call == ("get_weather", {"city": "Paris"}) else "error"
    return "content" if "Paris" in (content or "") else "lost"


def check_pairs(
    tokenizer: Any, reasoning: list[str], tools: list[str], singles: dict[tuple[str, str], Exception | None]
) -> None:
    """Say on stderr which pairs differ from their parsers alone."""
    strange = []
    for one in reasoning:
        for other in tools:
            alone = singles["reasoning", one] or singles["tool", other]
            if (construct(tokenizer, one, other) is None) != (alone is None):
                strange.append(f"{one} with {other}")
    count, others = len(reasoning), len(tools)
    print(f"{count} reasoning parsers, {others} tool parsers, {count * others} pairs; not as alone:", file=sys.stderr)
    print("; ".join(strange) or "none", file=sys.stderr)


if __name__ == "__main__":
    main()
