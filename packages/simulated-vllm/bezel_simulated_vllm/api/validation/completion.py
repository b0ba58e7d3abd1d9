"""Rules of POST /v1/completions."""

from __future__ import annotations

from typing import Any

from bezel_simulated_vllm.api.errors import api_error
from bezel_simulated_vllm.api.validation import shared

_DEFAULT_TOKENS = 16
_MOST_PROMPTS = 1024


def max_tokens(data: Any) -> Any:
    """Return the body with the default of `max_tokens` for null."""
    if isinstance(data, dict) and data.get("max_tokens") is None:
        data["max_tokens"] = _DEFAULT_TOKENS
    return data


def structured_outputs(data: Any) -> Any:
    """Check that an answer is constrained in one way."""
    if not isinstance(data, dict) or data.get("structured_outputs") is None:
        return data
    if shared.constraints(data) > 1:
        raise api_error("one-constraint")
    shared.structural_tag(data)
    return data


def logprobs(data: Any) -> Any:
    """Check the numbers of log probabilities."""
    if not isinstance(data, dict):
        return data
    labels, echo = data.get("logprob_token_ids"), data.get("echo")
    if labels and data.get("use_beam_search"):
        raise api_error("label-ids-beam")
    if data.get("use_beam_search") and echo and data.get("logprobs") is not None:
        raise api_error("echo-beam")
    if labels and echo and data.get("max_tokens") == 0:
        raise api_error("label-ids-echo")
    if labels and data.get("logprobs") is None:
        raise api_error("label-ids")
    shared.number(data, "prompt_logprobs")
    number = shared.number(data, "logprobs")
    shared.prompt_logprobs(data)
    if number is not None and number < 0 and number != -1:
        raise api_error("logprobs-negative", value=number)
    return data


def prompt(data: Any) -> Any:
    """Check that there is a prompt."""
    if not isinstance(data, dict):
        return data
    if data.get("prompt") in (None, "") and data.get("prompt_embeds") in (None, []):
        raise api_error("no-prompt")
    return data


def prompts(data: Any) -> Any:
    """Check the number of prompts."""
    if not isinstance(data, dict):
        return data
    for name in ("prompt", "prompt_embeds"):
        values = data.get(name)
        if not isinstance(values, list) or all(isinstance(part, int) for part in values):
            continue
        if len(values) > _MOST_PROMPTS:
            raise api_error("prompts", name=name, count=len(values), limit=_MOST_PROMPTS)
    return data
