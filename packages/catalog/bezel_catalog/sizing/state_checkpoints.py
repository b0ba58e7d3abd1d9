"""States that vLLM keeps inside a prompt so that its beginning can be reused: which kernels write them, and where.

Source: vLLM 0.33.0, `vllm/model_executor/layers/mamba/gdn/qwen_gdn_linear_attn.py` (_resolve_gdn_prefill_backend,
get_prefill_checkpoint_alignment, get_kv_cache_spec) and `vllm/v1/attention/backends/gdn_attn.py`
(FLASHINFER_GDN_CHECKPOINT_ALIGNMENT). 0.32.0 writes none for gated delta nets. Images of vLLM have CUDA 13, which the
kernel needs on compute capability 10 and 12; one with CUDA 12 (a tag that ends in cu129) needs a block less.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_catalog.vllm.release_changes import order_of

if TYPE_CHECKING:
    from bezel_catalog.architectures.layers import StateLayers

_FIRST_RELEASE = (0, 33, 0)
_ALIGNMENT = 64
_HOPPER = "9.0"
_BLACKWELL = ("10.", "12.")
_KEY_DIM = 128


def checkpoint_alignment(layers: StateLayers, release: str | None, compute_capability: str | None) -> int | None:
    """Tokens whose multiples such a state may lie at; None where a prefill leaves none.

    Each sequence then has a block more, and the blocks of the whole cache are a multiple of these tokens.

    Args:
        layers: the layers with states.
        release: release of vLLM; None for the oldest recorded one.
        compute_capability: of the GPU, e.g. "8.9"; None for another device.
    """
    if layers.form != "gdn_attention" or compute_capability is None:
        return None
    if release is None or order_of(release) < _FIRST_RELEASE:
        return None
    if compute_capability == _HOPPER:
        return _ALIGNMENT
    return _ALIGNMENT if compute_capability.startswith(_BLACKWELL) and layers.key_dim == _KEY_DIM else None
