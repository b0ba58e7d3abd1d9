"""A load balancer as its clients see it: which region answers, what fails while one is down, TLS, streams, identity."""

import asyncio
import os
import signal
import socket
import ssl

import httpx
import pytest

from bezel_localcloud import control
from localcloud_support.balanced import COMPUTE, FAR, NEAR, Balanced
from localcloud_support.balancer_programs import DOMAIN
from localcloud_support.client import PARENT, Client, is_alive, until
from localcloud_support.stream_load import StreamLoad

pytestmark = pytest.mark.slow  # services in two regions behind it
OUTLIERS = {"consecutiveGatewayFailure": 3, "interval": {"seconds": 1}}
# An ejection that lasts longer than a test, and one that is over after a second; the clock is 10,000 times as fast.
LONG, SHORT = (OUTLIERS | {"baseEjectionTime": {"seconds": seconds}} for seconds in (10_000_000, 10_000))


@pytest.fixture(scope="module")
def balancer(tmp_path_factory, daemon_forks):
    directory = tmp_path_factory.mktemp("balancer")
    yield Balanced(Client(daemon_forks.start(directory, queue=1.0)), LONG)
    control.stop(directory)


def begin_stream(client):
    """A streamed response of which the first event has arrived, and the rest comes after a request for /go."""
    response = client.send(client.build_request("GET", "/stream"), stream=True)
    events = response.iter_text()
    assert next(events) == "data: first\n\n"
    return events


def replace_instance(client):
    """Kill the instance that answers, and wait for the next one, whose streams wait for /go again."""
    pid = client.get("/x").json()["pid"]
    os.kill(pid, signal.SIGKILL)
    until(lambda: (answer := client.get("/x")).status_code == 200 and answer.json()["pid"] != pid)


def load_of(balancer):
    return StreamLoad(balancer.listeners()["http"]["at"], DOMAIN, balancer.token)


def test_the_nearest_region_answers_and_moves_with_the_clients(balancer):
    with balancer.open() as client:
        assert balancer.region_of(client) == (200, NEAR)
        assert balancer.client.put("/localcloud/balancers", {"place": "europe"}).status_code == 200
        assert balancer.region_of(client) == (200, FAR)
        refused = balancer.client.put("/localcloud/balancers", {"place": "mars"})
        assert (refused.status_code, "place is 'mars'" in refused.text) == (400, True)
        assert balancer.client.put("/localcloud/balancers", {"place": NEAR}).status_code == 200
        assert balancer.region_of(client) == (200, NEAR)


def test_a_dead_region_is_ejected_after_its_failures_and_returns(balancer):
    with balancer.open() as client, balancer.open() as streaming, balancer.open() as drained:
        with balancer.fault("region-drain", region=FAR):
            events = begin_stream(streaming)
        with balancer.fault("region-down", region=NEAR):
            with pytest.raises(httpx.RemoteProtocolError):
                list(events)
            # The broken stream was the first failure in a row.
            failed = [client.get("/x") for _ in range(2)]
            assert [answer.status_code for answer in failed] == [502, 502]
            assert "Please try again in 30 seconds" in failed[0].text
            assert [balancer.region_of(client) for _ in range(5)] == [(200, FAR)] * 5
            with balancer.fault("region-drain", region=FAR):
                none = drained.get("/x")
                assert (none.status_code, none.text) == (503, "no healthy upstream")
        assert balancer.region_of(client) == (200, FAR), "it stays out of use for its time"
        readmit(balancer, SHORT)
        with balancer.fault("region-down", region=NEAR):
            assert [client.get("/x").status_code for _ in range(3)] == [502] * 3
        until(lambda: balancer.shares()[NEAR] == 1)
        assert balancer.region_of(client) == (200, NEAR)
        readmit(balancer)


def test_streams_of_a_dead_region_break_and_no_later_one_does(balancer):
    load = load_of(balancer)

    async def lose_the_region():
        streams = await load.begin_all(64)
        with balancer.fault("region-down", region=NEAR):
            assert await load.end_all(streams) == 0, "those in flight there"
            again = await load.begin_all(64)
            await load.ask("/go")
            return await load.end_all(again)

    assert asyncio.run(lose_the_region()) == 64
    readmit(balancer)
    with balancer.open() as client:
        assert balancer.region_of(client) == (200, NEAR)
        with balancer.fault("region-drain", region=NEAR):
            replace_instance(client)


