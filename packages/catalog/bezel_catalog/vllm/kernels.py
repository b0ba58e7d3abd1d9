"""Kernels of experts and of linear layers that vLLM refuses for Gemma 4. Data: vllm/start_relations/kernels.json.

The data are what the classes of the release answered (tools/vllm/recorders/kernel_selection.py).
"""

from __future__ import annotations

import functools
import json
from typing import TYPE_CHECKING

from bezel_catalog.loader import DATA

if TYPE_CHECKING:
    from collections.abc import Mapping

OPTIONS = ("moe-backend", "linear-backend")


@functools.cache
def _recorded_kernels() -> Mapping[str, Mapping[str, Mapping[str, Mapping[str, str]]]]:
    kernels: Mapping[str, Mapping[str, Mapping[str, Mapping[str, str]]]] = json.loads(
        (DATA / "vllm" / "start_relations" / "kernels.json").read_text(encoding="utf-8")
    )
    return kernels


def refused_kernels(option: str, encoding: str, capability: str) -> Mapping[str, str]:
    """Return vLLM's error by the name of the kernel: its class and its text; empty where none was refused.

    Args:
        option: "moe-backend" or "linear-backend".
        encoding: of the weights, as in the catalogue of models.
        capability: compute capability of the GPU, e.g. "8.9".
    """
    return _recorded_kernels()[option].get(encoding, {}).get(capability, {})
