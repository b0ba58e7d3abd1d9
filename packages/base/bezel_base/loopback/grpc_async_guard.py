"""Guard of gRPC servers of asyncio on the loopback: as `grpc_guard`, for the servers that Pulumi's SDK makes itself.

The SDK's host of components, and the server to which the engine returns for its hooks, are servers of asyncio. Leaves
the look at the peer to `grpc_guard`.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import grpc.aio

from bezel_base.loopback.grpc_guard import REFUSAL, is_own_peer


class OwnAsyncCalls(grpc.aio.ServerInterceptor):
    """Refuses the calls of other users of the machine; calls with one request and one response only.

    Attributes:
        port: Port of the server on 127.0.0.1, set once it is known; until then every call is refused.
    """

    def __init__(self) -> None:
        self.port = 0

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:
        """Return the handler of a call behind the check of its peer."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        answer = handler.unary_unary

        async def answer_if_own(request: Any, context: Any) -> Any:
            # A streamed call has no such handler: none of these protocols' servers here has one.
            if answer is None or not is_own_peer(context.peer(), self.port):
                await context.abort(grpc.StatusCode.PERMISSION_DENIED, REFUSAL)
            return await answer(request, context)

        return grpc.unary_unary_rpc_method_handler(
            answer_if_own, handler.request_deserializer, handler.response_serializer
        )


def guard_async_servers() -> None:
    """Put every gRPC server of asyncio that this process makes from here on behind `OwnAsyncCalls`."""
    make = grpc.aio.server

    def make_guarded(migration_thread_pool: Any = None, *, interceptors: Any = (), **options: Any) -> Any:
        guard = OwnAsyncCalls()
        server = make(migration_thread_pool, interceptors=[guard, *(interceptors or ())], **options)
        listen = server.add_insecure_port

        def add_insecure_port(address: str) -> int:
            guard.port = int(listen(address))
            return guard.port

        server.add_insecure_port = add_insecure_port  # type: ignore[method-assign]
        return server

    grpc.aio.server = make_guarded  # type: ignore[assignment]