@pytest.mark.wide
def test_a_thousand_streams_are_held_at_once(balancer):
    load = load_of(balancer)

    async def hold():
        streams = await load.begin_all(999)
        await load.ask("/go")  # the thousandth request that the instance takes at a time
        return await load.end_all(streams)

    assert asyncio.run(hold()) == 999
    with balancer.open() as client:
        replace_instance(client)


@pytest.mark.long
def test_a_thousand_streams_pass_event_by_event(balancer):
    load = load_of(balancer)

    async def pass_events():
        streams = await load.begin_all(500, "/events")
        balancer.move("europe")
        streams += await load.begin_all(500, "/events")
        for name in ("second", "third"):  # none is sent before all clients have had the one before
            for region in (NEAR, FAR):
                with balancer.front(region) as direct:
                    assert direct.get("/next").status_code == 200
            await load.read_event(streams, name)
        ends = await asyncio.gather(*(reader.readuntil(b"0\r\n\r\n") for reader, _ in streams))
        for _, writer in streams:
            writer.close()
        return len(ends)

    assert asyncio.run(pass_events()) == 1000
    balancer.move(NEAR)


def test_a_drained_region_ends_its_streams_and_gets_no_others(balancer):
    with balancer.open() as client, balancer.open() as streaming:
        events = begin_stream(streaming)
        with balancer.fault("region-drain", region=NEAR):
            assert balancer.region_of(client) == (200, FAR)
            direct = balancer.client.front("llm")
            assert direct.get("/go").status_code == 200
            assert list(events) == ["data: second\n\n"]
        assert balancer.region_of(client) == (200, NEAR)
        replace_instance(client)


def test_the_identity_of_the_address_is_checked_by_the_service(balancer):
    with balancer.open() as client:
        seen = client.post("/x", content="body").json()
        assert seen["body"] == "body"
        assert seen["headers"]["authorization"].endswith(".SIGNATURE_REMOVED_BY_GOOGLE")
        assert seen["headers"]["x-forwarded-for"] == f"127.0.0.1, {balancer.listeners()['http']['address']}"
        assert client.get("/x").headers["via"] == "1.1 google"
    elsewhere = balancer.client.identity("https://elsewhere.example")
    for token, status in ((elsewhere, 401), ("none", 401)):
        with balancer.open(token=token) as client:
            assert client.get("/x").status_code == status
    with balancer.open(host="elsewhere.example") as client:
        assert client.get("/x").status_code == 403, "a page whose name was made to lead here"


def test_a_service_may_be_hidden_but_for_the_balancer(balancer):
    path = f"{balancer.services(NEAR)}/llm"
    try:
        for ingress, status in (("INTERNAL_LOAD_BALANCER", 200), ("INTERNAL_ONLY", 404)):
            service = balancer.client.get(path).json() | {"ingress": f"INGRESS_TRAFFIC_{ingress}"}
            balancer.client.finish("run/v2", balancer.client.patch(path, service))
            with balancer.open() as client, balancer.client.front("llm") as direct:
                assert client.get("/x").status_code == status
                assert direct.get("/x").status_code == 404
    finally:
        service = balancer.client.get(path).json() | {"ingress": "INGRESS_TRAFFIC_ALL"}
        balancer.client.finish("run/v2", balancer.client.patch(path, service))


def test_tls_needs_a_certificate_that_is_active(balancer):
    with pytest.raises(httpx.ConnectError, match=r"EOF|HANDSHAKE"):
        ask_over_tls(balancer)
    with balancer.fault("certificate-delayed"):
        balancer.add_record()
        certificate = f"{COMPUTE}/global/sslCertificates/cert"
        assert balancer.client.get(certificate).json()["managed"]["status"] == "PROVISIONING"
    until(lambda: balancer.client.get(certificate).json()["managed"]["status"] == "ACTIVE")
    assert ask_over_tls(balancer).json()["headers"]["x-forwarded-proto"] == "https"
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        ask_over_tls(balancer, ssl.create_default_context())


def ask_over_tls(balancer, context=None):
    """The answer of the address over https."""
    with balancer.open("https", context=context) as client:
        return client.get("/x", extensions={"sni_hostname": DOMAIN})


