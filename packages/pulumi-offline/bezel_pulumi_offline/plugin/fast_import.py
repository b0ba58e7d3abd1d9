"""Fast start of a plugin process: the protocol's generated modules without the rest of the SDK.

The engine starts each provider once per run, so every tenth of a second here is added to every `pulumi` command.
Importing `pulumi` itself costs about 80 ms and `grpc.aio` with asyncio another 50 ms, and a plugin needs neither.
Only a plugin's own process may call this: afterwards `import pulumi` yields an empty namespace there, and `grpc` serves
threads alone.
"""

import importlib
import importlib.machinery
import json
import sys
import types
from pathlib import Path


def lighten() -> None:
    """Register `pulumi`, `pulumi.runtime`, `pulumi.runtime.proto` as bare namespaces, and leave out `grpc.aio`."""
    if "pulumi" in sys.modules:
        return
    search: list[str] | None = None
    for name in ("pulumi", "pulumi.runtime", "pulumi.runtime.proto"):
        spec = importlib.machinery.PathFinder.find_spec(name, search)
        if spec is None or spec.submodule_search_locations is None:
            return
        search = list(spec.submodule_search_locations)
        module = types.ModuleType(name)
        module.__path__ = search
        sys.modules[name] = module
    sys.modules["grpc.aio"] = types.ModuleType("grpc.aio")
    _import_grpc()


def _import_grpc() -> None:
    """Import `grpc`, if it is there, with a bare `asyncio`, which its C part imports for `grpc.aio` only."""
    if "asyncio" in sys.modules or importlib.machinery.PathFinder.find_spec("grpc") is None:
        return
    sys.modules["asyncio"] = types.ModuleType("asyncio")
    try:
        importlib.import_module("grpc")
    finally:
        del sys.modules["asyncio"]  # a later import finds the real one


def sdk_version(package: str) -> str:
    """Return the version of an installed Pulumi SDK from its pulumi-plugin.json, without importing the SDK."""
    spec = importlib.machinery.PathFinder.find_spec(package)
    folders = spec.submodule_search_locations if spec is not None else None
    file = Path(next(iter(folders or [""]))) / "pulumi-plugin.json"
    return str(json.loads(file.read_text(encoding="utf-8"))["version"]) if file.is_file() else ""
