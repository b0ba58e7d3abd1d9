"""Whom localcloud's ports answer: the user that started it, asked as this machine, with bodies up to a size."""

import asyncio
import os
import re
import socket
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bezel_base.loopback import peer_uid
from bezel_base.loopback.asgi_guard import OTHER_USER, OWN, Door
from bezel_base.loopback.listeners import listen_on_loopback
from bezel_base.process_status import DIRECTORY_VARIABLE, processes_with_variable
from bezel_localcloud.cloud import largest_body
from bezel_localcloud.node.reachability import NODE_VARIABLE
from bezel_localcloud.processes.variables import notes_of_withheld, passed_on
from bezel_localcloud.services.cloud_run.runtime.ingress import Ingress
from bezel_localcloud.services.cloud_run.runtime.metadata import ContainerMetadata
from bezel_localcloud.services.cloud_run.runtime.region_outages import RegionOutages
from localcloud_support.client import RUNTIME
from localcloud_support.node_harness import NAME, SECRET, RunningCloud, own_address
from tests.support.other_user import sent_by_other_user

TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"
SERVICE = "projects/p/locations/l/services/s"
FLAVOR = "Metadata-Flavor: Google\r\n"


@pytest.fixture(scope="module", autouse=True)
def others():
    """What this process listened on before: servers of other tests."""
    return _listening("self")


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A cloud with a machine on which the container serves, and with an execution's metadata server."""
    running = RunningCloud(tmp_path_factory.mktemp("doors") / "cloud")
    running.furnish()
    running.serve(own_address(91))
    yield running
    running.close()


@pytest.fixture(scope="module")
def doors(world):
    """HOST:PORT of every kind of listener, and what a process of the same user asks there for a 200 (or a 404)."""
    machine = world.nodes._machines[NAME]

    async def more():
        tasks = ContainerMetadata(world.cloud, "us-east4", "runtime@x")
        await tasks.start()
        outages = RegionOutages(world.cloud.faults)
        front = Ingress(world.cloud, outages, world.cloud.services.route, SERVICE, "", listen_on_loopback())
        await front.start()
        return tasks, front

    world.put("service", SERVICE, invokerIamDisabled=True, traffic=[])  # so nothing but the door refuses
    tasks, front = world.call(more())
    metadata = machine._server.address
    relay = machine._relays[0]._server.sockets[0].getsockname()
    vllm = f"{own_address(91)}:8000"
    yield {
        "the APIs": (world.endpoint.base.removeprefix("http://"), "/oauth2/v3/certs", ""),
        "a machine's metadata": (metadata, TOKEN, FLAVOR),
        "a machine's way to the APIs": ("{}:{}".format(*relay), "/oauth2/v3/certs", ""),
        "a machine's vLLM": (vllm, "/x", ""),
        "an execution's metadata": (tasks.address, "/", FLAVOR),
        "a service's URL": (front.uri.removeprefix("http://"), "/", ""),
    }
    world.call(tasks.close())
    world.call(front.close())


MACHINES_OWN = """
PATH PYTHONPATH PYTHONSTARTUP PYTHONHOME LD_PRELOAD LD_LIBRARY_PATH BASH_ENV ENV IFS HOME TMPDIR OPENSSL_CONF
GCONV_PATH GLIBC_TUNABLES COVERAGE_PROCESS_START LOCALCLOUD_NODE LOCALCLOUD_LISTEN LOCALCLOUD_DIRECTORY
"""
KINDS = (
    "the APIs",
    "a machine's metadata",
    "a machine's way to the APIs",
    "a machine's vLLM",
    "an execution's metadata",
    "a service's URL",
)


def get(path, host, *lines):
    return "".join([f"GET {path} HTTP/1.1\r\nHost: {host}\r\n", *lines, "Connection: close\r\n\r\n"]).encode()


def answer_of(address, request):
    """What this user hears."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), 10) as connection:
        connection.sendall(request)
        answer = b""
        try:
            while piece := connection.recv(65536):
                answer += piece
        except ConnectionResetError:
            pass
        return answer.decode()


def status(answer):
    return int(answer.split(" ")[1])


@pytest.mark.slow
def test_every_listener_of_the_process_is_in_the_table(world, doors, others):
    """A port that is added later is either added here, or this fails."""
    assert _listening("self") - others == {_in_hex(address) for address, _, _ in doors.values()} | {
        _in_hex("{}:{}".format(*relay._server.sockets[0].getsockname()))
        for relay in world.nodes._machines[NAME]._relays
    }


def _listening(process):
    """The addresses where a process listens, as the kernel's table has them."""
    inodes = set(filter(None, map(_socket, Path(f"/proc/{process}/fd").iterdir())))
    rows = [
        line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]
    ]
    return {row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in inodes}


def _socket(descriptor):
    try:
        return str(descriptor.readlink())
    except OSError:
        return ""