def test_a_change_of_the_rules_needs_no_new_connection(balancer):
    with balancer.open() as client:
        assert balancer.region_of(client) == (200, NEAR)
        service = f"{PARENT}/global/backendServices/be"
        redirect = {"httpsRedirect": True, "redirectResponseCode": "FOUND", "stripQuery": True}
        change(balancer, "urlMaps/map", {"defaultService": None, "defaultUrlRedirect": redirect})
        moved = until(lambda: (answer := client.get("/x?q=1")).status_code == 302 and answer)
        assert moved.headers["location"] == f"https://{DOMAIN}/x"
        change(balancer, "urlMaps/map", {"defaultService": service, "defaultUrlRedirect": None})
        until(lambda: balancer.region_of(client) == (200, NEAR))


def test_a_retry_policy_sends_a_failed_request_again(balancer):
    change(balancer, "backendServices/be", {"customResponseHeaders": ["X-Balancer: be"]})
    policy = {"retryConditions": ["gateway-error"], "numRetries": 3}
    change(balancer, "urlMaps/map", {"defaultRouteAction": {"retryPolicy": policy}})
    try:
        with balancer.open() as client, balancer.fault("region-down", region=NEAR):
            until(lambda: client.get("/x").headers.get("x-balancer") == "be")
            readmit(balancer)
            answer = client.post("/x", content="once")
            assert (answer.status_code, answer.headers.get_list("x-balancer")) == (200, ["be"])
            seen = answer.json()
            assert (seen["environment"]["REGION_NAME"], seen["body"]) == (FAR, "once")
    finally:
        change(balancer, "urlMaps/map", {"defaultRouteAction": None})
        change(balancer, "backendServices/be", {"customResponseHeaders": None})
        readmit(balancer)


def change(balancer, resource, body):
    """Change a resource, with the fingerprint that it has."""
    path = f"{COMPUTE}/global/{resource}"
    fingerprint = balancer.client.get(path).json()["fingerprint"]
    assert balancer.client.patch(path, body | {"fingerprint": fingerprint}).status_code == 200


def readmit(balancer, outliers=LONG):
    """Have every region in use again, as the balancer forgets its ejections, and the next one last as long as asked."""
    for detection in (None, outliers):
        change(balancer, "backendServices/be", {"outlierDetection": detection})
        assert balancer.shares()[NEAR] == 1


def test_a_malformed_request_gets_googles_page_and_the_end(balancer):
    host, _, port = balancer.listeners()["http"]["at"].partition(":")
    with socket.create_connection((host, int(port)), 10) as raw:
        raw.sendall(b"GET /x HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n")
        assert raw.recv(1 << 16).startswith(b"HTTP/1.1 400 ")


def test_a_region_without_gpus_refuses_what_waits_for_an_instance(balancer):
    direct = balancer.client.front("llm")
    with balancer.fault("gpu-exhausted", region=NEAR, status="500"):
        assert direct.get("/x").status_code == 200, "the instance that runs serves on"
        pid = direct.get("/x").json()["pid"]
        os.kill(pid, signal.SIGKILL)
        until(lambda: not is_alive(pid))
        refused = direct.get("/x")
        assert (refused.status_code, "no available instance" in refused.text) == (500, True)
        service = {"template": balancer.client.template("--another")}
        operation = balancer.client.finish(
            "run/v2", balancer.client.post(balancer.services(NEAR), service, serviceId="full")
        )
        assert "Insufficient GPU capacity in us-east4" in operation["error"]["message"]
        balancer.client.finish("run/v2", balancer.client.delete(f"{balancer.services(NEAR)}/full"))
    until(lambda: direct.get("/x").status_code == 200)


def test_service_health_moves_traffic_away_and_gradually_back(tmp_path, daemon_forks):
    directory = tmp_path / "cloud"
    probe = {"httpGet": {"path": "/health"}, "periodSeconds": 10, "failureThreshold": 3}
    try:
        # Slow enough for a look at the share of a region that returns: it grows for a minute of the platform.
        balancer = Balanced(Client(daemon_forks.start(directory, speed=40)), None, probe)
        with balancer.open() as client:
            assert balancer.region_of(client) == (200, NEAR)
            with balancer.fault("region-down", region=NEAR):
                until(lambda: balancer.shares()[NEAR] == 0)
                assert [balancer.region_of(client) for _ in range(5)] == [(200, FAR)] * 5
            until(lambda: 0 < balancer.shares()[NEAR] < 1)
            until(lambda: balancer.shares()[NEAR] == 1)
            assert balancer.region_of(client) == (200, NEAR)
            assert client.get("/hang-up").status_code == 200
            until(lambda: balancer.region_of(client) == (200, FAR))
    finally:
        control.stop(directory)
