"""Guard of gRPC servers on the loopback: only calls of the daemon's own user are served.

The engine reaches its plugins on a port. The protocol of Pulumi's plugins has no secret, and a plugin acts with its
user's credentials, or runs the user's programs: any process that finds the port could request either.
"""

from collections.abc import Callable
from typing import Any, NoReturn

import grpc

from bezel_base.loopback.peer_uid import is_own

REFUSAL = "this plugin serves only the user that started it"
_KINDS = ("unary_unary", "unary_stream", "stream_unary", "stream_stream")


class OwnCalls(grpc.ServerInterceptor):
    """Refuses the calls of other users of the machine.

    Attributes:
        port: Port of the server on 127.0.0.1, set once it is known; until then every call is refused.
    """

    def __init__(self) -> None:
        self.port = 0

    def intercept_service(
        self, continuation: Callable[[grpc.HandlerCallDetails], Any], handler_call_details: grpc.HandlerCallDetails
    ) -> Any:
        """Return the handler of a call behind the check of its peer."""
        handler = continuation(handler_call_details)
        kind = next((kind for kind in _KINDS if handler and getattr(handler, kind)), "")
        if not kind:
            return handler
        answer = getattr(handler, kind)

        def answer_if_own(request: Any, context: grpc.ServicerContext) -> Any:
            if not is_own_peer(context.peer(), self.port):
                context.abort(grpc.StatusCode.PERMISSION_DENIED, REFUSAL)
            return answer(request, context)

        make = getattr(grpc, f"{kind}_rpc_method_handler")
        return make(answer_if_own, handler.request_deserializer, handler.response_serializer)


def is_own_peer(peer: str, port: int) -> bool:
    """Whether a peer as gRPC names it, e.g. `ipv4:127.0.0.1:40001`, is a process of the user at a port of ours."""
    kind, _, address = peer.partition(":")
    host, _, its_port = address.rpartition(":")
    return kind == "ipv4" and its_port.isdigit() and is_own((host, int(its_port)), ("127.0.0.1", port))


def guard_servers() -> None:
    """Put every gRPC server that this process makes from here on behind `OwnCalls`.

    For servers that a library makes and starts itself: the process of dynamic resources and policy packs of Pulumi's
    SDK, whose protocol has no secret either. A server of asyncio has other interceptors: it is refused, so that a
    later version of the library fails instead of serving every user.
    """
    make = grpc.server

    def make_guarded(thread_pool: Any, *, interceptors: Any = (), **options: Any) -> grpc.Server:
        guard = OwnCalls()
        server = make(thread_pool, interceptors=[guard, *interceptors], **options)
        listen = server.add_insecure_port

        def add_insecure_port(address: str) -> int:
            guard.port = listen(address)
            return guard.port

        server.add_insecure_port = add_insecure_port  # type: ignore[method-assign]
        return server

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NotImplementedError("a gRPC server of asyncio would serve every user of this machine")

    grpc.server = make_guarded  # type: ignore[assignment]
    grpc.aio.server = refuse
