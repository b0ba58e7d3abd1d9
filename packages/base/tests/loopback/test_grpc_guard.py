"""Servers that a library makes and starts in a process whose servers are guarded."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

# A server of the library's, asked by the same user and through a port of 127.0.0.1 without a guard.
PROGRAM = """
import sys
from concurrent.futures import ThreadPoolExecutor
import grpc
from bezel_base.loopback.grpc_guard import guard_servers
guard_servers()
class Answers(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"answered " + request)
host = sys.argv[1]
server = grpc.server(ThreadPoolExecutor(2), handlers=(Answers(),))
port = server.add_insecure_port(f"{host}:0")
server.start()
with grpc.insecure_channel(f"{host}:{port}") as channel:
    try:
        print(channel.unary_unary("/any/Method")(b"own", timeout=20).decode())
    except grpc.RpcError as error:
        print(error.code().name)
try:
    grpc.aio.server()
except NotImplementedError as error:
    print(error)
server.stop(0)
"""


# A server at another address than that whose peers are looked up refuses all.
@pytest.mark.parametrize(("host", "answer"), [("127.0.0.1", "answered own"), ("[::1]", "PERMISSION_DENIED")])
def test_a_server_that_a_library_makes_is_guarded(host: str, answer: str) -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, host], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines() == [answer, "a gRPC server of asyncio would serve every user of this machine"]
