"""The fallback of the gateway at the wire: the very proxy, command and programs that are deployed."""

import ssl
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple

import pytest

from bezel.planner.fallback.gateway_checks import FAST_INTERVAL, INTERVAL, RETURN, detection_seconds
from bezel_base.text.redaction import redact
from bezel_components.config.gateway import gateway_configuration
from bezel_components.config.gateway_fallback import PROBE_ATTEMPTS, SERVED_BY, FallbackUrlError, identity_program
from bezel_localcloud.access.certificates import server_certificate
from tests.support.localcloud.gateway_harness import Gateway, Node, missing_proxy, nodes, until
from tests.support.localcloud.metadata_server import MetadataServer, number_of
from tests.support.localcloud.streaming_users import Users

needs_proxy = pytest.mark.skipif(bool(missing_proxy()), reason=missing_proxy())
IDENTITY = "x-serverless-authorization"


class World(NamedTuple):
    gateway: Gateway
    node: Node
    fallback: Node
    metadata: MetadataServer

    def kill(self) -> None:
        """End the node's server, and wait until no request is sent to it any more."""
        self.node.die()
        until(lambda: self.serving() == "fallback", "the node is out", self.gateway.log)

    def serving(self) -> str:
        """What serves, as the gateway says without sending a request to the fallback."""
        connection = self.gateway.connect()
        connection.request("GET", "/health")
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.headers.get(SERVED_BY, "") if response.status == 200 else ""


RETURN_SOON = {f"slowstart {RETURN}s": "slowstart 3s"}
CHECK_SOON = {
    f"inter {INTERVAL}s fastinter {FAST_INTERVAL}s downinter 2s": "inter 200ms fastinter 100ms downinter 200ms"
}


@contextmanager
def running_gateway(replaced: Mapping[str, str]) -> Iterator[World]:
    """A gateway before a node and a fallback, with other times in its configuration."""
    (node,) = nodes(1)
    fallback = Node("127.0.0.1", 0)
    with (
        MetadataServer() as metadata,
        Gateway([node], fallback=url_of(fallback), metadata=metadata.address, replaced=replaced) as gateway,
    ):
        yield World(gateway, node, fallback, metadata)
    node.close()
    fallback.close()


@pytest.fixture
def world() -> Iterator[World]:
    with running_gateway(RETURN_SOON | CHECK_SOON) as made:
        yield made


@pytest.fixture
def world_with_own_checks() -> Iterator[World]:
    with running_gateway(RETURN_SOON) as made:
        yield made


def url_of(node: Node) -> str:
    return f"http://{node.address}:{node.port}"


def send_version_requests(gateway: Gateway, count: int) -> list[HTTPConnection]:
    """Requests that wait for their responses, each on a connection of its own."""
    callers = [gateway.connect() for _ in range(count)]
    for caller in callers:
        caller.request("GET", "/version")
    return callers


def statuses_of(callers: list[HTTPConnection]) -> list[int]:
    """Statuses of the responses, whose connections are then closed."""
    statuses = [caller.getresponse().status for caller in callers]
    for caller in callers:
        caller.close()
    return statuses


# A lease ends and returns


@needs_proxy
@pytest.mark.slow
def test_users_lose_only_streams_on_a_dead_lease_within_the_stated_time(world_with_own_checks: World) -> None:
    world = world_with_own_checks
    detection = detection_seconds()["server ended"]
    caller = {"Authorization": "Bearer planted"}
    with Users(world.gateway.port, 64, "/v1/pieces", b"{}", caller, b"data: last\n\n") as users:
        users.wait_for_streams("lease", 0)
        died = time.monotonic()
        world.node.die()
        refusing_since = time.monotonic()
        users.wait_for_streams("fallback", died + detection)
        world.node.listen()
        returned = time.monotonic()
        users.wait_for_streams("lease", returned)
    users.check_lost_streams(died, detection)
    # A connection that the dead node refuses is sent on: only what it had already got is lost.
    assert [stream for stream in users.streams if not stream.is_whole and not stream.began < refusing_since] == []
    # Both serve while the lease returns, and what began at the fallback ended there.
    back = next(stream.began for stream in users.streams if stream.began > returned and stream.served_by == "lease")
    assert any(stream.served_by == "fallback" for stream in users.streams if stream.began > back)
    assert "planted" not in repr(world.node.seen + world.fallback.seen)


