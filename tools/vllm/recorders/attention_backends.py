"""Answers of vLLM's own attention backends for the layers of Gemma 4, with a device capability passed in.

    PYTHON tools/vllm/recorders/attention_backends.py FACTS VERDICTS

PYTHON is the interpreter of any vLLM 0.32.0, one for CPUs as well: no GPU is used. Both files are written: FACTS is the
catalogue's `vllm/start_relations/attention_backends.json`, VERDICTS the tests' `attention-backends.json`. Compiled
extensions and packages of the image for GPUs that are absent here are replaced by empty modules: the classes only have
to be imported, none of their kernels runs. Imports nothing of this project.
"""

from __future__ import annotations

import collections
import contextlib
import importlib.abc
import importlib.machinery
import itertools
import json
import os
import sys
import types
from pathlib import Path
from typing import Any

CAPABILITIES = ((8, 9), (9, 0), (12, 0))
LAYERS = {"window": (256, True), "full": (512, False)}  # of Gemma 4: head size, sliding window
INPUTS = {"text": False, "images": True}  # whether tokens of an image attend to each other in both directions
BLOCKS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
NUMBERS = ("float16", "bfloat16", "float32")
PACKAGES = ("torchvision", "flashinfer", "cutlass", "tokenspeed_mla", "quack", "flash_mla", "b12x")
EXTENSIONS = (
    "vllm._C",
    "vllm._moe_C",
    "vllm._flashmla",
    "vllm.cumem_allocator",
    "vllm.vllm_flash_attn._vllm",
    "vllm.third_party.flashmla",
)


