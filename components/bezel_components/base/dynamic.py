"""Helpers of dynamic providers: progress messages to the engine, errors without traceback, a quick exit.

The plugin process gets the engine's address as its first argument, and `Engine.Log` takes messages for a resource:
an ephemeral one is shown in that resource's row while it works and removed afterwards. (`pulumi.log` in a plugin
only prints, under the name of the stack, and stays.) For the quick exit see `_end_in_no_time`. Outside the
engine all of this does nothing. Apart from the resources, because those of several folders use it; imports Pulumi only
in the functions that need it.
"""

import os
import sys
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bezel_base.errors import Problem, UserError

if TYPE_CHECKING:
    import pulumi

_PLUGIN = "pulumi.dynamic.__main__"
_package_engine = ""
"""The engine's address in the process of the Pulumi package (`plugin/`), which runs the same providers."""


class Progress:
    """Progress messages in the row of a resource.

    Args:
        urn: The resource's; without one the messages are in the row of the stack.
    """

    def __init__(self, urn: str | None) -> None:
        self._urn = urn or ""
        self._channel: Any = None
        self._last = ""

    def __call__(self, message: str) -> None:
        """Show `message`; end the process if its engine is gone, as nothing else would."""
        address = engine_address()
        if address is None or message == self._last:
            return
        self._last = message
        import grpc
        from pulumi.runtime.proto import engine_pb2, engine_pb2_grpc

        if self._channel is None:
            self._channel = grpc.insecure_channel(address)
        stub = engine_pb2_grpc.EngineStub(self._channel)
        request = engine_pb2.LogRequest(severity=engine_pb2.INFO, message=message, urn=self._urn, ephemeral=True)
        try:
            stub.Log(request, timeout=10)
        except grpc.RpcError:
            self._last_chance(lambda: stub.Log(request, timeout=1, wait_for_ready=True))

    def _last_chance(self, log: Callable[[], Any]) -> None:
        import grpc

        try:
            log()
        except grpc.RpcError:
            # A killed engine leaves its plugins running, waiting for minutes for a result without a reader.
            os._exit(1)

    def close(self) -> None:
        """Close the connection."""
        if self._channel is not None:
            self._channel.close()
            self._channel = None


def in_plugin() -> bool:
    """Whether this is the process that the engine started for dynamic resources."""
    spec = getattr(sys.modules.get("__main__"), "__spec__", None)
    return spec is not None and spec.name == _PLUGIN


class DeployError(UserError):
    """A problem that ends the deploy and that the user has to repair; shown without a traceback.

    The plugin sends the formatted traceback as the message. With `sys.tracebacklimit` at 0 that is the class and the
    text alone; it is set in the plugin's process only, and only after such a failure.
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.__module__ = "builtins"  # shown without a module before its name

    def __init__(self, *problems: Problem | str) -> None:
        super().__init__(*problems)
        if in_plugin():
            sys.tracebacklimit = 0


def _end_in_no_time() -> None:
    """Let the process end as soon as its main thread, which the engine interrupts, has ended.

    The engine waits for it, at most five seconds. One up to 3.260 has five seconds for all plugins together: one
    whose turn comes later gets no `Cancel`, and is reported as "exited prematurely", a bug of the provider. The
    interpreter would join the threads of calls whose result has no reader any more, and unload all modules, which alone
    takes some tenths of a second of every run.
    """
    # `atexit` handlers run after the join; concurrent.futures registers its own join with this hook, too.
    threading._register_atexit(os._exit, 0)  # type: ignore[attr-defined] # noqa: SLF001


if in_plugin():
    _end_in_no_time()


def set_engine_address(address: str) -> None:
    """Have progress messages sent to this engine: for a plugin that is not that of dynamic resources."""
    global _package_engine  # noqa: PLW0603 - a process has one engine
    _package_engine = address


def engine_address() -> str | None:
    """The engine's address, in its plugin; None anywhere else."""
    if _package_engine:
        return _package_engine
    return sys.argv[1] if in_plugin() and len(sys.argv) > 1 else None


def differ(olds: Mapping[str, Any], news: Mapping[str, Any], keys: tuple[str, ...]) -> bool:
    """Whether two property bags differ in any of `keys`; a value not known yet differs from everything.

    An absent key equals None, for the engine drops None; numbers arrive as floats and compare as such.
    """
    return any(_unknown(news.get(key)) or olds.get(key) != news.get(key) for key in keys)


def _unknown(value: Any) -> bool:
    from pulumi.output import contains_unknowns

    return bool(contains_unknowns(value))


def own_urn(name: str, token: str, opts: "pulumi.ResourceOptions | None") -> "pulumi.Output[str]":
    """The URN that a resource will have, for the row that shows its progress.

    Only the value of the parent's URN is used: an output of the parent would depend on all its children, of which this
    resource is one.
    """
    import pulumi

    urn = pulumi.create_urn(name, token, opts.parent if opts is not None else None)

    async def value() -> str:
        return await urn.future() or ""

    return pulumi.Output.from_input(value())
