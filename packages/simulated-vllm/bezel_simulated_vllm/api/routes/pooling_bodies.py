"""Request bodies of the endpoints of a model that pools, as far as they are read here.

Source: vLLM 0.32.0, `vllm/entrypoints/pooling/*/protocol.py`. Their models are not recorded: a missing field is refused
as vLLM does, a field of another type once, where vLLM repeats it for each form that the body may have.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pydantic import ConfigDict

from bezel_simulated_vllm.api.bodies import Body
from bezel_simulated_vllm.api.errors import shape_error

Forms = tuple[tuple[str, ...], ...]
Tokens = list[int]
Text = str | dict[str, Any]


class PooledBody(Body):
    """Fields of every such body.

    Attributes:
        forms: the fields that each form of the body needs, in vLLM's order; a body of none of them is refused.
    """

    forms: ClassVar[Forms] = ()
    model_config = ConfigDict(extra="allow", from_attributes=True, strict=False)
    model: str | None = None
    truncate_prompt_tokens: int | None = None
    truncation_side: Literal["left", "right"] | None = None
    use_activation: bool | None = None


class InputBody(PooledBody):
    """POST /classify: prompts, or the messages of one."""

    forms: ClassVar[Forms] = (("input",), ("messages",))
    input: Tokens | list[Tokens] | str | list[str] | None = None
    messages: list[dict[str, Any]] | None = None
    encoding_format: Literal["float", "base64", "bytes", "bytes_only"] = "float"
    dimensions: int | None = None
    task: Literal["embed", "classify", "token_embed", "token_classify", "plugin", "embed&token_classify"] | None = None


class EmbeddingBody(InputBody):
    """POST /v1/embeddings."""

    forms: ClassVar[Forms] = (("input",), ("messages",), ("messages",), ("messages", "input"), ("messages", "input"))


class PoolingBody(InputBody):
    """POST /pooling."""

    forms: ClassVar[Forms] = (("input",), ("messages",), ("data",))


class EmbedBody(PooledBody):
    """POST /v2/embed, in Cohere's form."""

    texts: list[str]
    input_type: str | None = None
    embedding_types: list[Literal["float", "base64"]] | None = None


class ScoreBody(PooledBody):
    """POST /score: two texts or lists of them, by any of vLLM's pairs of names."""

    forms: ClassVar[Forms] = (
        ("queries", "documents"),
        ("queries", "items"),
        ("data_1", "data_2"),
        ("text_1", "text_2"),
    )
    text_1: Text | list[Text] | None = None
    text_2: Text | list[Text] | None = None
    queries: Text | list[Text] | None = None
    documents: Text | list[Text] | None = None
    items: Text | list[Text] | None = None
    data_1: Text | list[Text] | None = None
    data_2: Text | list[Text] | None = None

    def pair(self) -> tuple[list[Text], list[Text]]:
        """Return both sides as lists."""
        for left, right in self.forms:
            first, second = getattr(self, left), getattr(self, right)
            if first is not None and second is not None:
                return _list(first), _list(second)
        return [], []


class RerankBody(PooledBody):
    """POST /rerank."""

    query: Text
    documents: Text | list[Text]
    top_n: int = 0

    def pair(self) -> tuple[list[Text], list[Text]]:
        """Return the query and the documents."""
        return [self.query], _list(self.documents)


def check_form(body: PooledBody) -> None:
    """Refuse a body that has none of its forms.

    Raises:
        ApiError: it names the missing fields of each form.
    """
    names = body.model_fields_set
    missing = [field for form in body.forms for field in form if field not in names]
    if body.forms and all(set(form) - names for form in body.forms):
        content = dict.fromkeys(names)
        raise shape_error([
            {"type": "missing", "loc": ("body", field), "msg": "Field required", "input": content} for field in missing
        ])  # fmt: skip


def _list(value: Text | list[Text]) -> list[Text]:
    return value if isinstance(value, list) else [value]
