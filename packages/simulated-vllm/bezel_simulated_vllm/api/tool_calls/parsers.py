"""Parsers of tool calls: how a required or named call is forced, streamed and numbered by each. Data: parsers.toml."""

from __future__ import annotations

import functools
import secrets
import string
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel_simulated_vllm.api.bodies import ChatBody
    from bezel_simulated_vllm.configuration.settings import EngineSettings

_SHORT_ID = 9
_ONLY_OF_GPT_OSS = "openai"


@functools.cache
def _parsers() -> Mapping[str, frozenset[str]]:
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return {name: frozenset(names) for name, names in tomllib.loads(text).items()}


def is_forced_by_tag(parser: str | None) -> bool:
    """Whether calls are forced by a structural tag."""
    return parser in _parsers()["tag"]


def is_forced_by_schema(parser: str | None) -> bool:
    """Whether calls are forced by a JSON schema."""
    return parser in _parsers()["schema"]


def is_forced_by_list(parser: str | None) -> bool:
    """Whether calls are forced by the JSON schema of a list of them, a named one too."""
    return parser in _parsers()["list"]


def constrains_free_choice(parser: str | None) -> bool:
    """Whether calls that the model chooses by itself are forced into their form."""
    return parser in _parsers()["strict"]


def streams_nothing(settings: EngineSettings, body: ChatBody) -> bool:
    """Whether the stream of a call is empty: that of a required one, with a few parsers."""
    return body.tool_choice == "required" and settings.tool_parser in _parsers()["empty_streams"]


def reads_json_pieces(parser: str | None) -> bool:
    """Whether arguments are streamed by what of their JSON is whole: none of an empty object, and an empty end."""
    return parser in _parsers()["silent_arguments"]


def reads_no_answer(settings: EngineSettings, body: ChatBody) -> bool:
    """Whether reading the answer fails: the parser of gpt-oss with another model reads nothing."""
    if settings.tool_parser != _ONLY_OF_GPT_OSS or settings.model.config.get("model_type") == "gpt_oss":
        return False
    return bool(body.tools) and body.tool_choice != "none" and settings.auto_tools


def new_id(settings: EngineSettings, body: ChatBody, name: str) -> str:
    """Return the id of a new call: random, or counted by its name as Kimi K2 has been taught."""
    if settings.tool_parser == "kimi_k2":
        earlier = sum(len(message.get("tool_calls") or ()) for message in body.messages)
        return f"functions.{name}:{earlier}"
    if settings.tool_parser == "mistral":
        return "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(_SHORT_ID))
    return f"chatcmpl-tool-{secrets.token_hex(8)}"
