"""The gateway as a service of localcloud: the very proxy, behind identity, with a leg in the nodes' network."""

from types import SimpleNamespace

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bezel_base.loopback.plain_http import NO_TLS
from bezel_components.config.gateway import PROBE_PATH, gateway_configuration
from bezel_components.identity_gateway import CONFIGURATION, IMAGE, SCRIPT, TAG
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.http.serving import REFUSAL
from bezel_localcloud.services.artifact_registry.images import program_of
from bezel_localcloud.services.cloud_run.failures import RevisionFailureError
from bezel_localcloud.services.cloud_run.runtime.container_command import program
from localcloud_support.client import RUNTIME, SERVICES, plain
from localcloud_support.malformed_requests import MALFORMED, WELL_FORMED, answer, request
from localcloud_support.node_harness import GATEWAY, NETWORK, RunningCloud, own_address
from tests.support.localcloud.gateway_harness import Node, missing_proxy

pytestmark = pytest.mark.slow
needs_proxy = pytest.mark.skipif(bool(missing_proxy()), reason=missing_proxy())
INTERFACE = {"network": NETWORK, "subnetwork": GATEWAY, "tags": ["front"]}


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    world = RunningCloud(tmp_path_factory.mktemp("cloud"))
    world.furnish()
    for name in (NETWORK, NETWORK.replace("networks/bezel", "networks/other")):
        world.put("network", name)
    world.put("subnetwork", GATEWAY.replace("gateway", "small"), network=NETWORK, ipCidrRange="10.64.17.0/27")
    # Who sends from where is what the services say.
    world.instances = SimpleNamespace(get=lambda instance, _: world.cloud.services.subnetwork_of(instance))
    yield world
    world.close()


def template(world, address, port=8000, **access):
    head = world.client.http.head(f"/v2/{IMAGE}/manifests/{TAG}", params={"ns": "docker.io"})
    container = {
        "image": f"us-east4-docker.pkg.dev/{PROJECT}/hub/{IMAGE}@{head.headers['docker-content-digest']}",
        "command": ["sh"],
        "args": ["-c", SCRIPT],
        "env": [{"name": CONFIGURATION, "value": gateway_configuration([address], port)}],
        "ports": [{"containerPort": 8080}],
        "resources": {"limits": {"cpu": "1", "memory": "512Mi"}, "cpuIdle": True},
        "startupProbe": {
            "httpGet": {"path": PROBE_PATH, "port": 8080},
            "periodSeconds": 2,
            "timeoutSeconds": 2,
            "failureThreshold": 40,
        },
    }
    return {
        "containers": [container],
        "serviceAccount": RUNTIME,
        "scaling": {"maxInstanceCount": 1},
        "vpcAccess": {"egress": "PRIVATE_RANGES_ONLY", "networkInterfaces": [INTERFACE]},
    } | access


@needs_proxy
def test_callers_with_an_identity_reach_the_node_and_nobody_else_does(world):
    node = Node(own_address(40), 0)
    created = world.client.create("front", template(world, node.address, node.port))
    assert "error" not in created, created
    uri = created["response"]["uri"]
    assert plain.get(f"{uri}/v1/models").status_code == 403
    assert plain.get(f"{uri}/v1/models", headers={"Authorization": "Bearer planted"}).status_code == 401
    # A startup probe that this machine answers too late is sent again.
    assert {request.target for request in node.seen} == {"/health"}
    with world.client.front("front") as caller:
        token = caller.headers["Authorization"].split(".")[1]
        assert caller.get("/v1/models?x=1").json()["node"] == node.address
        assert caller.get("/invocations").status_code == 404
        with caller.stream("POST", "/v1/stream", json={}) as answer:
            pieces = answer.iter_text()
            assert next(pieces) == "data: first\n\n"
            node.go.set()
            assert next(pieces) == "data: second\n\n"
    asked = [request.target for request in node.seen if request.target != "/health"]
    assert asked == ["/v1/models?x=1", "/v1/stream"]
    assert token not in repr(node.seen)
    node.close()
    world.client.remove("front")


@needs_proxy
def test_a_node_behind_a_firewall_is_reached_from_its_subnetwork_alone(world):
    address = own_address(41)
    world.serve(address)
    with pytest.raises(httpx.HTTPError):
        httpx.get(f"http://{address}:8000/health", timeout=5, trust_env=False, verify=NO_TLS)
    created = world.client.create("front", template(world, address))
    assert "error" not in created, created
    with world.client.front("front") as caller:
        assert caller.get("/v1/models").json()["path"] == "/v1/models"
        world.rule("10.65.0.0/16")  # another subnetwork's range
        refused = caller.get("/v1/models")
        # 502 until the health checks have failed: on this machine a firewall lets in and hangs up.
        assert refused.status_code in {502, 503}
        assert refused.json()["error"]["type"] == "gateway_error"
    world.client.remove("front")
    world.clear()


