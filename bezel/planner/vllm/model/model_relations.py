"""Every rule over vLLM's options and the model, its processor and its tokenizer that ends a start (vLLM 0.32.0).

Owns their order. Leaves the rules to the modules that it calls; each has rows in the catalogue's table of relations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.vllm.model.draft_options import check_draft_options
from bezel.planner.vllm.model.loader_checks import check_loader
from bezel.planner.vllm.model.lora_checks import check_lora
from bezel.planner.vllm.model.option_relations import check_relations
from bezel.planner.vllm.model.parser_checks import check_parsers
from bezel.planner.vllm.model.processor_checks import check_processor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem
    from bezel_catalog import Model, VllmOptions


def check_model_relations(
    values: Mapping[str, Any], model: Model, environment: Mapping[str, str], options: VllmOptions, *, tpu: bool
) -> Iterator[Problem]:
    """Check every relation of the options with each other and with the model.

    Args:
        values: of the options, by option name.
        model: the checkpoint.
        environment: of the container, without secrets.
        options: the recorded list of the pinned release.
        tpu: whether tpu-inference serves the model.
    """
    yield from check_parsers(values, model, options.registered.get("reasoning-parser"))
    yield from check_processor(values, model, options.registered.get("attention-backend", ()), tpu=tpu)
    yield from check_loader(values)
    yield from check_lora(values, environment)
    yield from check_draft_options(values, options.version)
    yield from check_relations(values, model, environment, tpu=tpu)
