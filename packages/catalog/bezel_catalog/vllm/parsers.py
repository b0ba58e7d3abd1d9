"""Verdicts of vLLM's reasoning and tool parsers on Gemma 4, recorded with its own classes. Data: vllm/parsers.toml."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_catalog.loader import make, read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

_FILE = "vllm/parsers.toml"


@dataclass(frozen=True, slots=True)
class ParserVerdict:
    """What one parser does with Gemma 4's tokenizer and answers.

    `exception` and `error` are those with which the start ends, "" where it starts; `stage` is "config", or
    "application" once the engine runs. `reads` is what becomes of a thought or a tool call: "thought" or "call" as it
    should be, "content" (it stays in the text), "all" (no text is left) or "error" (the request fails).
    """

    stage: str = ""
    exception: str = ""
    error: str = ""
    reads: str = ""


@dataclass(frozen=True, slots=True)
class ParserVerdicts:
    """Verdicts of every parser of a release, by name: those of reasoning, and those of tool calls."""

    release: str
    reasoning: Mapping[str, ParserVerdict]
    tool: Mapping[str, ParserVerdict]


@functools.cache
def parser_verdicts() -> ParserVerdicts:
    """Return the recorded verdicts.

    Raises:
        DataFileError: a row has an unknown field.
    """
    content = read_toml(_FILE)
    kinds = {
        kind: {name: make(ParserVerdict, f"{_FILE}: {kind}.{name}", row) for name, row in content[kind].items()}
        for kind in ("reasoning", "tool")
    }
    return ParserVerdicts(release=content["release"], **kinds)