class Absent:
    """Whatever is taken from a module that is not here."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __call__(self, *values: Any, **named: Any) -> Any:
        """Stand for a decorator of a function, and for any other call."""
        return values[0] if len(values) == 1 and callable(values[0]) and not named else Absent()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent()

    def __getitem__(self, _: object) -> Absent:
        return Absent()

    def __mro_entries__(self, _: object) -> tuple[()]:
        return ()

    def __or__(self, _: object) -> Absent:
        return self

    __ror__ = __or__


class AbsentModule(types.ModuleType):
    """A module that is not here."""

    __path__: list[str] = []  # noqa: RUF012 - the attribute that makes a module a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent()


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the packages and extensions of the image for GPUs."""

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """Return a module for a name of the lists above."""
        if name.partition(".")[0] in PACKAGES or name.startswith(EXTENSIONS):
            return importlib.machinery.ModuleSpec(name, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Return an empty module."""
        return AbsentModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leave it empty."""


def prepare() -> Any:
    """Make vLLM take this machine for one with a GPU, and return the class of its platform."""
    os.environ.update({"VLLM_LOGGING_LEVEL": "CRITICAL", "VLLM_NO_USAGE_STATS": "1", "OMP_NUM_THREADS": "1"})
    torch = importlib.import_module("torch")
    importlib.import_module("torch._inductor.lowering")
    platforms = importlib.import_module("vllm.platforms")
    importlib.import_module("vllm.v1.request")
    sys.meta_path.insert(0, Finder())
    cuda = importlib.import_module("vllm.platforms.cuda")

    class Gpu(cuda.CudaPlatformBase):  # type: ignore[misc, name-defined]
        capability = platforms.interface.DeviceCapability(8, 9)

        @classmethod
        def get_device_capability(cls, *_: object, **__: object) -> Any:
            return cls.capability

        @classmethod
        def get_device_name(cls, *_: object, **__: object) -> str:
            return "NVIDIA"

        @classmethod
        def num_compute_units(cls, *_: object, **__: object) -> int:
            return 58

    setattr(platforms, "_current_platform", Gpu())  # noqa: B010 - a name of another package
    properties = types.SimpleNamespace(gcnArchName="", multi_processor_count=58, shared_memory_per_block_optin=101376)
    torch.cuda.get_device_properties = lambda *_: properties
    torch.cuda.get_device_capability = lambda *_: (Gpu.capability.major, Gpu.capability.minor)
    operators = torch.library.Library("_C", "FRAGMENT")
    for name in ("block_fp8", "fp8", "fp4"):
        operators.define(f"cutlass_scaled_mm_supports_{name}(int capability) -> bool")
        operators.impl(f"cutlass_scaled_mm_supports_{name}", lambda _: True, "CompositeExplicitAutograd")
    # The image for GPUs has all three; which one a device can run is vLLM's own rule.
    flash: Any = importlib.import_module("vllm.vllm_flash_attn.flash_attn_interface")
    flash.FA2_AVAILABLE = flash.FA3_AVAILABLE = flash.FA4_AVAILABLE = True
    return Gpu


class Judge:
    """vLLM's own verdicts."""

    def __init__(self, gpu: Any) -> None:
        self.gpu = gpu
        self.torch: Any = importlib.import_module("torch")
        triton = importlib.import_module("vllm.triton_utils")
        for name in ("float16", "bfloat16", "float32", "int32", "uint8"):
            setattr(triton.tl, name, getattr(triton.tl, name, Absent()))
        self.registry = importlib.import_module("vllm.v1.attention.backends.registry").AttentionBackendEnum
        self.interface = importlib.import_module("vllm.platforms.interface")
        self.versions = importlib.import_module("vllm.v1.attention.backends.fa_utils")
        self.config = importlib.import_module("vllm.config")
        self.dtypes = importlib.import_module("typing").get_args(
            importlib.import_module("vllm.config.cache").CacheDType
        )

    def load(self, backend: Any) -> tuple[Any, str]:
        """Return the class of a backend, or why there is none."""
        empty = self.torch.empty  # some allocate a workspace while they are imported
        self.torch.empty = lambda *sizes, **named: empty(*sizes, **named | {"device": "meta"})
        try:
            return backend.get_class(), ""
        except (ImportError, OSError) as error:
            return None, f"{type(error).__name__}: {error}"
        except ValueError as error:
            return None, str(error)
        finally:
            self.torch.empty = empty

    def reasons(self, backend: Any, capability: tuple[int, int], layer: str, inputs: str, **chosen: Any) -> list[str]:
        """Return why a backend does not serve a layer; [] where it does."""
        self.gpu.capability = self.interface.DeviceCapability(*capability)
        head, window = LAYERS[layer]
        values = {"dtype": self.torch.bfloat16, "kv_cache_dtype": "auto", "block_size": None} | chosen
        with self._configuration(backend, str(values["kv_cache_dtype"])):
            reasons: list[str] = backend.get_class().validate_configuration(
                head_size=head,
                use_mla=False,
                has_sink=False,
                use_sparse=False,
                use_mm_prefix=INPUTS[inputs],
                use_per_head_quant_scales=False,
                device_capability=self.gpu.capability,
                attn_type="decoder",
                has_sliding_window=window,
                **values,
            )
        return reasons

    @contextlib.contextmanager
    def _configuration(self, backend: Any, dtype: str) -> Any:
        """Set the version of FlashAttention as Gemma4Config (models/config.py) does where it is left open."""
        version = None
        per_layer = self.gpu.capability.major == 9 and dtype.startswith("fp8")
        if backend.name == "FLASH_ATTN" and self.versions.is_fa_version_supported(4) and not per_layer:
            version = 4
        space = types.SimpleNamespace
        config = space(
            attention_config=space(flash_attn_version=version, use_non_causal=False, mla_prefill_backend=None),
            model_config=None,
            cache_config=None,
            parallel_config=space(decode_context_parallel_size=1, prefill_context_parallel_size=1),
            speculative_config=None,
            kv_transfer_config=None,
        )
        names = vars(sys.modules["vllm.config.vllm"])
        before, names["_current_vllm_config"] = names["_current_vllm_config"], config
        try:
            yield
        finally:
            names["_current_vllm_config"] = before


def facts(judge: Judge) -> dict[str, Any]:
    """Return what each backend takes; of one that serves no Gemma 4 on any of the devices only why."""
    backends: dict[str, Any] = {}
    for backend in judge.registry:
        _, missing = judge.load(backend)
        if missing:
            backends[backend.name] = {"missing": missing}
            continue
        rows = {
            f"{major}.{minor}": {
                inputs: {layer: _always(judge, backend, (major, minor), layer, inputs) for layer in LAYERS}
                for inputs in INPUTS
            }
            for major, minor in CAPABILITIES
        }
        backends[backend.name] = {"refuses": rows}
        if any(not any(layers.values()) for row in rows.values() for layers in row.values()):
            backends[backend.name] |= _values(judge, backend)
    return backends


def _always(judge: Judge, backend: Any, capability: tuple[int, int], layer: str, inputs: str) -> list[str]:
    """Return the reasons that no value of an option changes."""
    of_options = {f"{name} not supported" for name in ("kv_cache_dtype", "block_size", "dtype")}
    return [text for text in judge.reasons(backend, capability, layer, inputs) if text not in of_options]


def _values(judge: Judge, backend: Any) -> dict[str, Any]:
    """Return the values of options that a backend takes."""

    def takes(text: str, **chosen: Any) -> bool:
        asked = (judge.reasons(backend, CAPABILITIES[0], layer, "text", **chosen) for layer in LAYERS)
        return not any(f"{text} not supported" in reasons for reasons in asked)

    def adds_none(capability: tuple[int, int], inputs: str, name: str) -> bool:
        return all(
            judge.reasons(backend, capability, layer, inputs, kv_cache_dtype=name)
            == _always(judge, backend, capability, layer, inputs)
            for layer in LAYERS
        )

    return {
        "kv_cache_dtypes": {
            f"{capability[0]}.{capability[1]}": {
                inputs: [name for name in judge.dtypes if adds_none(capability, inputs, name)] for inputs in INPUTS
            }
            for capability in CAPABILITIES
        },
        "block_sizes": [size for size in BLOCKS if takes("block_size", block_size=size)],
        "dtypes": [name for name in NUMBERS if takes("dtype", dtype=getattr(judge.torch, name))],
        "batch_invariant": takes("batch invariance", use_batch_invariant=True),
        "kv_connector": takes("KV connector", use_kv_connector=True),
        "dcp": takes("DCP", use_dcp=True),
        "pcp": takes("PCP", use_pcp=True),
    }


def verdicts(judge: Judge) -> dict[str, Any]:
    """Return the reasons of the first layer that a backend does not serve, by device, input and type of the cache."""
    reasons: dict[str, Any] = {}
    for backend in judge.registry:
        _, missing = judge.load(backend)
        if missing:
            reasons[backend.name] = missing
            continue
        places = collections.defaultdict(list)
        for capability, inputs in itertools.product(CAPABILITIES, INPUTS):
            by_reason = collections.defaultdict(list)
            for name in judge.dtypes:
                asked = (judge.reasons(backend, capability, layer, inputs, kv_cache_dtype=name) for layer in LAYERS)
                by_reason[json.dumps(next(filter(None, asked), []))].append(name)
            rows = [{"reasons": json.loads(key), "kv_cache_dtypes": names} for key, names in by_reason.items()]
            places[json.dumps(rows)].append(f"{capability[0]}.{capability[1]} {inputs}")
        reasons[backend.name] = [{"places": names, "verdicts": json.loads(rows)} for rows, names in places.items()]
    return reasons


def main(facts_file: str, verdicts_file: str) -> None:
    """Write both files."""
    stdout = os.dup(1)
    os.dup2(2, 1)
    judge = Judge(prepare())
    for file, rows in ((facts_file, facts(judge)), (verdicts_file, verdicts(judge))):
        lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items())
        Path(file).write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
    os.close(stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
