"""Options of LoRA adapters that contradict others, in the words of vLLM 0.32.0; `adapters.py` loads the adapters.

Source: vllm 0.32.0, engine/arg_utils.py and entrypoints/cli/serve.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_simulated_vllm.configuration.adapters import allows_updates
from bezel_simulated_vllm.configuration.failures import refusal

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from bezel_simulated_vllm.configuration.speculation import Speculation


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
    if allows_updates(environment) and (options.api_server_count or 1) > 1:
        raise refusal("lora-updating")
    if not options.enable_lora:
        return
    if drafting and batched < sequences * (drafting.tokens + 1):
        raise refusal("lora-drafts")
