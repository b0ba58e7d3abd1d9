"""Parameters of generation that vLLM refuses: ranges as its API checks them, ids and constraints as its engine does.

The API's checks come before a stream begins; the engine's refusals reach a streaming client inside the stream.
"""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.api.errors import ApiError, EngineRefusedError, api_error, invalid
from bezel_simulated_vllm.api.validation.shared import one_kind
from bezel_simulated_vllm.configuration.logs import log
from bezel_simulated_vllm.grammars.constraint import request_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bezel_simulated_vllm.grammars.judge import Judge

_MOST_SEQUENCES = 16384
_MOST_LOGPROBS = 20
_MOST_LABELS = 128
_GREEDY = 1e-5
_LEAST_INTEGER, _MOST_INTEGER = -(2**63), 2**64

# The fields of structured outputs with their defaults, as an error tells them.
_OUTPUTS = {
    **dict.fromkeys(("json", "regex", "choice", "grammar", "json_object")),
    **dict.fromkeys(("disable_any_whitespace", "disable_additional_properties"), False),
    **dict.fromkeys(("whitespace_pattern", "structural_tag", "_backend")),
    "_backend_was_auto": False,
}

# In vLLM's order. A message marked True is followed by the parameter's name and value.
_RANGES: tuple[tuple[str, Callable[[Any], bool], str, bool], ...] = (
    ("presence_penalty", lambda value: abs(value) <= 2, "presence_penalty must be in [-2, 2], got {}.", False),
    ("frequency_penalty", lambda value: abs(value) <= 2, "frequency_penalty must be in [-2, 2], got {}.", False),
    ("repetition_penalty", math.isfinite, "repetition_penalty must be a finite number, got {}.", False),
    ("repetition_penalty", lambda value: value > 0, "repetition_penalty must be greater than zero, got {}.", False),
    ("temperature", math.isfinite, "temperature must be a finite number, got {}.", True),
    ("temperature", lambda value: value >= 0, "temperature must be non-negative, got {}.", True),
    ("temperature", lambda value: value <= 2, "temperature must be in [0, 2], got {}.", True),
    ("top_p", lambda value: 0 < value <= 1, "top_p must be in (0, 1], got {}.", True),
    ("top_k", lambda value: value >= -1, "top_k must be 0 (disable), or at least 1, got {}.", False),
    ("min_p", lambda value: 0 <= value <= 1, "min_p must be in [0, 1], got {}.", False),
    ("max_tokens", lambda value: value >= 1, "max_tokens must be at least 1, got {}.", True),
    ("min_tokens", lambda value: value >= 0, "min_tokens must be greater than or equal to 0, got {}.", False),
)


def check_sampling(body: Any, max_tokens: int) -> None:
    """Check the parameters of sampling, or of a beam search.

    Args:
        body: the call, with the fields of a chat or completion body.
        max_tokens: the limit of output tokens, whatever its name in the body.

    Raises:
        ApiError: 400 with the refused parameter.
    """
    if body.use_beam_search:
        _check_count(1 if body.n is None else body.n, "beam_width")
        return
    if (outputs := constraint(body)) is not None:
        one_kind(SimpleNamespace(**_OUTPUTS | {name: outputs[name] for name in _OUTPUTS if name in outputs}))
    _check_bias(body.logit_bias)
    _check_count(1 if body.n is None else body.n, "n")
    _check_integers(body)
    for name, holds, message, named in _RANGES:
        value = max_tokens if name == "max_tokens" else getattr(body, name)
        if value is not None and not holds(value):
            text = message.format(value)
            raise invalid(text, name, value) if named else ApiError(text)
    if body.min_tokens > max_tokens:
        raise api_error("min-tokens", limit=max_tokens, tokens=body.min_tokens)
    if "" in body.stops:
        raise api_error("empty-stop")
    if "" in body.bad_words:
        raise api_error("empty-bad-word", words=list(dict.fromkeys(body.bad_words)))
    if body.temperature is not None and body.temperature < _GREEDY and (body.n or 1) > 1:
        raise api_error("greedy-n", n=body.n)


def check_engine(body: Any, vocabulary: int, *, labels: bool, thinks: bool, judge: Judge) -> None:
    """Check what the engine checks: numbers of log probabilities, ids of tokens, constraints of the answer.

    Args:
        body: the call.
        vocabulary: how many ids the model has.
        labels: whether the log probabilities of given ids are requested.
        thinks: whether the server knows thoughts, and so can limit them.
        judge: what says whether the server's libraries take a constraint.

    Raises:
        EngineRefusedError: 400 with the refused parameter.
    """
    if body.use_beam_search:
        if 2 * (body.n or 1) > _MOST_LOGPROBS:
            _check_number("logprobs", 2 * (body.n or 1), vocabulary, "sample")
        return
    try:
        _check_probabilities(body, vocabulary, labels=labels)
        _check_tokens(body, vocabulary)
        if (outputs := constraint(body)) is not None:
            _check_constraint(outputs, judge)
            if body.allowed_token_ids is not None:
                raise api_error("engine")  # hardly any allowed token fits a form, and the engine fails without one
        if body.thinking_token_budget not in (None, -1) and not thinks:
            raise api_error("no-thoughts")
        for value in (body.top_k, body.thinking_token_budget, *(body.repetition_detection or {}).values()):
            if isinstance(value, int) and not _LEAST_INTEGER <= value < _MOST_INTEGER:
                raise api_error("overflow")
    except ApiError as error:
        raise EngineRefusedError(error) from None


