"""POST /invocations of a model that pools: the endpoint whose body fits first, or an error that names all bodies.

Source: vLLM 0.32.0 and 0.33.0, `vllm/entrypoints/pooling/factories.py` (get_pooling_invocation_types: the order) and
`vllm/entrypoints/serve/sagemaker/api_router.py` (the text).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_catalog.architectures.pooling import CLASSIFY, EMBEDDINGS, POOLING
from bezel_simulated_vllm.api.bodies import has_shape
from bezel_simulated_vllm.api.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel_simulated_vllm.api.bodies import Body

_PLACE = "vllm.entrypoints.pooling."
_WRAPPED = (
    "typing.Annotated[{}, BeforeValidator(func=<function reject_removed_pooling_parameters>, "
    "json_schema_input_type=PydanticUndefined)]"
)
# Endpoints in the order in which vLLM tries their bodies: module, classes, and the text around their union.
_TRIED: dict[str, tuple[str, tuple[str, ...], str]] = {
    EMBEDDINGS: (
        "embed",
        tuple(f"Embedding{form}Request" for form in ("Completion", "Chat", "BatchChat", "ChatInput", "BatchChatInput")),
        _WRAPPED,
    ),
    CLASSIFY: ("classify", ("ClassificationCompletionRequest", "ClassificationChatRequest"), _WRAPPED),
    "/rerank": ("scoring", (), "RerankRequest"),
    "/score": (
        "scoring",
        tuple(f"Score{form}Request" for form in ("QueriesDocuments", "QueriesItems", "Data", "Text")),
        "{}",
    ),
    POOLING: ("pooling", ("PoolingCompletionRequest", "PoolingChatRequest", "IOProcessorRequest"), _WRAPPED),
}


def invoked_path(bodies: Mapping[str, type[Body]], content: object) -> str:
    """Return the endpoint that /invocations takes for a body.

    Args:
        bodies: bodies of the model's endpoints by path; those that are not tried are left out.
        content: the body.

    Raises:
        ApiError: no endpoint of the model has such bodies, or a rule of one refuses it.
    """
    paths = [path for path in _TRIED if path in bodies]
    for path in paths:
        if has_shape(bodies[path].recorded, content):
            return path
    names = [_union(*_TRIED[path]) for path in paths]
    raise ApiError(f"Cannot find suitable handler for request. Expected one of: {names}")


def _union(module: str, classes: tuple[str, ...], text: str) -> str:
    return text.format(" | ".join(f"{_PLACE}{module}.protocol.{name}" for name in classes))
