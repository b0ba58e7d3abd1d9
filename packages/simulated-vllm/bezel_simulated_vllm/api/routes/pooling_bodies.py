"""Request bodies of the endpoints of a model that pools: the fields that are read here.

A body is validated by the recorded model of the release first (`validation`), so that a field here has the form that is
written here, and an error is the release's own.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

from bezel_simulated_vllm.api.bodies import Body
from bezel_simulated_vllm.api.validation.pooling import is_conversation

Text = str | dict[str, Any]
_PAIRS = (("queries", "documents"), ("queries", "items"), ("data_1", "data_2"), ("text_1", "text_2"))
"""Names of both sides of a score, in vLLM's order."""


class PooledBody(Body):
    """Fields of every such body."""

    model_config = ConfigDict(extra="allow", from_attributes=True, strict=False, defer_build=True)
    model: str | None = None
    truncate_prompt_tokens: int | None = None
    truncation_side: Literal["left", "right"] | None = None
    padding: str | None = None


class InputBody(PooledBody):
    """Prompts, or messages; `input` may hold messages too, where /v1/embeddings gets it."""

    input: Any = None
    messages: Any = None
    # Those below are fields of some of the recorded models only, and of any type where they are not.
    encoding_format: Any = "float"
    embed_dtype: Any = "float32"
    endianness: Any = "native"
    dimensions: Any = None
    task: Any = None
    chat_template: Any = None
    chat_template_kwargs: Any = None
    mm_processor_kwargs: Any = None
    media_io_kwargs: Any = None

    @property
    def has_prompts(self) -> bool:
        """Whether the body has texts or tokens, and no conversation, which vLLM reads where both are there."""
        if is_conversation(self.messages):
            return False
        rows = self.input if isinstance(self.input, list) else [self.input]
        return all(isinstance(row, str | int) or _is_tokens(row) for row in rows)

    @property
    def conversations(self) -> list[list[dict[str, Any]]]:
        """The conversations of the body; none where it has prompts."""
        value = self.input if self.messages is None else self.messages
        if is_conversation(value):
            return [value]
        return [each for each in value if is_conversation(each)] if isinstance(value, list) else []


class EmbeddingBody(InputBody):
    """POST /v1/embeddings."""

    recorded = "embedding"


class TokenEmbeddingBody(InputBody):
    """POST /v1/embeddings of a model with a vector for each token."""

    recorded = "token_embedding"
    late_chunking_params: dict[str, Any] | None = None


class ClassificationBody(InputBody):
    """POST /classify."""

    recorded = "classification"


class PoolingBody(InputBody):
    """POST /pooling: with `data`, what a plugin takes."""

    recorded = "pooling"
    data: Any = None

    @property
    def is_for_plugin(self) -> bool:
        """Whether the body is one that a plugin takes."""
        return "data" in self.model_fields_set and not {"input", "messages"} & self.model_fields_set


class EmbedBody(PooledBody):
    """POST /v2/embed, in Cohere's form."""

    recorded = "cohere_embedding"
    texts: list[str] | None = None
    images: list[str] | None = None
    inputs: list[dict[str, Any]] | None = None
    input_type: str | None = None
    embedding_types: list[str] | None = None
    output_dimension: int | None = None
    truncate: Literal["NONE", "START", "END"] = "END"
    max_tokens: int | None = None


class PairBody(PooledBody):
    """Fields of scores and ranks."""

    max_tokens_per_query: int = 0
    max_tokens_per_doc: int = 0

    def pair(self) -> tuple[list[Text], list[Text]]:
        """Return both sides as lists."""
        raise NotImplementedError


class ScoreBody(PairBody):
    """POST /score: two texts or lists of them, by any of vLLM's pairs of names."""

    recorded: ClassVar[str] = "score"

    def pair(self) -> tuple[list[Text], list[Text]]:
        """Return both sides as lists."""
        values = self.model_extra or {}
        left, right = next(pair for pair in _PAIRS if set(pair) <= values.keys())
        return _list(values[left]), _list(values[right])


class RerankBody(PairBody):
    """POST /rerank."""

    recorded: ClassVar[str] = "rerank"
    query: Text
    documents: Text | list[Text]
    top_n: int = 0

    def pair(self) -> tuple[list[Text], list[Text]]:
        """Return the query and the documents."""
        return [self.query], _list(self.documents)


def _is_tokens(row: Any) -> bool:
    return isinstance(row, list) and all(isinstance(token, int) for token in row)


def _list(value: Any) -> list[Text]:
    return value if isinstance(value, list) else [value]
