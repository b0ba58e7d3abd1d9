"""Run `pulumi.dynamic`, the SDK's server of dynamic resources, behind a check of its callers and of their pickles.

The engine sends a pickle with each call, and the server runs it: without the checks any user of the machine could send
one. `Pulumi.yaml` names this folder as the plugin's, so that every engine starts `pulumi-resource-pulumi-python` here,
also by a plain `pulumi up`. Server, type tokens and states are the SDK's own and stay as they are.
"""

import os
import runpy
import signal
from typing import Any


def _load(data: bytes) -> Any:
    # Late: it imports bezel_components.base.dynamic, which looks whether `pulumi.dynamic` is the program that runs.
    from bezel_components.dynamic_plugin.unpickling import load_provider

    return load_provider(data)


def main() -> None:
    """Serve until the engine interrupts."""
    # Before the imports, amid which an interrupt would show a traceback. The SDK's own answer to one is this end, too.
    signal.signal(signal.SIGINT, lambda *_: os._exit(0))
    import dill  # type: ignore[import-untyped]

    from bezel_base.loopback.grpc_guard import guard_servers

    guard_servers()
    dill.loads = _load
    runpy.run_module("pulumi.dynamic", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
