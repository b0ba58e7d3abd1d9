"""Refuse contradictions to the chosen way of loading weights: options, secrets, folders, models elsewhere.

Owns the rules over `weights.loading`; without it the arguments alone determine the loading, and nothing is refused
here. Leaves models of the hub in the arguments of an offline service to bezel.planner.vllm.argument_conflicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import of_option, setting
from bezel.planner.vllm.argument_conflicts import named_models
from bezel.planner.vllm.arguments import MOUNT_PATH
from bezel.planner.vllm.loading import HUB, LOADINGS, STREAMER, STREAMER_KEYS, Loading
from bezel_base.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel.planner.base.settings import Settings
    from bezel.planner.vllm.arguments import Argument
    from bezel_catalog import Model

# Variables that stop the hub's libraries from downloading.
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_FORMAT, _STRATEGY, _EXTRA = "load-format", "safetensors-load-strategy", "model-loader-extra-config"
_SCHEMES = ("gs://", "s3://", "az://")


def check_loading(
    settings: Settings, model: Model, arguments: Mapping[str, Argument], bucket: str
) -> Iterator[Problem]:
    """Every contradiction to `weights.loading`.

    Args:
        settings: of the stack.
        model: the checkpoint.
        arguments: by option name.
        bucket: the stack's bucket.
    """
    if settings.weights.loading is not None:
        loading = LOADINGS[settings.weights.loading]
        written = {name: argument.value for name, argument in arguments.items() if argument.from_stack}
        yield from _options(loading, written)
        yield from _hub(settings, model) if loading is HUB else ()
        yield from _folders(loading, written, bucket)


def _options(loading: Loading, written: Mapping[str, Any]) -> Iterator[Problem]:
    chosen, strategy, extra = written.get(_FORMAT), written.get(_STRATEGY), written.get(_EXTRA)
    contradiction = (
        f"it contradicts weights.loading: {loading.id} ({loading.description}): one of the two would have no effect."
    )
    if chosen is not None and chosen not in loading.load_formats:
        matching = (other for other in LOADINGS.values() if chosen in other.load_formats)
        yield of_option(_FORMAT, chosen, contradiction, _repair(next(matching, None)))
    if strategy is not None and not loading.load_strategies:
        yield of_option(
            _STRATEGY,
            strategy,
            "the streamer reads safetensors files itself and ignores the strategy: it would have no effect.",
            "remove it, or choose weights.loading: fuse or fuse-prefetch.",
        )
    elif strategy is not None and strategy not in loading.load_strategies and loading is HUB:
        again = "the downloaded files are in the instance's memory already: they would be read into it again."
        yield of_option(_STRATEGY, strategy, again, _repair(None))
    elif strategy is not None and strategy not in loading.load_strategies:
        matching = (other for other in LOADINGS.values() if other.mounted and strategy in other.load_strategies)
        yield of_option(_STRATEGY, strategy, contradiction, _repair(next(matching, None)))
    if loading is STREAMER and isinstance(extra, dict) and (unknown := sorted(set(extra).difference(STREAMER_KEYS))):
        yield of_option(
            f"{_EXTRA}.{unknown[0]}",
            extra[unknown[0]],
            "the streamer does not know this key: vLLM exits while it starts (Unexpected extra config keys).",
            f"remove it; the known keys are {', '.join(STREAMER_KEYS)}.",
        )


def _repair(matching: Loading | None) -> str:
    return f"remove it, or write weights.loading: {matching.id}." if matching else "remove it."


def _hub(settings: Settings, model: Model) -> Iterator[Problem]:
    """Refuse a download at each start for weights that are not published, or where the hub is switched off."""
    weights = settings.weights
    copies = weights.regional_buckets or None
    for name, value in (
        ("bucket", weights.bucket),
        ("path", weights.path),
        ("create", weights.create or None),
        ("regional_buckets", copies),
    ):
        if value is not None:
            yield Problem(
                setting(f"weights.{name}"),
                value,
                "with weights.loading: hub each instance downloads the model, and nothing is read from a bucket.",
                "remove it, or choose another weights.loading.",
            )
    if model.hub_id is None:
        yield Problem(
            setting("weights.loading"),
            HUB.id,
            f"{model.id} is not published: it cannot be downloaded.",
            "copy your own files into the bucket and choose another loading, e.g. fuse-prefetch.",
        )
    for variable in _OFFLINE:
        if variable in settings.secrets:
            yield Problem(
                setting(f"secrets.{variable}"),
                variable,
                "a service that may not connect to the hub finds no model and exits while it starts.",
                "remove it, or choose weights.loading: fuse-prefetch.",
            )


def _folders(loading: Loading, written: Mapping[str, Any], bucket: str) -> Iterator[Problem]:
    """Refuse draft models and tokenizers that this service cannot reach."""
    chosen = f"with weights.loading: {loading.id}"
    for name, value in named_models(written).items():
        last = value.rstrip("/").rsplit("/", 1)[-1]
        if value.startswith(f"{MOUNT_PATH}/") and not loading.mounted:
            why = f"{chosen} nothing is mounted: vLLM does not find it and exits."
        elif value.startswith(_SCHEMES) and (loading.mounted or not loading.in_bucket):
            why = f"{chosen} vLLM does not load from a bucket's address, and exits."
        elif value.startswith(_SCHEMES) and not value.startswith(f"gs://{bucket}/"):
            why = f"the service may read gs://{bucket} only: the streamer is refused, and vLLM exits."
        else:
            continue
        here = f"{loading.folder_prefix(bucket)}/{last}" if loading.in_bucket else f"OWNER/{last}, its id on the hub"
        yield of_option(name, value, why, f"write {here}.")