@needs_proxy
@pytest.mark.slow
def test_only_the_fallback_gets_the_identity(world: World) -> None:
    gateway, node, fallback, metadata = world
    caller = {"Authorization": "Bearer planted", "X-Serverless-Authorization": "Bearer planted", "Cookie": "planted"}
    assert gateway.ask("/v1/models", headers=caller)[1]["node"] == node.address
    assert metadata.asked == []
    world.kill()
    assert gateway.ask("/v1/models?x=1", "POST", b"{}", caller)[1]["node"] == fallback.address
    audience = f"/computeMetadata/v1/instance/service-accounts/default/identity?audience={url_of(fallback)}"
    assert metadata.asked == [(audience, "Google")]
    (request,) = fallback.seen
    assert (request.target, request.headers["host"]) == ("/v1/models?x=1", f"127.0.0.1:{fallback.port}")
    assert number_of(request.headers[IDENTITY]) == 1
    assert "planted" not in repr(request).replace(request.headers[IDENTITY], "")
    assert not {"authorization", "cookie"}.intersection(request.headers)
    assert all(IDENTITY not in seen.headers for seen in node.seen)
    assert request.headers[IDENTITY].split(".")[1] not in "".join(gateway.log)


@needs_proxy
@pytest.mark.slow
def test_a_token_is_fetched_again_before_it_ends_and_once_for_all(world: World) -> None:
    gateway, _, fallback, metadata = world
    metadata.lifetime = 61.5  # it is fetched again a minute before
    world.kill()
    metadata.answers.clear()
    callers = send_version_requests(gateway, 16)
    until(lambda: metadata.asked, "the metadata server is asked", gateway.log)
    # Each of these responses is later than what the one thread of the proxy had got before: all wait for the token.
    assert [world.serving() for _ in range(20)] == ["fallback"] * 20
    metadata.answers.set()
    assert statuses_of(callers) == [200] * 16
    assert [number_of(request.headers[IDENTITY]) for request in fallback.seen] == [1] * 16
    metadata.lifetime = 3600

    def is_fetched_again() -> bool:
        gateway.ask("/version")
        return number_of(fallback.seen[-1].headers[IDENTITY]) == 2

    until(is_fetched_again, "the token is fetched again", gateway.log)
    # It still lives: a metadata server that fails costs no request.
    metadata.status = 503
    assert gateway.ask("/version")[0] == 200
    assert len(metadata.asked) == 2


@needs_proxy
@pytest.mark.slow
def test_without_an_identity_nothing_is_sent_and_the_lease_still_serves(world: World) -> None:
    gateway, node, fallback, metadata = world
    metadata.status = 404
    assert gateway.ask("/version")[1]["node"] == node.address
    world.kill()
    status, body = gateway.ask("/version")
    assert (status, fallback.seen) == (503, [])
    assert body["error"]["message"].endswith("got no identity for the fallback from the metadata server.")
    metadata.status = 200
    assert gateway.ask("/version")[1]["node"] == fallback.address


@needs_proxy
@pytest.mark.slow
def test_requests_that_wait_for_one_answer_share_its_failure(world: World) -> None:
    gateway, _, fallback, metadata = world
    world.kill()
    metadata.answers.clear()
    metadata.status = 503
    callers = send_version_requests(gateway, 8)
    until(lambda: metadata.asked, "the metadata server is asked", gateway.log)
    # Each of these responses is later than what the one thread of the proxy had got before.
    assert [world.serving() for _ in range(20)] == ["fallback"] * 20
    metadata.answers.set()
    assert statuses_of(callers) == [503] * 8
    assert len(metadata.asked) == 1
    assert fallback.seen == []
    # A later request asks again.
    metadata.status = 200
    assert gateway.ask("/version")[1]["node"] == fallback.address


@needs_proxy
@pytest.mark.slow
def test_health_probe_and_metrics_start_no_instance_of_the_fallback(world: World) -> None:
    gateway, node, fallback, _ = world
    assert gateway.ask("/metrics")[1]["node"] == node.address
    assert world.serving() == "lease"
    world.kill()
    statuses = [gateway.ask("/gateway")[0] for _ in range(PROBE_ATTEMPTS + 1)]
    assert statuses == [503] * PROBE_ATTEMPTS + [200]
    status, body = gateway.ask("/metrics")
    assert (status, fallback.seen) == (503, [])
    assert body["error"]["message"].endswith("health checks; the fallback has the same path below /fallback.")


@needs_proxy
@pytest.mark.slow
def test_a_path_of_one_of_both_is_served_by_that_one_alone(world: World) -> None:
    gateway, node, fallback, _ = world
    for target in ("/health", "/metrics", "/v1/models?x=/lease/y"):
        assert gateway.ask(f"/lease{target}")[1]["node"] == node.address
        assert gateway.ask(f"/fallback{target}")[1]["node"] == fallback.address
    assert [request.target for request in fallback.seen] == ["/health", "/metrics", "/v1/models?x=/lease/y"]
    for target in ("/lease", "/lease/", "/fallback/invocations", "/fallback/../v1/models", "/fallback/lease/v1/models"):
        assert gateway.raw(f"GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")[9:12] == b"404"
    world.kill()
    assert gateway.ask("/lease/v1/models")[0] == 503
    assert gateway.ask("/v1/models")[1]["node"] == fallback.address


