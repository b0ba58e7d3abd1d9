"""Rules that vLLM's request models share: cache salts, formats of answers, structural tags, numbers of thoughts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticCustomError

from bezel_simulated_vllm.api.errors import api_error
from bezel_simulated_vllm.grammars.constraint import is_too_deep
from bezel_simulated_vllm.grammars.judge import is_structural_tag

if TYPE_CHECKING:
    from collections.abc import Callable

_SALT_CHARACTERS = 128
_NOT_IN_SALT = frozenset("@/\\\x00")


def same(value: Any) -> Any:
    """Return the value: for functions that only log, or that change what is not read here."""
    return value


def validate_wrapped(value: Any, validate: Callable[[Any], Any]) -> Any:
    """Return the validated value: for functions around a model that only log its unknown fields."""
    return validate(value)


def sequence(value: Any, validate: Callable[[Any], Any]) -> Any:
    """Return a validated list; a text is no sequence."""
    if isinstance(value, str):
        text = "'{type_name}' instances are not allowed as a Sequence value"
        raise PydanticCustomError("sequence_str", text, {"type_name": "str"})
    return validate(value)


def null_is_zero(value: Any) -> Any:
    """Return 0 for null."""
    return 0 if value is None else value


def thinking_budget(value: Any) -> Any:
    """Return the budget of a thought, None where it is not limited."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < -1:
        raise api_error("thinking-budget", value=value)
    return None if value == -1 else value


def cache_salt(data: Any) -> Any:
    """Check the salt of the prefix cache."""
    salt = data.get("cache_salt") if isinstance(data, dict) else None
    if salt is None:
        return data
    if not isinstance(salt, str) or not salt:
        raise api_error("salt-empty")
    if len(salt) > _SALT_CHARACTERS or _NOT_IN_SALT & set(salt):
        raise api_error("salt")
    return data


def stream_options(data: Any) -> Any:
    """Check that options of a stream come with one."""
    if isinstance(data, dict) and data.get("stream_options") and not data.get("stream"):
        raise api_error("stream-options")
    return data


def response_format(data: Any) -> Any:
    """Check that a format has what its type needs."""
    form = data.get("response_format") if isinstance(data, dict) else None
    if not isinstance(form, dict):
        # The real server fails on anything else than an object, with the words of Python.
        return data
    if form.get("type") == "json_schema" and form.get("json_schema") is None:
        raise api_error("no-schema")
    if form.get("type") == "structural_tag":
        _check_tag(form, "response_format")
    return data


def generation_prompt(data: Any) -> Any:
    """Check that a message is not both continued and followed by a new one."""
    if isinstance(data, dict) and data.get("continue_final_message") and data.get("add_generation_prompt"):
        raise api_error("two-prompts")
    return data


def constraints(data: dict[str, Any]) -> int:
    """Return how many of the three usual kinds of structured output a body names, and check its structural tag."""
    outputs = data["structured_outputs"]
    if not isinstance(outputs, dict):
        raise api_error("python-500", text=f"'{type(outputs).__name__}' object has no attribute 'get'")
    return sum(outputs.get(name) is not None for name in ("json", "regex", "choice"))


def structural_tag(data: dict[str, Any]) -> None:
    """Check the structural tag of a body's structured outputs."""
    tag = data["structured_outputs"].get("structural_tag")
    if tag is not None:
        _check_tag(tag, "structured_outputs")


def _check_tag(tag: Any, parameter: str) -> None:
    if is_too_deep(tag):
        raise api_error("too-deep")
    if not is_structural_tag(tag):
        raise api_error("tag", parameter=parameter)


def number(data: dict[str, Any], name: str) -> float | None:
    """Return a number of log probabilities; booleans count as numbers.

    Raises:
        ApiError: it is none.
    """
    value = data.get(name)
    if value is not None and not isinstance(value, int | float):
        raise api_error("no-integer", name=name, value=value)
    return value


def prompt_logprobs(data: dict[str, Any]) -> None:
    """Check the number of a prompt's log probabilities."""
    value = data.get("prompt_logprobs")
    if value is None:
        return
    if data.get("stream") and (value > 0 or value == -1):
        raise api_error("prompt-logprobs-stream")
    if value < 0 and value != -1:
        raise api_error("prompt-logprobs", value=value)


def one_kind(outputs: Any) -> None:
    """Check that structured outputs are of exactly one kind."""
    kinds = ("json", "regex", "choice", "grammar", "json_object", "structural_tag")
    count = sum(getattr(outputs, kind) is not None for kind in kinds)
    if count != 1:
        shown = dict(vars(outputs))
        raise api_error("kinds" if count else "no-kind", shown=shown)


def repetition(value: Any) -> None:
    """Check the sizes of the patterns whose repetition ends an answer."""
    if value.max_pattern_size < 0 or not 0 <= value.min_pattern_size <= value.max_pattern_size:
        raise api_error("pattern-size")
    if value.max_pattern_size > 0 and value.min_count < 2:
        raise api_error("pattern-count")
