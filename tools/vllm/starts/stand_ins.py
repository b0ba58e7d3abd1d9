"""A CUDA machine that is not there: what vLLM's classes ask of the GPU and of kernels, answered for a named one.

Runs with the Python of a real vLLM and imports nothing of ours. Owns the platform, the names of compiled kernels and of
packages that only the CUDA build has. No kernel can be called; every rule of vLLM's own code runs as it is.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import types
from typing import Any

# Of the CUDA image, and not of a CPU build: compiled, or of no use without a GPU.
_PACKAGES = (
    "flashinfer",
    "flashinfer_cubin",
    "vllm._C_stable_libtorch",
    "vllm._moe_C_stable_libtorch",
    "vllm.vllm_flash_attn._vllm_fa2_C",
    "vllm.vllm_flash_attn._vllm_fa3_C",
)
_NAMESPACES = ("_C", "_moe_C", "_C_cache_ops", "_vllm_fa2_C", "_vllm_fa3_C")
_MULTIPROCESSORS = {(8, 9): 58, (9, 0): 132, (12, 0): 188}


class NoKernelError(RuntimeError):
    """A kernel was called, which nothing here can do."""


class _Module(types.ModuleType):
    """A module that has every name, each an empty class."""

    __path__: list[str] = []  # noqa: RUF012 - the attribute that makes a module a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, type(name, (), {}))
        return self.__dict__[name]


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002
        if any(fullname == name or fullname.startswith(f"{name}.") for name in _PACKAGES):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leave it empty."""


class _Kernel:
    """A kernel by its name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise NoKernelError(self._name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self


def install(capability: tuple[int, int], name: str, memory_bytes: int, count: int) -> None:
    """Make vLLM find `count` GPUs; to be called before anything of vLLM's is imported.

    Args:
        capability: compute capability, e.g. (8, 9).
        name: of the GPU, as its driver says it.
        memory_bytes: of one GPU.
        count: number of GPUs.
    """
    torch: Any = importlib.import_module("torch")
    sys.meta_path.append(_Finder())
    platforms: Any = importlib.import_module("vllm.platforms")
    cuda, interface = (importlib.import_module(f"vllm.platforms.{part}") for part in ("cuda", "interface"))

    class StandIn(cuda.NonNvmlCudaPlatform):  # type: ignore[misc, name-defined]
        """NVIDIA GPUs whose driver is not asked."""

        @classmethod
        def get_device_capability(cls, device_id: int = 0) -> Any:  # noqa: ARG003
            return interface.DeviceCapability(*capability)

        @classmethod
        def get_device_name(cls, device_id: int = 0) -> str:  # noqa: ARG003
            return name

        @classmethod
        def get_device_total_memory(cls, device_id: int = 0) -> int:  # noqa: ARG003
            return memory_bytes

        @classmethod
        def device_count(cls) -> int:
            return count

        def is_cumem_allocator_available(self) -> bool:
            return True  # a compiled module of the CUDA image

        @classmethod
        def is_integrated_gpu(cls, device_id: int = 0) -> bool:  # noqa: ARG003
            return False

        @classmethod
        def num_compute_units(cls, device_id: int = 0) -> int:  # noqa: ARG003
            return _MULTIPROCESSORS[capability]

    platforms.current_platform = StandIn()
    operators: Any = importlib.import_module("vllm._custom_ops")
    # What csrc/ of 0.32.0 built with CUDA 13 answers for a capability (90 for 9.0).
    operators.cutlass_scaled_mm_supports_fp8 = lambda number: number >= 89
    operators.cutlass_scaled_mm_supports_block_fp8 = lambda number: number >= 90
    operators.cutlass_scaled_mm_supports_fp4 = lambda number: 100 <= number < 130
    operators.cutlass_group_gemm_supported = lambda number: 90 <= number < 110
    _name_kernels(torch)
    # Triton is part of the CUDA image; its kernels are compiled at the first call.
    settings: Any = importlib.import_module("vllm.config.vllm")
    settings.HAS_TRITON = True
    kernels = importlib.import_module("vllm.lora.ops.triton_ops.lora_kernel_metadata")
    adapters: Any = importlib.import_module("vllm.lora.punica_wrapper.punica_gpu")
    adapters.LoRAKernelMeta = kernels.LoRAKernelMeta


def _name_kernels(torch: Any) -> None:
    """Let vLLM's layers take compiled kernels by name."""
    space, register = torch._ops._OpNamespace, torch.library.register_fake  # noqa: SLF001
    get_attribute = space.__getattr__

    def find(self: Any, name: str) -> Any:
        try:
            return get_attribute(self, name)
        except AttributeError:
            if name.startswith("__") or self.name not in _NAMESPACES:
                raise
            return _Kernel(f"{self.name}::{name}")

    def register_known(operator: Any, *arguments: Any, **options: Any) -> Any:
        if isinstance(operator, str) and operator.partition("::")[0] in _NAMESPACES:
            return lambda function: function
        return register(operator, *arguments, **options)

    space.__getattr__ = find
    torch.library.register_fake = register_known
