"""Servers of asyncio that a library makes in a process whose servers are guarded."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

# A server of the library's, asked by the same user and through a port of 127.0.0.1 without a guard.
PROGRAM = """
import asyncio, sys
import grpc, grpc.aio
from bezel_base.loopback.grpc_async_guard import guard_async_servers
guard_async_servers()
async def answer(request, context):
    return b"answered " + request
async def answer_all(request, context):
    yield b"never"
class Answers(grpc.GenericRpcHandler):
    def service(self, details):
        if details.method == "/any/None":
            return None
        if details.method == "/any/Stream":
            return grpc.unary_stream_rpc_method_handler(answer_all)
        return grpc.unary_unary_rpc_method_handler(answer)
async def ask(channel, method):
    try:
        print((await channel.unary_unary(method)(b"own", timeout=20)).decode())
    except grpc.RpcError as error:
        print(error.code().name)
async def main(host):
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((Answers(),))
    port = server.add_insecure_port(f"{host}:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"{host}:{port}") as channel:
        for method in ("/any/Method", "/any/Stream", "/any/None"):
            await ask(channel, method)
    await server.stop(0)
asyncio.run(main(sys.argv[1]))
"""


# A server at another address than that whose peers are looked up refuses all.
@pytest.mark.parametrize(("host", "answer"), [("127.0.0.1", "answered own"), ("[::1]", "PERMISSION_DENIED")])
def test_an_async_server_that_a_library_makes_is_guarded(host: str, answer: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, host], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [answer, "PERMISSION_DENIED", "UNIMPLEMENTED"]
