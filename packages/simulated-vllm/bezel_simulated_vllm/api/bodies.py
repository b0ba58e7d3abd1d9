"""Request bodies: the fields that are read here, of those that vLLM's own models accept (`validation`).

A body is validated by the recorded model first, so that a field here has the form that is written here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pydantic import BaseModel, ConfigDict
from pydantic_core import ValidationError
from starlette.exceptions import HTTPException

from bezel_simulated_vllm.api.errors import api_error, shape_error
from bezel_simulated_vllm.api.validation.recorded import validator
from bezel_simulated_vllm.release import answering_release

if TYPE_CHECKING:
    from bezel_simulated_vllm.configuration.settings import EngineSettings


class Body(BaseModel):
    """Base of all bodies: unknown fields are ignored.

    Attributes:
        recorded: the name of the recorded model.
    """

    recorded: ClassVar[str] = ""
    _validated: Any = None
    _parallel_rank: int | None = None

    @property
    def parallel_rank(self) -> int | None:
        """The engine that a header of the request names; a server with one engine has number 0."""
        return self._parallel_rank

    @parallel_rank.setter
    def parallel_rank(self, rank: int | None) -> None:
        self._parallel_rank = rank

    @property
    def validated_body(self) -> Any:
        """What the recorded model made of the body: its lists may be read once, and are validated then."""
        return self._validated

    def check_support(self, settings: EngineSettings) -> None:
        """Refuse a call that the served model cannot answer at all, before the client's name of it is looked up.

        Raises:
            ApiError: it cannot.
        """

    model_config = ConfigDict(
        extra="ignore",
        from_attributes=True,
        strict=False,
        defer_build=True,  # with the first request: a start would take a tenth longer
    )


class StreamOptions(Body):
    """The `stream_options` of a body: usage in a stream beside the text."""

    include_usage: bool | None = False
    continuous_usage_stats: bool | None = False


class _Sampling(Body):
    model: str | None = None
    max_tokens: int | None = None
    n: int | None = 1
    min_tokens: int = 0
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    min_p: float | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    stop: str | list[str] | None = None
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    stop_token_ids: list[int] | None = None
    allowed_token_ids: list[int] | None = None
    bad_words: list[str] = []
    logit_bias: dict[str, float] | None = None
    use_beam_search: bool = False
    prompt_logprobs: int | None = None
    logprob_token_ids: list[int] | None = None
    thinking_token_budget: int | None = None
    truncate_prompt_tokens: int | None = None
    truncation_side: str | None = None
    routed_experts_prompt_start: int = 0
    repetition_detection: dict[str, Any] | None = None
    echo: bool | None = False
    response_format: dict[str, Any] | None = None
    structured_outputs: dict[str, Any] | None = None
    return_token_ids: bool | None = None
    return_tokens_as_token_ids: bool | None = None
    return_weight_versions: bool = False
    request_id: str | None = None
    cache_salt: str | None = None
    vllm_xargs: dict[str, Any] | None = None
    kv_transfer_params: dict[str, Any] | None = None
    ec_transfer_params: dict[str, Any] | None = None

    @property
    def stops(self) -> list[str]:
        """The stop strings."""
        return [self.stop] if isinstance(self.stop, str) else list(self.stop or [])


class _Messages(Body):
    messages: list[dict[str, Any]]


class ChatBody(_Sampling, _Messages):
    """POST /v1/chat/completions."""

    recorded = "chat"
    _tool_constraint: dict[str, Any] | None = None
    max_completion_tokens: int | None = None
    logprobs: bool | None = False
    top_logprobs: int | None = 0
    tools: list[dict[str, Any]] | None = None
    tool_choice: str | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = True
    include_reasoning: bool = True
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    return_prompt_text: bool | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    mm_processor_kwargs: dict[str, Any] | None = None
    media_io_kwargs: dict[str, Any] | None = None

    @property
    def tool_constraint(self) -> dict[str, Any] | None:
        """The structured outputs by which the server forces the answer's calls; None where it forces none."""
        return self._tool_constraint

    @tool_constraint.setter
    def tool_constraint(self, outputs: dict[str, Any] | None) -> None:
        self._tool_constraint = outputs

    @property
    def sample_logprobs(self) -> int | None:
        """How many log probabilities of each token are requested."""
        return self.top_logprobs if self.logprobs else None


