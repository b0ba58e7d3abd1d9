"""Options of LoRA adapters beside other options: the tokens of a step with drafted ones, and API servers.

Leaves the adapters themselves to bezel.planner.vllm.adapter_modules. Sources: vLLM 0.32.0's engine/arg_utils.py and
entrypoints/cli/serve.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.problems import EXITS, of_option
from bezel.planner.vllm.speculation_checks import Speculation
from bezel_catalog.vllm.typed_values import integer

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bezel_base.errors import Problem

_UPDATING = "VLLM_ALLOW_RUNTIME_LORA_UPDATING"
_ON = ("1", "true")


def check_lora(values: Mapping[str, Any], environment: Mapping[str, str]) -> Iterator[Problem]:
    """Refuse options of adapters that end the start beside others.

    Args:
        values: of the options, by option name.
        environment: of the container.
    """
    if values.get("enable-lora") is True:
        yield from _step(values)
    servers = integer(values, "api-server-count") or 1
    if servers > 1 and environment.get(_UPDATING, "").strip().lower() in _ON:
        consequence = f"{_UPDATING} loads adapters in one API server only; {EXITS}"
        yield of_option("api-server-count", servers, consequence, "remove one of them.")


def _step(values: Mapping[str, Any]) -> Iterator[Problem]:
    chosen = Speculation.of(values)
    seqs = integer(values, "max-num-seqs")
    batched = integer(values, "max-num-batched-tokens")
    if not chosen.is_on or not (chosen.tokens and seqs and batched):
        return
    needed = seqs * (chosen.tokens + 1)
    if batched < needed:
        consequence = (
            f"with adapters, {seqs} sequences of {chosen.tokens} drafted tokens each must fit one step; {EXITS}"
        )
        yield of_option("max-num-batched-tokens", batched, consequence, f"set it to {needed} or more.")
