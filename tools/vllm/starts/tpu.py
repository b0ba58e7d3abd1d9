"""A TPU machine that is not there: tpu-inference's platform on a jax that computes nothing.

Runs with the Python of a real vLLM and imports nothing of ours. tpu_inference must be found on PYTHONPATH: the wheel's
folder of that name is enough. jax and what is made of it are stood in for, as jax 0.11 asks for a newer Python.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
import types
from typing import Any

_PACKAGES = ("jax", "jaxlib", "flax", "torchax", "qwix", "tpu_info", "jaxtyping", "tokamax", "pathwaysutils", "absl")
# What would else be asked of Google's metadata server.
_MACHINE = {"TPU_NAME": "stand-in", "TPU_WORKER_ID": "0"}


class _Anything(type):
    """Metaclass of a value of any kind: each attribute, call and number of it is another one."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Thing

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        if cls is not Thing:
            return super().__call__(*arguments, **options)
        if len(arguments) == 1 and not options and isinstance(arguments[0], types.FunctionType):
            return arguments[0]  # used as a decorator
        return Thing

    def __getitem__(cls, key: Any) -> Any:
        return Thing

    def __iter__(cls) -> Any:
        return iter(())

    def __or__(cls, other: Any) -> Any:
        return object

    __ror__ = __or__

    def __float__(cls) -> float:
        return 1.0

    def __index__(cls) -> int:
        return 1

    def _number(cls, other: Any = None) -> Any:  # noqa: ARG002
        return 1

    __int__ = __neg__ = __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __pow__ = __rpow__ = _number
    __mod__ = __truediv__ = __rtruediv__ = __floordiv__ = __lshift__ = _number


class Thing(metaclass=_Anything):
    """A value of any kind."""


class _TpuModule(types.ModuleType):
    __path__: list[str] = []  # noqa: RUF012 - the attribute that makes a module a package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        value = type(name, (Thing,), {}) if name[:1].isupper() else Thing
        setattr(self, name, value)
        return value


class _TpuFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:  # noqa: ARG002
        if fullname.partition(".")[0] in _PACKAGES:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: Any) -> types.ModuleType:
        return _TpuModule(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Leave it empty."""


class _Platform:
    """The platform that vLLM's modules hold: a bare one until tpu-inference's is imported, which imports vLLM."""

    def __init__(self, first: Any) -> None:
        self.now = first

    def __getattr__(self, name: str) -> Any:
        return getattr(self.now, name)


def install(chips: int) -> None:
    """Make vLLM find a TPU v6e; to be called before anything else of vLLM's is imported.

    Args:
        chips: number of chips.

    Raises:
        ModuleNotFoundError: tpu_inference is not installed.
    """
    os.environ.update(_MACHINE | {"TPU_ACCELERATOR_TYPE": f"v6e-{chips}"})
    sys.meta_path.append(_TpuFinder())
    platforms: Any
    platforms, interface = (importlib.import_module(f"vllm.{name}") for name in ("platforms", "platforms.interface"))

    class First(interface.Platform):  # type: ignore[misc, name-defined]
        """What tpu-inference's own imports ask of a platform."""

        _enum = interface.PlatformEnum.TPU
        device_name = device_type = "tpu"
        dispatch_key = "XLA"
        device_control_env_var = "TPU_VISIBLE_CHIPS"
        simple_compile_backend = "eager"

    platforms.current_platform = platform = _Platform(First())
    platform.now = importlib.import_module("tpu_inference.platforms.tpu_platform").TpuPlatform()
