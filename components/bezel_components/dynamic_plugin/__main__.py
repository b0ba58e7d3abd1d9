"""Run `pulumi.dynamic`, the SDK's server of dynamic resources, behind a check of its callers and of their pickles.

The engine sends a pickle with each call, and the server runs it: without the checks any user of the machine could send
one. `Pulumi.yaml` names this folder as the plugin's, so that every engine starts `pulumi-resource-pulumi-python` here,
also by a plain `pulumi up`. Server, type tokens and states are the SDK's own and stay as they are.
"""

import contextlib
import runpy
import signal
from typing import Any


def _load(data: bytes) -> Any:
    # Late: it imports bezel_components.base.dynamic, which looks whether `pulumi.dynamic` is the program that runs.
    from bezel_components.dynamic_plugin.unpickling import load_provider

    return load_provider(data)


def main() -> None:
    """Serve until the engine interrupts; a call that still runs is then cut (`bezel_components.base.dynamic`)."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback when stopped while still importing
    import dill  # type: ignore[import-untyped]
    import pulumi.dynamic  # noqa: F401 - the SDK, which the server would otherwise import after the next signal handler

    from bezel_base.loopback.grpc_guard import guard_servers

    guard_servers()
    dill.loads = _load
    # The SDK answers an interrupt only once it waits for one, a moment after the engine has read its port.
    with contextlib.suppress(KeyboardInterrupt):
        signal.signal(signal.SIGINT, signal.default_int_handler)
        runpy.run_module("pulumi.dynamic", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
