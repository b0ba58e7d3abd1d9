"""Pooling of a model: whether a release of vLLM pools with it, the pooler's task, and the endpoints that it serves.

Source: vLLM 0.32.0 and 0.33.0. The runner and the conversion are those of `vllm/config/model.py`
(_get_default_runner_type, _get_default_convert_type, get_pooling_task), the endpoints those of
`vllm/entrypoints/pooling/factories.py` (register_pooling_api_routers, enable_scoring_api), the tasks of each class
those of its `pooler` in `vllm/model_executor/models`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bezel_catalog.architectures.configuration import class_names
from bezel_catalog.architectures.registry import KnownArchitecture, known_architecture

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

POOLING_MODULES = (
    "sentence_transformers.models.Pooling",
    "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
)
"""Types in modules.json of Sentence Transformers by which vLLM pools with a model of any class."""

EMBEDDINGS, CLASSIFY, RERANK, POOLING = "/v1/embeddings", "/classify", "/v1/rerank", "/pooling"
_SCORING = ("/rerank", "/score", RERANK, "/v1/score", "/v2/rerank")
_KINDS = {
    "token-classification": ("token_classify",),
    "reward": ("token_classify",),
    "late-interaction": ("token_embed",),
    "classification": ("classify", "token_classify"),
    "embedding": ("embed", "token_embed"),
}
"""Tasks of the classes of a table of the registry; the first table that an architecture stands in counts."""
_POOLERS = {
    "BgeM3EmbeddingModel": ("embed", "token_embed", "token_classify", "embed&token_classify"),
    "Lfm2BidirectionalModel": ("embed",),
    "Terratorch": ("plugin",),
}
"""Classes whose pooler has other tasks than those of their table."""
_CONVERTED = {"embed": _KINDS["embedding"], "classify": _KINDS["classification"]}
_ENDINGS = (
    *((ending, "generate", "none") for ending in ("ForCausalLM", "ForConditionalGeneration")),
    *((ending, "generate", "none") for ending in ("ChatModel", "LMHeadModel")),
    *((ending, "pooling", "embed") for ending in ("ForTextEncoding", "EmbeddingModel")),
    *((f"For{kind}Classification", "pooling", "classify") for kind in ("Sequence", "Token", "Audio", "Image", "Video")),
    ("ClassificationModel", "pooling", "classify"),
    *((ending, "pooling", "embed") for ending in ("ForRewardModeling", "RewardModel", "Model")),
)
_PRIORITY = ("embed&token_classify", "embed", "classify", "token_embed", "token_classify", "plugin")
_DEFAULT_LABELS = 2  # of transformers, where config.json has neither id2label nor num_labels
_TOKEN_EMBEDDINGS_SINCE = (0, 33, 0)


@dataclass(frozen=True, slots=True)
class Pooling:
    """How a release of vLLM pools with a model.

    Attributes:
        task: what its endpoints do: embed, classify, token_embed, token_classify, plugin, or embed&token_classify.
        tasks: what its pooler can do; `pooler-config.task` chooses another one of them.
        convert: how a class that generates is converted: embed or classify; none where it pools itself.
        labels: number of the classes that it knows.
        endpoints: paths of the requests that it answers, sorted.
    """

    task: str
    tasks: tuple[str, ...]
    convert: str
    labels: int
    endpoints: tuple[str, ...]

    @property
    def checked_endpoint(self) -> str | None:
        """The endpoint whose answer shows that the model works; None where only a plugin's data would get one."""
        if self.task in ("embed&token_classify", "plugin"):
            return None
        return next(path for path in (EMBEDDINGS, RERANK, CLASSIFY, POOLING) if path in self.endpoints)


def read_pooling(
    config: Mapping[str, Any],
    release: str,
    *,
    has_modules: bool = False,
    runner: str = "auto",
    convert: str = "auto",
    task: str | None = None,
) -> Pooling | None:
    """How a release of vLLM pools with a model; None where it generates with it.

    Args:
        config: content of config.json.
        release: the release, e.g. "0.32.0".
        has_modules: whether modules.json names one of POOLING_MODULES.
        runner: value of this option.
        convert: value of this option.
        task: `task` of the option pooler-config; one that the pooler does not have stops the server, and is ignored.

    Raises:
        NotInCatalogueError: the registry of the release is not recorded.
    """
    names = class_names(config)
    if runner == "auto":
        is_pooling = convert in ("embed", "classify") or _default_runner(names, release, has_modules) == "pooling"
    else:
        is_pooling = runner == "pooling"
    if not is_pooling or not names:
        return None
    resolved = _resolve(names[0], release)
    if _pools(resolved):
        tasks, convert = _class_tasks(resolved), "none"
    else:
        convert = convert if convert in _CONVERTED else _default_convert(names)
        tasks = _CONVERTED[convert]
    chosen = task if task in tasks else _task(names, tasks)
    labels = _labels(config)
    return Pooling(chosen, tasks, convert, labels, _endpoints(chosen, tasks, labels, release))


def _default_runner(names: Sequence[str], release: str, has_modules: bool) -> str:
    if has_modules:
        return "pooling"
    for name in names:
        resolved = known_architecture(name, release)
        if resolved is not None and resolved.base == name:
            if _pools(resolved):
                return "pooling"
            if resolved.generates:
                return "generate"
        runner = next((runner for ending, runner, _ in _ENDINGS if name.endswith(ending)), None)
        if runner is not None:
            return runner
    return "generate"


def _default_convert(names: Sequence[str]) -> str:
    for name in names:
        convert = next((c for ending, runner, c in _ENDINGS if runner == "pooling" and name.endswith(ending)), None)
        if convert is not None:
            return convert
    return "embed"


def _resolve(name: str, release: str) -> KnownArchitecture | None:
    resolved = known_architecture(name, release)
    return resolved if resolved is not None and resolved.base == name else None


def _pools(resolved: KnownArchitecture | None) -> bool:
    """Whether the class of an architecture is one that pools, by its own word."""
    return resolved is not None and resolved.pools


def _class_tasks(resolved: KnownArchitecture | None) -> tuple[str, ...]:
    if resolved is None:
        return _CONVERTED["embed"]
    kind = next((kind for kind in _KINDS if kind in resolved.kinds), "embedding")
    return _POOLERS.get(resolved.name, _KINDS[kind])


def _task(names: Sequence[str], tasks: tuple[str, ...]) -> str:
    if "token_classify" in tasks and any("ForTokenClassification" in name for name in names):
        return "token_classify"
    return next(task for task in _PRIORITY if task in tasks)


def _labels(config: Mapping[str, Any]) -> int:
    names = config.get("id2label")
    if isinstance(names, dict) and names:
        return len(names)
    count = config.get("num_labels")
    return count if isinstance(count, int) and not isinstance(count, bool) else _DEFAULT_LABELS


def _endpoints(task: str, tasks: tuple[str, ...], labels: int, release: str) -> tuple[str, ...]:
    paths = {POOLING}
    if task == "embed":
        paths |= {EMBEDDINGS, "/v2/embed"}
    if task == "token_embed" and tuple(map(int, release.split("."))) >= _TOKEN_EMBEDDINGS_SINCE:
        paths.add(EMBEDDINGS)
    if task == "classify" and "classify" in tasks:
        paths.add(CLASSIFY)
    if task in ("embed", "token_embed") or (task == "classify" and labels == 1):
        paths |= set(_SCORING)
    return tuple(sorted(paths))
