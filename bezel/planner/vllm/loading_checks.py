"""Refuse contradictions to the chosen way of loading weights: options, secrets, folders, models elsewhere.

Owns the rules over `weights.loading`; without it the arguments alone determine the loading, and nothing is refused
here. Leaves models of the hub in the arguments of an offline service to bezel.planner.vllm.argument_conflicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.errors import Problem, shown
from bezel.planner.base.problems import of_option, setting
from bezel.planner.vllm.arguments import MOUNT_PATH
from bezel.planner.vllm.loading import HUB, LOADINGS, STREAMER, STREAMER_KEYS, Loading

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.catalog import Model
    from bezel.planner.base.settings import Settings, Weights
    from bezel.planner.vllm.arguments import Argument

# Variables that stop the hub's libraries from downloading.
_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_FORMAT, _STRATEGY, _EXTRA = "load-format", "safetensors-load-strategy", "model-loader-extra-config"
_SCHEMES = ("gs://", "s3://", "az://")


def check_loading(settings: Settings, model: Model, arguments: Mapping[str, Argument], bucket: str) -> list[Problem]:
    """Every contradiction to `weights.loading`.

    Args:
        settings: of the stack.
        model: the checkpoint.
        arguments: by option name.
        bucket: the stack's bucket.
    """
    if settings.weights.loading is None:
        return []
    loading = LOADINGS[settings.weights.loading]
    written = {name: argument.value for name, argument in arguments.items() if argument.from_stack}
    return [
        *_options(loading, written),
        *(_hub(settings, model) if loading is HUB else ()),
        *_places(loading, written, bucket),
    ]


def _options(loading: Loading, written: Mapping[str, Any]) -> list[Problem]:
    problems = []
    chosen, strategy = written.get(_FORMAT), written.get(_STRATEGY)
    if chosen is not None and chosen not in loading.load_formats:
        problems.append(
            of_option(
                _FORMAT,
                chosen,
                f"weights.loading: {loading.id} says otherwise ({loading.way}): one of the two would not happen.",
                _repair(next((one for one in LOADINGS.values() if chosen in one.load_formats), None)),
            )
        )
    if strategy is not None and not loading.load_strategies:
        problems.append(
            of_option(
                _STRATEGY,
                strategy,
                "the streamer reads safetensors files itself and heeds no strategy: it would have no effect.",
                "remove it, or choose weights.loading: fuse or fuse-prefetch.",
            )
        )
    elif strategy is not None and strategy not in loading.load_strategies:
        consequence = (
            "the downloaded files lie in the instance's memory already: they would be read into it once more."
            if loading is HUB
            else f"weights.loading: {loading.id} says otherwise ({loading.way}): one of the two would not happen."
        )
        matching = next((one for one in LOADINGS.values() if one.mounted and strategy in one.load_strategies), None)
        problems.append(of_option(_STRATEGY, strategy, consequence, _repair(None if loading is HUB else matching)))
    extra = written.get(_EXTRA)
    if loading is STREAMER and isinstance(extra, dict) and (unknown := sorted(set(extra).difference(STREAMER_KEYS))):
        problems.append(
            of_option(
                f"{_EXTRA}.{unknown[0]}",
                extra[unknown[0]],
                "the streamer knows no such key: vLLM exits while it starts (Unexpected extra config keys).",
                f"remove it; it knows {', '.join(STREAMER_KEYS)}.",
            )
        )
    return problems


def _repair(matching: Loading | None) -> str:
    return f"remove it, or write weights.loading: {matching.id}." if matching else "remove it."


def _hub(settings: Settings, model: Model) -> list[Problem]:
    """Refuse a download at each start for weights that are not published, or where the hub is switched off."""
    problems = [
        Problem(
            setting(f"weights.{name}"),
            shown(value),
            "with weights.loading: hub each instance downloads the model, and nothing is read from a bucket.",
            "remove it, or choose another weights.loading.",
        )
        for name, value in _bucket_settings(settings.weights)
    ]
    if model.hub_id is None:
        problems.append(
            Problem(
                setting("weights.loading"),
                HUB.id,
                f"nobody publishes {model.id}: there is nothing to download.",
                "copy your own files into the bucket and choose another loading, e.g. fuse-prefetch.",
            )
        )
    problems += [
        Problem(
            setting(f"secrets.{variable}"),
            shown(variable),
            "a service that may not go to the hub finds no model and exits while it starts.",
            "remove it, or choose weights.loading: fuse-prefetch.",
        )
        for variable in _OFFLINE
        if variable in settings.secrets
    ]
    return problems


def _bucket_settings(weights: Weights) -> list[tuple[str, object]]:
    given = {"bucket": weights.bucket, "path": weights.path, "create": weights.create or None}
    return [(name, value) for name, value in given.items() if value is not None]


def _places(loading: Loading, written: Mapping[str, Any], bucket: str) -> list[Problem]:
    """Refuse draft models and tokenizers that this service cannot reach."""
    named = {name: written[name] for name in ("tokenizer", "hf-config-path", "spec-model") if name in written}
    config = written.get("speculative-config")
    if isinstance(config, dict) and "model" in config:
        named["speculative-config.model"] = config["model"]
    problems = []
    for name, value in named.items():
        if not isinstance(value, str):
            continue
        last = value.rstrip("/").rsplit("/", 1)[-1]
        here = f"{loading.place(bucket)}/{last}" if loading.in_bucket else f"OWNER/{last}, its id on the hub"
        if value.startswith(f"{MOUNT_PATH}/") and not loading.mounted:
            why = f"with weights.loading: {loading.id} nothing is mounted: vLLM does not find it and exits."
        elif value.startswith(_SCHEMES) and (loading.mounted or not loading.in_bucket):
            why = f"with weights.loading: {loading.id} vLLM loads from no bucket by its address, and exits."
        elif value.startswith(_SCHEMES) and not value.startswith(f"gs://{bucket}/"):
            why = f"the service may read gs://{bucket} only: the streamer is refused, and vLLM exits."
        else:
            continue
        problems.append(of_option(name, value, why, f"write {here}."))
    return problems