def check_compilation(body: Any, judge: Judge) -> None:
    """Check that the engine compiles the constraint of a call that it is about to begin.

    Raises:
        EngineRefusedError: 500; one library took the constraint, and the engine's does not compile it.
    """
    outputs = None if body.use_beam_search else constraint(body)
    if outputs is not None and not judge.compiles(outputs, judge.judge(outputs).backend):
        raise EngineRefusedError(api_error("engine"))


def _check_constraint(outputs: dict[str, Any], judge: Judge) -> None:
    if error := request_error(outputs):
        raise api_error(error[0], **error[1])
    verdict = judge.judge(outputs)
    if verdict.unknown:
        log("grammar-not-judged", reason=verdict.unknown)
    if verdict.failure:
        raise api_error("python-500", text=verdict.failure)
    if verdict.refusal:
        raise ApiError(verdict.refusal.strip())


def _check_probabilities(body: Any, vocabulary: int, *, labels: bool) -> None:
    if not labels:
        _check_number("logprobs", body.sample_logprobs, vocabulary, "sample")
    _check_labels(body.logprob_token_ids if labels else None, vocabulary)
    number = body.prompt_logprobs
    _check_number("prompt_logprobs", body.sample_logprobs if number is None and body.echo else number, vocabulary)


def _check_tokens(body: Any, vocabulary: int) -> None:
    _check_ids("logit_bias", [int(key) for key in body.logit_bias or ()], vocabulary)
    _check_ids("stop_token_ids", list(dict.fromkeys(body.stop_token_ids or ())), vocabulary)
    allowed = body.allowed_token_ids
    if allowed == []:
        raise api_error("allowed-empty", value=allowed)
    if wrong := [token for token in allowed or () if not 0 <= token < vocabulary]:
        raise api_error("allowed-unknown", value=wrong)


def check_experts(start: int, length: int) -> None:
    """Check the place in the prompt from which the routing to experts is returned.

    Raises:
        EngineRefusedError: it is after the prompt.
    """
    if start > length:
        raise EngineRefusedError(api_error("experts", length=length, value=start))


def constraint(body: Any) -> dict[str, Any] | None:
    """Return the constraint of a call's answer as structured outputs, whichever field has it; that of calls first."""
    if forced := getattr(body, "tool_constraint", None):
        return dict(forced)
    form, outputs = body.response_format or {}, body.structured_outputs
    kind = form.get("type", "text")
    if kind == "text":
        return dict(outputs) if outputs is not None else None
    if kind == "json_object":
        of_form: dict[str, Any] = {"json_object": True}
    elif kind == "json_schema":
        of_form = {"json": (form.get("json_schema") or {}).get("schema")}
    else:
        of_form = {"structural_tag": json.dumps(form)}
    return {**(outputs or {}), **of_form}


def _check_bias(bias: Mapping[str, float] | None) -> None:
    wrong = [key for key in bias or () if not _whole(key)]
    if wrong:
        raise api_error("bias-keys", keys=repr(wrong), value=wrong)


def _whole(text: str) -> bool:
    try:
        int(text)
    except ValueError:
        return False
    return True


def _check_count(count: int, name: str) -> None:
    if count < 1:
        raise ApiError(f"{name} must be at least 1, got {count}.")
    if count > _MOST_SEQUENCES:
        raise api_error("sequences", name=name, limit=_MOST_SEQUENCES, count=count)


def _check_integers(body: Any) -> None:
    """Refuse integers that the transport to the engine cannot hold."""
    pending: list[Any] = [body.vllm_xargs, body.kv_transfer_params, body.ec_transfer_params]
    while pending:
        value = pending.pop()
        if isinstance(value, int) and not _LEAST_INTEGER <= value < _MOST_INTEGER:
            raise api_error("extra-integers")
        if isinstance(value, dict):
            pending += [*value, *value.values()]
        elif isinstance(value, list):
            pending += value


def _check_number(name: str, number: int | None, vocabulary: int, kind: str = "prompt") -> None:
    count = vocabulary if number == -1 else number
    if count and count > _MOST_LOGPROBS:
        raise api_error("logprobs", name=name, kind=kind, value=count, limit=_MOST_LOGPROBS)


def _check_labels(ids: list[int] | None, vocabulary: int) -> None:
    if ids is None:
        return
    if len(ids) > _MOST_LABELS:
        raise api_error("labels", value=len(ids), limit=_MOST_LABELS)
    _check_ids("logprob_token_ids", ids, vocabulary)


def _check_ids(name: str, ids: list[int], vocabulary: int) -> None:
    if wrong := [token for token in ids if not 0 <= token < vocabulary]:
        raise api_error("unknown-ids", ids=wrong, name=name, size=vocabulary, value=wrong)
