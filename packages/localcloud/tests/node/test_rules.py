"""A machine: what it reaches and who reaches it, what its metadata server answers, which commands it has."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from starlette.applications import Starlette

from bezel_base.loopback.plain_http import NO_TLS
from bezel_localcloud.access.credentials import keys
from bezel_localcloud.access.credentials.tokens import Tokens
from bezel_localcloud.core.clock import PlatformClock
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.core.store import Store
from bezel_localcloud.machines.node_spec import NodeSpec
from bezel_localcloud.node.commands import answer
from bezel_localcloud.node.docker import machines
from bezel_localcloud.node.metadata import Metadata
from bezel_localcloud.node.reachability import NODE_VARIABLE, Ways
from bezel_localcloud.services.cloud_run.runtime.instance import INSTANCE_VARIABLE
from bezel_localcloud.services.compute.vpc import FIRST_ADDRESS, free_address, with_loopback
from bezel_simulated_vllm.configuration.hardware import accelerators

NETWORK = f"projects/{PROJECT}/global/networks/bezel"
PREFIX = f"projects/{PROJECT}/regions/us-east5"
NODES, GATEWAY, OTHER = (f"{PREFIX}/subnetworks/{name}" for name in ("nodes", "gateway", "other"))
INSTANCES = {"front": GATEWAY, "stray": OTHER, "outside": ""}
EXTERNAL = "127.192.0.2"
FLAVOR = {"Metadata-Flavor": "Google"}


def spec(**changes):
    fields = {
        "name": f"projects/{PROJECT}/locations/us-east5-a/nodes/lease",
        "hardware": "v6e-4",
        "metadata": {"bezel-port": "8000", "enable-guest-attributes": "TRUE"},
        "service_account": "runtime@x",
        "network": NETWORK,
        "subnetwork": NODES,
        "address": "127.64.0.2",
        "tags": ("bezel-node",),
    }
    return NodeSpec(**fields | changes)


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "cloud.db")
    for name, ip_range, network in (
        (NODES, "10.64.0.0/20", NETWORK),
        (GATEWAY, "10.64.16.0/26", NETWORK),
        (OTHER, "10.64.16.0/26", f"{NETWORK}-other"),
    ):
        store.put("subnetwork", name, {"network": network, "ipCidrRange": ip_range, "privateIpGoogleAccess": True})
    rule(store, "10.64.16.0/26")
    yield store
    store.close()


def rule(store, source):
    body = {"network": NETWORK, "direction": "INGRESS", "disabled": False, "priority": 1000, "sourceRanges": [source]}
    body |= {"targetTags": ["bezel-node"], "allowed": [{"IPProtocol": "tcp", "ports": ["8000"]}]}
    store.put("firewall", "gateway", body)


def ways(store, **changes):
    return Ways(store, spec(**changes), INSTANCES.__getitem__)


SENDERS = {
    "the gateway": ({INSTANCE_VARIABLE: "front"}, True),
    "the machine itself": ({NODE_VARIABLE: spec().name}, True),
    "another machine": ({NODE_VARIABLE: f"{spec().name}-2"}, False),
    "a service of another network": ({INSTANCE_VARIABLE: "stray"}, False),
    "a service without a network": ({INSTANCE_VARIABLE: "outside"}, False),
    "no machine of the cloud": ({}, False),
}


@pytest.mark.parametrize("name", SENDERS)
def test_only_allowed_senders_of_the_network_reach_the_address(store, name):
    """Only who is in the network and allowed reaches the internal address."""
    sender, reaches = SENDERS[name]
    rule(store, "0.0.0.0/0")
    assert ways(store, external_address=EXTERNAL).admits(sender, "127.64.0.2", 8000) is reaches


def test_a_rule_is_asked_for_each_connection(store):
    gateway, to = {INSTANCE_VARIABLE: "front"}, "127.64.0.2"
    assert ways(store).admits(gateway, to, 8000)
    assert not ways(store).admits(gateway, to, 8001)
    assert not ways(store, tags=()).admits(gateway, to, 8000)
    rule(store, "10.64.0.0/20")
    assert not ways(store).admits(gateway, to, 8000)


def test_the_external_address_is_reached_only_by_its_rule(store):
    """The external address is reached from the internet only by its rule."""
    machine = ways(store, external_address=EXTERNAL)
    assert not machine.admits({}, EXTERNAL, 8000)
    # Through it even the gateway comes from the internet.
    assert not machine.admits({INSTANCE_VARIABLE: "front"}, EXTERNAL, 8000)
    rule(store, "0.0.0.0/0")
    assert machine.admits({}, EXTERNAL, 8000)


def test_the_internet_needs_a_nat_or_an_external_address(store):
    """Google is reached privately and the internet by a NAT or an external address."""
    assert (ways(store).google(), ways(store).internet()) == (True, False)
    store.put("subnetwork", NODES, store.get("subnetwork", NODES) | {"privateIpGoogleAccess": False})
    assert (ways(store).google(), ways(store).internet()) == (False, False)
    assert ways(store, external_address=EXTERNAL).google()
    nat = {"sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES"}
    store.put("router", f"{PREFIX}/routers/nat", {"network": NETWORK, "nats": [nat]})
    assert (ways(store).google(), ways(store).internet()) == (True, True)


class Http:
    """Asks an application without a network between."""

    def __init__(self, app):
        self.transport = httpx.ASGITransport(app)

    def get(self, path, **named):
        return asyncio.run(self.ask("GET", path, **named))

    def put(self, path, **named):
        return asyncio.run(self.ask("PUT", path, **named))

    async def ask(self, method, path, headers=FLAVOR, **named):
        async with httpx.AsyncClient(transport=self.transport, base_url="http://metadata", verify=NO_TLS) as http:
            return await http.request(method, path, headers=headers, **named)


def test_two_clouds_of_one_computer_begin_at_different_addresses(store):
    """Two clouds of one computer begin at different addresses and give out all the same."""
    store.put("subnetwork", NODES, store.get("subnetwork", NODES) | {"ipCidrRange": "10.64.0.0/29"})

    def free_addresses():
        free = []
        while address := free_address(store, NODES):
            place = {"network": NETWORK, "subnetwork": NODES, "address": address}
            store.put("node", f"n{len(free)}", {"place": place})
            free.append(address)
        for number in range(len(free)):
            store.delete("node", f"n{number}")
        return free

    plain = free_addresses()
    store.set_setting(FIRST_ADDRESS, "4006")  # of four addresses the third
    assert free_addresses() == [*plain[2:], *plain[:2]]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("server node-0 10.64.0.2:8000", "server node-0 127.64.0.2:8000"),
        ("10.64.0.2 10.64.15.9,10.64.16.3", "127.64.0.2 127.64.15.9,127.64.16.3"),
        ("10.65.0.2, 192.0.2.1", "10.65.0.2, 192.0.2.1"),  # of no network here
        ("1.10.64.0.2 10.64.0.2.5 v10.64.0.999", "1.10.64.0.2 10.64.0.2.5 v10.64.0.999"),  # no addresses
        ("", ""),
    ],
)
def test_an_address_of_a_network_is_reached_at_its_loopback(store, text, shown):
    """An address of a network is reached at the loopback that stands for it."""
    assert with_loopback(store, text) == shown


@pytest.fixture
def metadata(store):
    store.put("account", "runtime@x", {"email": "runtime@x", "uniqueId": "1"})
    tokens = Tokens(keys.new_key(), store, PlatformClock(1), lambda: "http://issuer")

    def server(**changes):
        made = Metadata(spec(**changes), store, tokens)
        return made, Http(Starlette(routes=made.routes()))

    return server, tokens


@pytest.mark.slow
def test_the_metadata_server_answers_as_googles_does(metadata):
    server, tokens = metadata
    _, http = server()
    root = "/computeMetadata/v1"
    assert http.get(f"{root}/instance/attributes/bezel-port").text == "8000"
    assert http.get(f"{root}/instance/attributes/?recursive=true&alt=json").json() == dict(spec().metadata)
    assert http.get(f"{root}/instance/attributes/none").status_code == 404
    assert http.get(f"{root}/project/project-id").text == PROJECT
    assert http.get(f"{root}/instance/zone").text.endswith("/zones/us-east5-a")
    account = f"{root}/instance/service-accounts/default"
    assert http.get(f"{account}/email").text == "runtime@x"
    assert "cloud-platform" in http.get(f"{account}/scopes").text
    assert tokens.caller(http.get(f"{account}/token").json()["access_token"]) == "runtime@x"
    assert tokens.identity(http.get(f"{account}/identity?audience=a").text, {"a"}) == "runtime@x"
    assert http.get(f"{account}/identity").status_code == 400


@pytest.mark.slow
@pytest.mark.parametrize("headers", [{}, FLAVOR | {"X-Forwarded-For": "1.2.3.4"}])
def test_the_metadata_server_refuses_what_a_browser_might_send(metadata, headers):
    _, http = metadata[0]()
    for answered in (
        http.get("/computeMetadata/v1/project/project-id", headers=headers),
        http.put("/computeMetadata/v1/instance/guest-attributes/bezel/x", content="1", headers=headers),
    ):
        assert answered.status_code == 403


@pytest.mark.slow
def test_a_machine_without_an_account_has_no_token(metadata):
    _, http = metadata[0](service_account="")
    assert http.get("/computeMetadata/v1/instance/service-accounts/default/token").status_code == 404


@pytest.mark.slow
def test_guest_attributes_are_kept_only_where_they_are_turned_on(metadata):
    made, http = metadata[0]()
    path = "/computeMetadata/v1/instance/guest-attributes/bezel/network"
    assert http.put(path, content='{"state": "done"}').status_code == 200
    assert made.guest == {"bezel/network": '{"state": "done"}'}
    assert http.get(path).text == '{"state": "done"}'
    assert http.put(path.replace("/network", ""), content="x").status_code == 400
    made, http = metadata[0](metadata={})
    assert http.put(path, content="x").status_code == 403
    assert made.guest == {}


@pytest.mark.slow
def test_a_waiting_reader_gets_the_change_of_the_attributes(metadata):
    """Who waits for a change of the attributes is answered with it and not before."""
    made, _ = metadata[0]()
    root = "/computeMetadata/v1/instance/attributes"

    async def trial():
        transport = httpx.ASGITransport(Starlette(routes=made.routes()))
        async with httpx.AsyncClient(transport=transport, base_url="http://machine", headers=FLAVOR) as http:
            first = await http.get(f"{root}/?recursive=true&wait_for_change=true&last_etag=other")
            assert first.json() == dict(spec().metadata)
            wait = f"wait_for_change=true&last_etag={first.headers['etag']}"
            every = asyncio.create_task(http.get(f"{root}/?recursive=true&{wait}"))
            etag = (await http.get(f"{root}/bezel-port")).headers["etag"]
            one = asyncio.create_task(http.get(f"{root}/bezel-port?wait_for_change=true&last_etag={etag}"))
            for _ in range(10):
                await asyncio.sleep(0)
            made.replace(dict(spec().metadata) | {"bezel-container": "x"})
            changed = await every
            assert changed.json()["bezel-container"] == "x"
            assert changed.headers["etag"] != first.headers["etag"]
            assert not one.done()
            made.replace({"bezel-port": "9000"})
            assert (await one).text == "9000"
            late = await http.get(f"{root}/?wait_for_change=true&timeout_sec=0")
            assert (late.status_code, late.text) == (200, "bezel-port\n")
            assert (await http.get(f"{root}/?wait_for_change=true&timeout_sec=soon")).status_code == 400
            last = asyncio.create_task(http.get(f"{root}/?wait_for_change=true"))
            for _ in range(10):
                await asyncio.sleep(0)
            assert not last.done()
            made.close()
            assert (await last).status_code == 200

    asyncio.run(trial())


@pytest.mark.parametrize("arguments", [["ps"], ["run", "image"], ["run", "--detach", "--restart", "always", "image"]])
def test_a_command_line_that_is_not_known_is_refused_and_named(arguments):
    engine = SimpleNamespace(installed=True, run=None, disk=Path.cwd())
    refused = asyncio.run(answer(engine, "docker", arguments, "", Path("nowhere")))
    assert refused.code == 125
    assert "stand-in does not support" in refused.err


def test_docker_is_missing_until_it_is_installed_over_the_internet():
    engine = SimpleNamespace(installed=False, disk=Path.cwd(), ways=SimpleNamespace(internet=lambda: False))

    def run(program, *arguments):
        return asyncio.run(answer(engine, program, arguments, "", Path("nowhere"))).code

    assert run("docker", "--version") == 127
    assert run("apt-get", "--yes", "install", "docker.io") == 100
    assert run("docker", "--version") == 127
    engine.ways.internet = lambda: True
    assert run("apt-get", "--quiet", "update") == 0
    assert run("docker", "--version") == 127
    assert run("apt-get", "--yes", "install", "docker.io") == 0
    assert run("docker", "--version") == 0


def test_each_kind_of_machine_has_accelerators_that_can_be_simulated():
    assert {row["accelerator"] for row in machines().values()} <= set(accelerators())
    assert json.dumps(machines())