class CompletionBody(_Sampling):
    """POST /v1/completions."""

    recorded = "completion"
    prompt: list[int] | list[list[int]] | str | list[str] | None = None
    prompt_embeds: Any = None
    max_tokens: int | None = 16
    logprobs: int | None = None
    suffix: str | None = None

    @property
    def sample_logprobs(self) -> int | None:
        """How many log probabilities of each token are requested."""
        return self.logprobs


class TokenizeBody(Body):
    """POST /tokenize, with a prompt or with messages."""

    recorded = "tokenize"
    model: str | None = None
    prompt: Any = None
    messages: list[dict[str, Any]] | None = None
    add_generation_prompt: bool = True
    continue_final_message: bool = False
    return_token_strs: bool | None = False
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    mm_processor_kwargs: dict[str, Any] | None = None
    media_io_kwargs: dict[str, Any] | None = None


class DetokenizeBody(Body):
    """POST /detokenize."""

    recorded = "detokenize"
    model: str | None = None
    tokens: list[int]


BodyT = TypeVar("BodyT", bound=Body)


def read(kind: type[BodyT], content_type: str, raw: bytes) -> BodyT:
    """Parse a body of the requested kind.

    Raises:
        ApiError: it is not JSON, or does not have that shape.
    """
    return body_of(kind, content_of(content_type, raw))


def body_of(kind: type[BodyT], content: Any) -> BodyT:
    """Return the body of the requested kind.

    Raises:
        ApiError: the content does not have that shape.
    """
    if not kind.recorded:
        return _own_form(kind, content)
    validated = check(kind.recorded, content)
    body = kind.model_validate(content)
    body._validated = validated  # noqa: SLF001 - the field of the base class
    return body


def _own_form(kind: type[BodyT], content: Any) -> BodyT:
    """Return a body whose model is not recorded, by the fields that are written here."""
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise shape_error([{**row, "loc": ("body", *row["loc"])} for row in error.errors(include_url=False)]) from None


def check(recorded: str, content: object) -> Any:
    """Validate a body by a recorded model, and return what it makes of it.

    Raises:
        ApiError: it does not have that shape, or a rule refuses it.
    """
    try:
        return validator(recorded, answering_release.get()).validate_python(content, from_attributes=True)
    except ValidationError as error:
        raise shape_error([{**row, "loc": ("body", *row["loc"])} for row in error.errors(include_url=False)]) from None


def has_shape(recorded: str, content: object) -> bool:
    """Whether a body has the shape of a recorded model.

    Raises:
        ApiError: a rule refuses it, whatever its shape is.
    """
    try:
        validator(recorded, answering_release.get()).validate_python(content)
    except ValidationError:
        return False
    return True


def check_json(content_type: str) -> None:
    """Check the type of a body.

    Raises:
        ApiError: it is not JSON.
    """
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise api_error("media-type")


def content_of(content_type: str, raw: bytes) -> object:
    """Return the JSON of a body.

    Raises:
        ApiError: it is not JSON.
    """
    check_json(content_type)
    missing = {"type": "missing", "loc": ("body",), "msg": "Field required", "input": None}
    if not raw:
        raise shape_error([missing])
    try:
        content = json.loads(raw)
    except json.JSONDecodeError as error:
        row = {"type": "json_invalid", "loc": ("body", error.pos), "msg": "JSON decode error", "input": {}}
        raise shape_error([{**row, "ctx": {"error": error.msg}}]) from None
    except (UnicodeDecodeError, RecursionError):
        raise HTTPException(400, "There was an error parsing the body") from None
    if content is None:
        raise shape_error([missing])
    return content
