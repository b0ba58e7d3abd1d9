"""A worker of vLLM's engine without a device: the model on torch's meta device, its cache laid out and never made.

Runs with the Python of a real vLLM and imports nothing of ours. vLLM's EngineCore drives it as an executor.
"""

from __future__ import annotations

import copy
import importlib
import tempfile
from typing import Any

_AVAILABLE = 1 << 36  # bytes for the cache, whatever the device has: memory is judged by other rules
_WITH_LAYERS = ("mtp", "draft_model", "eagle", "eagle3")


def module(name: str) -> Any:
    """Import a module of vLLM."""
    return importlib.import_module(f"vllm.{name}")


class Executor:
    """What an engine core asks of its workers, answered by the layers of one rank."""

    max_concurrent_batches = 1
    supported_tasks = ("generate",)

    def __init__(self, config: Any) -> None:
        self.config = config
        loader = module("model_executor.model_loader.utils")
        torch: Any = importlib.import_module("torch")
        module("model_executor.model_loader").get_model_loader(config.load_config)
        with module("config").set_current_vllm_config(config):
            _join_groups(config.parallel_config)
            types = module("utils.torch_utils")
            with torch.device("meta"), types.set_default_torch_dtype(config.model_config.dtype):
                self.model = loader.initialize_model(config)
                if draft := _draft(config):
                    loader.initialize_model(config, model_config=draft, prefix="draft_model")
            # Kernels of experts, which adapters wrap, are made of the weights.
            if config.lora_config and not config.model_config.is_moe:
                mixin = module("v1.worker.lora_model_runner_mixin").LoRAModelRunnerMixin()
                self.model = mixin.load_lora_model(self.model, config, torch.device("meta"))
            module("platforms").current_platform.update_block_size_for_backend(config)

    def get_kv_cache_specs(self) -> list[Any]:
        """Return the cache of each layer."""
        with module("config").set_current_vllm_config(self.config):
            return [module("v1.worker.gpu.attn_utils").get_kv_cache_spec(self.config)]

    def get_supported_kv_cache_layouts(self) -> list[list[str]]:
        """Return the layouts that every attention backend takes."""
        used = module("v1.worker.worker_base").get_current_attn_backends(self.config)
        return [[layout.name for layout in module("v1.attention.backends.utils").get_supported_kv_cache_layouts(used)]]

    def set_kv_cache_layout(self, name: str, *_: int) -> None:
        """Adopt a layout; 0.33.0 passes the interleaving of context parallelism beside it."""
        module("v1.attention.backends.utils").record_kv_cache_layout(self.config.cache_config, name)

    def determine_available_memory(self) -> list[int]:
        """Return memory for any cache."""
        return [_AVAILABLE]

    def initialize_from_config(self, caches: list[Any]) -> None:
        """Choose kernels' block sizes, and the mode of CUDA graphs."""
        torch: Any = importlib.import_module("torch")
        with module("config").set_current_vllm_config(self.config):
            attention = module("v1.worker.gpu.attn_utils")
            laid_out = copy.deepcopy(caches[0])  # layers that share a cache are added to it
            _, support, _ = attention.init_attn_backend(laid_out, self.config, torch.device("cpu"))
            speculative = self.config.speculative_config
            self.config.compilation_config.resolve_cudagraph_mode_and_sizes(
                support.min_cg_support,
                support.min_cg_attn_backend,
                1 + (speculative.num_speculative_tokens if speculative else 0),
                use_v2_model_runner=True,
                kv_cache_config=laid_out,
                max_num_reqs=self.config.scheduler_config.max_num_seqs,
            )

    def compile_or_warm_up_model(self) -> None:
        """Leave it: nothing can be computed."""

    def get_kv_connector_handshake_metadata(self) -> None:
        """Return nothing: no cache is registered with the connector."""

    def init_kv_output_aggregator(self, connector: Any) -> None:
        """Leave it: there is one rank."""

    def init_ec_output_aggregator(self) -> None:
        """Leave it: there is one rank."""

    def collective_rpc(self, *_: Any, **__: Any) -> list[Any]:
        """Return nothing of the workers."""
        return []


def _join_groups(parallel: Any) -> None:
    """Let this one process be the first rank of the groups that the arguments ask for."""
    state = module("distributed.parallel_state")
    place = f"file://{tempfile.mkdtemp()}/rendezvous"
    state.init_distributed_environment(1, 0, place, 0, "gloo")
    state.initialize_model_parallel(1, 1, backend="gloo")
    state._TP.world_size = parallel.tensor_parallel_size  # noqa: SLF001
    state._DCP.world_size = parallel.decode_context_parallel_size  # noqa: SLF001


def _draft(config: Any) -> Any:
    speculative = config.speculative_config
    return speculative.draft_model_config if speculative and speculative.method in _WITH_LAYERS else None