def _in_hex(address):
    host, _, port = address.rpartition(":")
    return f"{socket.inet_aton(host)[::-1].hex().upper()}:{int(port):04X}"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_another_user_is_refused_at_every_port(doors, kind):
    address, path, lines = doors[kind]
    answer = sent_by_other_user(address, get(path, address, lines))
    assert status(answer) == 403, answer
    assert OTHER_USER in answer
    assert "access_token" not in answer
    assert SECRET not in answer
    # What marks a process of the machine may be put on by anybody.
    marked = sent_by_other_user(address, get(path, address, lines), **{NODE_VARIABLE: NAME})
    assert status(marked) == 403, marked


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "a machine's vLLM"])
def test_the_same_user_is_answered_at_every_port(doors, kind):
    address, path, lines = doors[kind]
    for host in (address, "localhost:1", "other.localhost:1"):
        assert status(answer_of(address, get(path, host, lines))) in {200, 404}, (kind, host)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "a machine's vLLM"])
@pytest.mark.parametrize(
    ("host", "line"),
    [
        ("rebound.example:8080", ""),
        ("127.0.0.1.nip.io", ""),
        ("localhost.example", ""),
        ("evil-localhost", ""),
        ("", ""),
        (None, "Origin: https://evil.example\r\n"),
        (None, "Origin: null\r\n"),
        (None, "Origin: http://127.0.0.1.evil.example\r\n"),
        (None, "Sec-Fetch-Site: cross-site\r\n"),
        (None, "Sec-Fetch-Site: same-site\r\n"),
        (None, "Referer: https://evil.example/\r\n"),
    ],
)
def test_a_page_in_a_browser_of_the_same_user_is_refused_at_every_port(doors, kind, host, line):
    address, path, lines = doors[kind]
    answer = answer_of(address, get(path, address if host is None else host, lines, line))
    assert status(answer) == 403
    assert "is not this machine's loopback" in answer or "a page of another origin" in answer
    assert "access_token" not in answer


@pytest.mark.slow
def test_a_command_on_a_machine_takes_its_key(doors):
    address = doors["a machine's metadata"][0]
    body = b'{"program": "docker", "argv": ["--version"], "stdin": "", "config": "/"}'
    head = f"POST /localcloud/commands HTTP/1.1\r\nHost: {address}\r\nContent-Length: {len(body)}\r\n"
    for key in ("", "Authorization: Bearer x\r\n", "Authorization: Bearer \r\n"):
        assert status(answer_of(address, f"{head}{key}Connection: close\r\n\r\n".encode() + body)) == 401
    assert status(sent_by_other_user(address, f"{head}Connection: close\r\n\r\n".encode() + body)) == 403


@pytest.mark.slow
def test_a_command_reads_and_writes_nothing_beside_the_machines_disk(world, tmp_path):
    """What the startup script may do on a machine is not to reach the files of whoever runs localcloud."""
    from bezel_localcloud.node import commands

    machine = world.nodes._machines[NAME]
    engine, disk = machine._engine, machine._folder
    outside = tmp_path / "environment"
    outside.write_text("PLAIN=value\n")
    link = disk / "root" / "link"
    link.symlink_to(outside)
    image = next(iter(engine.images))

    def run(*arguments, config=disk / "root"):
        argv = ["run", "--detach", "--name", "other", *arguments, "--entrypoint", "vllm", image, "serve", "m"]
        return world.call(commands.answer(engine, "docker", argv, "", config))

    for options in (("--env-file", str(outside)), ("--env-file", str(link)), ("--volume", f"{tmp_path}:/x")):
        refused = run(*options)
        assert (refused.code, "is not on this machine's disk" in refused.err) == (125, True)
    assert run(config=tmp_path).code == 125
    link.unlink()


@pytest.mark.parametrize("name", MACHINES_OWN.split())
def test_no_variable_of_a_container_stands_before_the_daemons_own(name):
    variables = {name: "/theirs", "VLLM_LOGGING_LEVEL": "DEBUG"}
    assert passed_on(variables) == {"VLLM_LOGGING_LEVEL": "DEBUG"}
    (note,) = notes_of_withheld(variables)
    assert name in note
    assert "/theirs" not in note


@pytest.mark.parametrize("name", ["HF_TOKEN", "VLLM_CACHE_ROOT", "MODEL_PATH", "MY_PYTHON", "LOCALCLOUD_SERVING_SPEED"])
def test_a_containers_own_variables_are_handed_on(name):
    assert passed_on({name: "x"}) == {name: "x"}
    assert notes_of_withheld({name: "x"}) == ()


@pytest.mark.slow
def test_a_container_has_no_port_and_its_socket_is_the_users_alone(world):
    folder = world.cloud.layout.sockets
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [entry.name.rpartition(":")[2] for entry in folder.iterdir()] == ["8000"]
    processes = processes_with_variable(DIRECTORY_VARIABLE, str(world.cloud.layout.root))
    assert processes
    assert [_listening(process) for process in processes] == [set()] * len(processes)


