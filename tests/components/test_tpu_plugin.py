"""The resources of a lease in the process that the engine starts: found by name, and told without a traceback."""

import os
import time
from collections.abc import Iterator

import grpc
import pytest

from bezel_components.providers.tpu_node import TpuNodeProvider
from bezel_components.providers.tpu_request import TpuRequestProvider
from tests.support.leases.fake_lease_api import Zone, lease_api_serving
from tests.support.leases.harness import point_at
from tests.support.leases.stack import Stack
from tests.support.smoke.plugin import plugin_running

pytestmark = pytest.mark.slow  # a process of its own
FIRST, SECOND = "us-east5-a", "europe-west4-a"


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    with lease_api_serving() as world:
        point_at(world, monkeypatch)
        world.now = time.time()  # the process has a clock of its own
        at_once = {"queue_seconds": 0, "provision_seconds": 0, "boot_seconds": 0, "delete_seconds": 0}
        world.zones = {zone: Zone(**at_once) for zone in (FIRST, SECOND)}
        yield Stack(world, "queued_resource")


def test_a_lease_is_requested_and_waited_for_and_a_refusal_reads_well(stack: Stack) -> None:
    environment = {key: value for key, value in os.environ.items() if key.startswith("GOOGLE_")}
    requests, nodes, inputs = TpuRequestProvider(), TpuNodeProvider(), stack.inputs()
    with plugin_running(environment) as plugin:
        assert [one.property for one in plugin.check(requests, inputs | {"name": "No"}).failures] == ["name"]
        made = plugin.create(requests, inputs)
        props = {"request": made["asked"], "former_zones": [], "renew": False, "hourly_usd": {FIRST: 5.4}, "port": 8000}
        node = plugin.create(nodes, inputs | props)
        assert (node["state"], node["zone"], node["cost"]["at_end_usd"]) == ("active", FIRST, 21.6)
        assert plugin.diff(nodes, node, inputs | props) == "DIFF_NONE"
        assert any(f"{FIRST}: requested" in line.message for line in plugin.engine.logged)
        plugin.delete(requests, made)
        assert stack.world.stored_leases() == []
        for zone in stack.world.zones.values():
            zone.refusal = (400, "FLEX_START provisioning model is not supported")
        with pytest.raises(grpc.RpcError) as caught:
            plugin.create(requests, inputs)
    message = str(caught.value.details())  # type: ignore[attr-defined]
    assert f"{FIRST}: 400 TEST: FLEX_START provisioning model is not supported" in message
    assert "Traceback" not in message
    assert "File " not in message
