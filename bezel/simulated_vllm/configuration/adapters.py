"""LoRA adapters at start, in the words of vLLM 0.32.0.

Source: vllm 0.32.0, engine/arg_utils.py, entrypoints/openai/models/serving.py and
entrypoints/cli/serve.py.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bezel.simulated_vllm.configuration.failures import refusal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from bezel.simulated_vllm.configuration.speculation import Speculation


def check_adapters(
    options: argparse.Namespace,
    environment: Mapping[str, str],
    drafting: Speculation | None,
    *,
    batched: int,
    sequences: int,
) -> None:
    """Check the configuration of adapters.

    Raises:
        StartError: it is refused.
    """
    updating = environment.get("VLLM_ALLOW_RUNTIME_LORA_UPDATING", "").strip().lower() in ("1", "true")
    if updating and (options.api_server_count or 1) > 1:
        raise refusal("lora-updating")
    if not options.enable_lora:
        return
    if drafting and batched < sequences * (drafting.tokens + 1):
        raise refusal("lora-drafts")


def check_adapter_names(options: argparse.Namespace) -> None:
    """Check the adapters that the API process loads once the engine runs.

    Raises:
        StartError: adapters are off, or a name is taken.
    """
    taken: list[str] = []
    for name in _names(options.lora_modules):
        if name in (options.served_model_name or [options.model]):
            raise refusal("lora-base-name", name=name)
        if name in taken:
            raise refusal("lora-name-twice", name=name)
        if not options.enable_lora:
            raise refusal("lora-off")
        taken.append(name)


def _names(modules: list[str] | None) -> list[str]:
    names = []
    for word in modules or ():
        if "=" in word and "," not in word:
            names.append(word.split("=", 1)[0])
            continue
        try:
            names.append(str(json.loads(word).get("name")))
        except (json.JSONDecodeError, AttributeError):
            continue
    return names