@pytest.mark.slow
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("in_table", [False, True])
def test_the_kernel_tells_whose_a_connection_is_and_nothing_once_closed(in_table, host):
    find = peer_uid._in_table if in_table else peer_uid.owner_of
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        client = socket.create_connection(listener.getsockname()[:2])
        connection, peer = listener.accept()
        with connection:
            owner = find(peer, connection.getsockname())
            assert owner == (os.geteuid(), os.fstat(client.fileno()).st_ino)
            client.close()
            assert find(peer, connection.getsockname()) is None
            assert not peer_uid.is_own(peer, connection.getsockname())
            assert not peer_uid.is_own(None, connection.getsockname())


@pytest.mark.slow
@given(st.lists(st.binary(max_size=40), max_size=6), st.integers(0, 120), st.booleans())
def test_a_body_reaches_the_application_whole_or_is_refused(pieces, most, announced):
    size = sum(map(len, pieces))
    messages = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    rest = iter([*messages, {"type": "http.request", "body": b"", "more_body": False}])
    headers = [(b"host", b"localhost"), *([(b"content-length", str(size).encode())] if announced else [])]
    seen, sent = [], []

    async def app(_, receive, send):
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionError
            body += message["body"]
            if not message["more_body"]:
                break
        seen.append(body)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def receive():
        return next(rest, {"type": "http.disconnect"})

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "path": "/", "headers": headers, OWN: True}
    try:
        asyncio.run(Door(app, lambda _: most)(scope, receive, send))
    except ConnectionError:
        assert size > most
    assert sent[0]["status"] == (200 if size <= most else 413)
    assert seen == ([b"".join(pieces)] if size <= most else [])
    assert sum(message["type"] == "http.response.start" for message in sent) == 1


@pytest.mark.slow
@pytest.mark.parametrize("chunked", [False, True])
@pytest.mark.parametrize("path", ["/token", "/localcloud/faults"])
def test_a_port_reads_no_more_of_a_body_than_it_takes(world, chunked, path):
    """200 MiB, without a token: refused where it is announced, or as soon as it is too long."""
    address = world.endpoint.base.removeprefix("http://")
    host, _, port = address.rpartition(":")
    length = "Transfer-Encoding: chunked" if chunked else f"Content-Length: {200 << 20}"
    sent, piece = 0, b"x" * 65536
    with socket.create_connection((host, int(port)), 20) as connection:
        connection.sendall(f"POST {path} HTTP/1.1\r\nHost: {address}\r\n{length}\r\n\r\n".encode())
        try:
            while chunked and sent < 200 << 20:
                connection.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
                sent += len(piece)
        except OSError:
            pass
        try:
            answer = connection.recv(65536).decode()
        except ConnectionResetError:
            answer = ""
    assert sent < largest_body(path) + (16 << 20)  # what the kernel holds beside it
    assert re.match(r"HTTP/1.1 4(13|01) |$", answer)
    assert chunked or answer.startswith(("HTTP/1.1 413 ", "HTTP/1.1 401 "))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "path", "most"),
    [
        ("the APIs", "/token", 64 << 10),
        ("the APIs", "/run/v2/projects/p/locations/l/services", 10 << 20),
        ("a machine's metadata", "/localcloud/commands", 1 << 20),
        ("a machine's way to the APIs", "/run/v2/projects/p/locations/l/services", 10 << 20),
        ("an execution's metadata", "/", 0),
    ],
)
def test_a_body_that_is_too_long_for_its_port_is_refused_unread(doors, kind, path, most):
    address = doors[kind][0]
    host, _, port = address.rpartition(":")
    for length, refused in ((most, False), (most + 1, True)):
        with socket.create_connection((host, int(port)), 10) as connection:
            head = f"POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Length: {length}\r\n\r\n"
            # One that is let in is read to its end by the token endpoint; elsewhere it lacks a token, or a receiver.
            connection.sendall(head.encode() + (b"" if refused else b"x" * min(length, 64 << 10)))
            assert (status(connection.recv(65536).decode()) == 413) is refused, length


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "size"), [("multipart", 64 << 20), ("resumable", 1 << 20)])
def test_an_upload_that_is_kept_in_memory_is_bounded(world, kind, size):
    path = f"/upload/storage/v1/b/models/o?uploadType={kind}&name=large"
    pieces = (b" " * (1 << 20) for _ in range((size >> 20) + 1))
    answer = world.client.http.post(path, content=pieces)
    assert (answer.status_code, answer.json()["error"]["errors"][0]["reason"]) == (413, "uploadTooLarge")
    assert list(world.cloud.layout.uploads.iterdir()) == []


@pytest.mark.slow
def test_an_upload_that_is_not_permitted_is_refused_before_it_is_received(world):
    token = world.do(world.cloud.tokens.access_token, RUNTIME, "scope")[0]
    world.client.post("/storage/v1/b", {"name": "deployers", "location": "US-EAST4"}, project="bezel-local")
    address = world.endpoint.base.removeprefix("http://")
    head = f"POST /upload/storage/v1/b/deployers/o?uploadType=media&name=x HTTP/1.1\r\nHost: {address}\r\n"
    request = f"{head}Authorization: Bearer {token}\r\nContent-Length: {1 << 40}\r\n\r\n"
    assert status(answer_of(address, request.encode())) == 403