@needs_proxy
def test_the_gateway_gets_no_request_that_it_answers_with_its_own_page(world):
    node = Node(own_address(42), 0)
    created = world.client.create("front", template(world, node.address, node.port), invokerIamDisabled=True)
    assert "error" not in created, created
    port = int(created["response"]["uri"].rpartition(":")[2])
    neighbour = request().replace(b"Connection: close\r\n", b"")

    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(st.one_of(*MALFORMED.values()))
    def check_malformed(malformed):
        node.seen.clear()
        response = answer(port, neighbour, malformed)
        assert response.startswith(b"HTTP/1.1 200 ")
        assert response.endswith(REFUSAL)
        assert [one.target for one in node.seen] == ["/v1/models"]

    @settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(WELL_FORMED)
    def check_odd(odd):
        response = answer(port, odd)
        assert b'{"node": ' in response or b'"type": "gateway_error"' in response

    check_malformed()
    check_odd()
    assert "<BADREQ>" not in repr(world.client.log("front"))
    node.close()
    world.client.remove("front")


ACCESS = {
    "one alone": ({"networkInterfaces": [{"network": "bezel"}]}, "regions/us-east4/subnetworks/bezel' does not exist"),
    "no such network": ({"networkInterfaces": [{"network": "none", "subnetwork": GATEWAY}]}, "networks/none' does not"),
    "no such subnetwork": ({"networkInterfaces": [INTERFACE | {"subnetwork": "none"}]}, "subnetworks/none' does not"),
    "another region": (
        {"networkInterfaces": [{"subnetwork": GATEWAY.replace("us-east4", "us-east5")}]},
        "does not exist in region us-east4",
    ),
    "another network": ({"networkInterfaces": [INTERFACE | {"network": "other"}]}, "does not belong to network"),
    "a small one": ({"networkInterfaces": [{"subnetwork": "small"}]}, "is a /27, less than /26"),
    "neither": ({"networkInterfaces": [{"tags": ["a"]}]}, "at least one of network and subnetwork"),
    "two": ({"networkInterfaces": [INTERFACE, INTERFACE]}, "only one network interface"),
    "connector": ({"connector": "c"}, "no Serverless VPC Access connectors"),
}


@pytest.mark.parametrize("case", ACCESS)
def test_a_leg_in_a_network_that_there_is_not_is_refused(world, case):
    access, text = ACCESS[case]
    answer = plain.post(
        f"{world.endpoint.base}{SERVICES}",
        params={"serviceId": "refused"},
        json={"template": template(world, "10.64.0.5", vpcAccess=access)},
        headers={"Authorization": world.client.http.headers["Authorization"]},
    )
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert text in error["message"]
    assert error["details"][0]["fieldViolations"][0]["field"].startswith("service.template.vpc_access")


@pytest.mark.parametrize("interface", [INTERFACE, {"network": "bezel", "subnetwork": "gateway"}])
def test_a_leg_in_a_network_is_shown_as_it_was_given(world, interface):
    access = {"egress": "PRIVATE_RANGES_ONLY", "networkInterfaces": [interface]}
    wanted = template(world, "10.64.0.5", vpcAccess=access)
    answer = world.client.post(SERVICES, {"template": wanted}, serviceId="shown", validateOnly=True).json()
    assert answer["response"]["template"]["vpcAccess"] == access


def test_another_image_runs_as_its_program_or_says_why_it_cannot():
    pulled = f"us-east4-docker.pkg.dev/{PROJECT}/hub/library/haproxy@sha256:{'0' * 64}"
    assert [program_of(image) for image in (pulled, "haproxy:2.6.33", "docker.io/vllm/vllm-openai:v0.32.0", "?")] == [
        "haproxy",
        "haproxy",
        "",
        "",
    ]
    spec = SimpleNamespace(command=("sh",), args=("-c", "x"))
    container = SimpleNamespace(spec=spec, environment={"A": "b", "PORT": "80"}, mounts={}, address="/s/1:8080")
    command = program(container, "sh")
    assert command.argv == ("sh", "-c", "x")
    assert [command.environment[name] for name in ("A", "PORT", "GATEWAY_ADDRESS")] == ["b", "8080", "unix@/s/1"]
    with pytest.raises(RevisionFailureError, match="no-such-proxy is not on PATH: run `make setup`"):
        program(container, "no-such-proxy")
    with pytest.raises(RevisionFailureError, match="by a command only"):
        program(SimpleNamespace(spec=SimpleNamespace(command=(), args=())), "sh")