@needs_proxy
@pytest.mark.slow
def test_pages_of_the_front_end_and_a_dead_fallback_become_json(world: World) -> None:
    gateway, _, fallback, _ = world
    world.kill()
    answers = {status: gateway.ask(f"/v1/page/{status}") for status in (401, 403, 404, 429, 500, 503)}
    identity = "The fallback refused the identity of the gateway."
    for status in (401, 403):
        assert (answers[status][0], answers[status][1]["error"]["message"]) == (502, identity)
    for status in (404, 429, 500, 503):
        taken = f"The fallback did not take the request: HTTP {status}."
        assert (answers[status][0], answers[status][1]["error"]["message"]) == (503, taken)
    assert gateway.ask("/v1/break")[1]["error"]["message"] == "The fallback closed the connection."
    fallback.die()
    status, body = gateway.ask("/version")
    assert status == 503
    assert body["error"]["message"].endswith("and the fallback could not be reached.")


# Fleets, a lease that was not granted, and a fallback of another name


@needs_proxy
@pytest.mark.slow
@pytest.mark.parametrize("machines", [None, 2])
def test_a_fallback_waits_while_any_machine_of_a_fleet_lives(machines: int | None) -> None:
    """Each address is that of a machine, or two of four possible ones are."""
    places = nodes(2 if machines is None else 4)
    for other in places[2:]:
        other.close()
    first, second, fallback = *places[:2], Node("127.0.0.1", 0)
    with (
        MetadataServer() as metadata,
        Gateway(
            places, machines=machines, fallback=url_of(fallback), metadata=metadata.address, replaced=CHECK_SOON
        ) as gateway,
    ):
        assert [gateway.ask(f"/metrics?node={number}")[1]["node"] for number in (1, 0)] == [
            second.address,
            first.address,
        ]
        assert gateway.ask("/fallback/metrics?node=0")[1]["node"] == fallback.address
        first.die()
        assert {gateway.ask("/v1/models")[1]["node"] for _ in range(8)} == {second.address}
        second.die()
        until(lambda: gateway.ask("/version")[1].get("node") == fallback.address, "no machine lives", gateway.log)
    fallback.close()


@needs_proxy
@pytest.mark.slow
def test_the_fallback_serves_at_once_without_any_lease() -> None:
    fallback = Node("127.0.0.1", 0)
    with (
        MetadataServer() as metadata,
        Gateway([], absent=2, fallback=url_of(fallback), metadata=metadata.address) as gateway,
    ):
        assert gateway.ask("/gateway")[0] == 200
        assert gateway.ask("/v1/models")[1]["node"] == fallback.address
        assert gateway.ask("/metrics")[0] == 503
    fallback.close()


@needs_proxy
@pytest.mark.slow
@pytest.mark.parametrize(
    ("host", "trusted", "status"), [("localhost", True, 200), ("localhost", False, 503), ("a.b.localhost", True, 503)]
)
def test_an_identity_is_sent_only_over_verified_tls(tmp_path: Path, host: str, trusted: bool, status: int) -> None:
    made = server_certificate(tmp_path, time.time())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.chain, made.key)
    fallback = Node("127.0.0.1", 0, tls=context)
    variables = {"GATEWAY_AUTHORITIES": str(made.authority)} if trusted else {}
    port = {f" {host}:443 ": f" 127.0.0.1:{fallback.port} "}
    with (
        MetadataServer() as metadata,
        Gateway(
            [], 1, fallback=f"https://{host}", metadata=metadata.address, replaced=port, variables=variables
        ) as gateway,
    ):
        assert gateway.ask("/version")[0] == status
    assert len(fallback.seen) == (status == 200)
    fallback.close()


@pytest.mark.parametrize(
    "url",
    [
        "http://chat.run.app",
        "https://chat.run.app/",
        "https://chat.run.app:8443",
        "https://chat.run.app\n    server x",
        "https://user@chat.run.app",
        "http://127.0.0.1",
    ],
)
def test_an_identity_is_sent_to_no_other_address(url: str) -> None:
    with pytest.raises(FallbackUrlError, match="send its identity there"):
        gateway_configuration(["10.64.0.5"], 8000, fallback=url)


def test_policies_take_no_text_of_the_gateway_for_a_secret() -> None:
    texts = [gateway_configuration(["10.64.0.5"], 8000, fallback="https://chat.run.app"), identity_program()]
    assert [redact(text) for text in texts] == texts


def test_the_configuration_without_a_fallback_has_nothing_of_one() -> None:
    plain = gateway_configuration(["10.64.0.5", ""], 8000)
    assert "fallback" not in plain
    assert SERVED_BY not in plain
    assert "lua" not in plain
