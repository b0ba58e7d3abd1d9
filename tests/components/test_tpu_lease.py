"""The two resources of a lease as the engine calls them, over both back ends, and the component that declares them."""

import copy
import math
import pickle
import sys
from collections.abc import Iterator
from importlib.machinery import ModuleSpec
from typing import Any

import pulumi
import pytest
from pulumi.output import Unknown

from bezel.leases.requests import ZoneChoice
from bezel_components.base.dynamic import DeployError
from bezel_components.providers.tpu_node import TpuNodeProvider
from bezel_components.providers.tpu_request import TpuRequestProvider
from bezel_components.tpu_lease import TpuLease, TpuLeaseArgs
from tests.support.components.fake_engine import declare
from tests.support.leases.fake_lease_api import Zone, answers, lease_api_serving
from tests.support.leases.harness import SUBNETWORKS, LeaseHarness, body_of, point_at
from tests.support.leases.stack import Stack
from tests.support.rest.fake_google import Answer

FIRST, SECOND = "us-east5-a", "europe-west4-a"


@pytest.fixture(params=["queued_resource", "flex_start_vm"])
def stack(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stack]:
    with lease_api_serving() as world:
        point_at(world, monkeypatch)
        yield Stack(world, request.param)


def remaining(stack: Stack) -> list[Any]:
    return LeaseHarness(stack.world, stack.kind).remaining()  # type: ignore[arg-type]


@pytest.mark.slow
def test_up_leases_and_states_the_cost_and_an_unchanged_up_does_nothing(stack: Stack) -> None:
    """`up` leases says what and what it costs and an unchanged up does nothing."""
    stack.up()
    assert stack.node is not None
    assert (stack.node["zone"], stack.node["state"], stack.node["address"]) == (FIRST, "active", "10.64.0.1")
    assert stack.node["cost"]["usd_per_hour"] == 5.4
    assert stack.node["cost"]["at_end_usd"] == 21.6
    stack.did.clear()
    stack.up()
    assert stack.did == ["node diff"]
    stack.down()
    assert remaining(stack) == []


@pytest.mark.slow
def test_an_unknown_price_is_unknown(stack: Stack) -> None:
    stack.world.zones[FIRST] = Zone(refusal=(400, "FLEX_START is not supported"))
    stack.up()
    assert stack.node is not None
    assert stack.node["zone"] == SECOND
    cost = {key: stack.node["cost"][key] for key in ("usd_per_hour", "so_far_usd", "at_end_usd")}
    assert set(cost.values()) == {"unknown"}


@pytest.mark.slow
def test_an_optional_lease_that_is_refused_is_requested_by_the_next_up(
    stack: Stack, capsys: pytest.CaptureFixture[str]
) -> None:
    for zone in (FIRST, SECOND):
        stack.world.zones[zone] = Zone(refusal=(400, "FLEX_START is not supported"))
    stack.up(optional=True)
    assert stack.node is not None
    assert "The fallback serves until then; the next deploy requests it" in capsys.readouterr().err
    for _ in range(2):
        assert {key: stack.node[key] for key in ("state", "granted", "lease", "address")} == {
            "state": "not granted",
            "granted": False,
            "lease": "",
            "address": "",
        }
        stack.refresh()
    stack.world.zones[SECOND] = Zone()
    stack.up(optional=True)
    assert (stack.node["state"], stack.node["granted"], stack.node["zone"]) == ("active", True, SECOND)
    stack.did.clear()
    stack.up(optional=True)
    assert stack.did == ["node diff"]
    stack.down()
    assert remaining(stack) == []


@pytest.mark.slow
def test_a_lease_without_a_fallback_that_is_refused_fails_the_up(stack: Stack) -> None:
    for zone in (FIRST, SECOND):
        stack.world.zones[zone] = Zone(refusal=(400, "FLEX_START is not supported"))
    with pytest.raises(DeployError, match="none of 2 zones granted it"):
        stack.up()


@pytest.mark.slow
def test_a_change_of_the_body_is_a_replacement_that_names_the_field(stack: Stack) -> None:
    stack.up()
    assert stack.request is not None
    diff = stack.requests.diff("r", stack.request, stack.inputs(image="vllm@sha256:2"))
    assert diff.delete_before_replace
    queued = "body.tpu.nodeSpec[0].node.metadata.bezel-image"
    named = {"queued_resource": queued, "flex_start_vm": 'body.metadata.items["bezel-image"].value'}
    assert diff.replaces == [named[stack.kind]]
    stack.up(image="vllm@sha256:2")
    assert [lease.number for lease in remaining(stack)] == [2]


@pytest.mark.slow
def test_a_change_of_the_zones_is_an_update_that_keeps_the_lease(stack: Stack) -> None:
    stack.up()
    assert stack.request is not None
    diff = stack.requests.diff("r", stack.request, stack.inputs(zones=(SECOND,)))
    assert (diff.changes, diff.replaces) == (True, [])
    stack.up(zones=(SECOND,))
    assert [lease.zone for lease in remaining(stack)] == [FIRST]
    stack.down()
    assert remaining(stack) == []


@pytest.mark.slow
def test_what_is_not_known_yet_passes_the_check_and_differs(stack: Stack) -> None:
    stack.up()
    assert stack.request is not None
    news = stack.inputs()
    news["subnetworks"] = Unknown()
    news["body"]["labels"] = Unknown()
    assert stack.requests.check({}, news).failures == []
    diff = stack.requests.diff("r", stack.request, news)
    assert "subnetworks" in diff.replaces
    assert "body.labels" in diff.replaces
    unchanged = stack.requests.diff("r", stack.request, stack.inputs())
    assert (unchanged.changes, unchanged.replaces) == (False, [])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "key", "message"),
    [
        ({"name": "Bezel_1"}, "name", "begin with a letter"),
        ({"run_seconds": 300.0}, "run_seconds", "between 10 minutes and 7 days"),
        ({"run_seconds": 8 * 86400.0}, "run_seconds", "between 10 minutes and 7 days"),
        ({"zones": []}, "zones", "List at least one"),
        ({"zones": [{"zone": "us-west1-c", "patience_seconds": 60.0}]}, "zones", "us-west1-c has no subnetwork"),
        ({"zones": [{"zone": FIRST, "patience_seconds": 0.0}]}, "zones", "patience 0 s"),
        ({"zones": [{"zone": FIRST, "patience_seconds": 60.0}] * 2}, "zones", "listed twice"),
        ({"boot_deadline_seconds": 0.0}, "boot_deadline_seconds", "Set it above 0"),
    ],
)
def test_bad_input_is_found_before_anything_is_asked_for(
    stack: Stack, change: dict[str, Any], key: str, message: str
) -> None:
    failures = stack.requests.check({}, stack.inputs() | change).failures
    assert [(one.property, message in one.reason) for one in failures] == [(key, True)]
    assert stack.world.log == []


def test_a_machine_waits_two_hours_at_most_and_a_queued_resource_longer(stack: Stack) -> None:
    news = stack.inputs()
    news["zones"] = [{"zone": FIRST, "patience_seconds": 10800.0}]
    failures = [one.property for one in stack.requests.check({}, news).failures]
    assert failures == (["zones"] if stack.kind == "flex_start_vm" else [])


@pytest.mark.slow
def test_a_lease_that_ended_is_reported_and_not_bought_again(stack: Stack, capfd: pytest.CaptureFixture[str]) -> None:
    stack.up()
    stack.world.advance(15000)
    stack.refresh()
    assert stack.request is not None
    assert stack.node is not None
    assert stack.node["state"] == "expired"
    # Compute leaves nothing of a machine that ended: only the node's record knows when its end was.
    assert stack.request["state"] == ("expired" if stack.kind == "queued_resource" else "gone")
    assert stack.node["cost"]["so_far_usd"] == 21.6
    stack.did.clear()
    stack.up()
    assert stack.did == ["node diff"]
    output = capfd.readouterr().err
    assert f"ended at {stack.node['ends_at']}: nothing serves" in output
    assert "another one costs 21.60 USD for 4 h; set lease.renew: true to buy it" in output
    assert len(stack.world.leases) == 1


@pytest.mark.slow
def test_that_a_lease_is_over_is_recorded_once_and_nothing_is_bought(stack: Stack) -> None:
    stack.up()
    stack.world.advance(15000)
    stack.did.clear()
    stack.up()
    assert stack.node is not None
    assert (stack.node["state"], stack.did) == ("expired", ["node diff", "node update"])
    stack.did.clear()
    stack.up()
    assert stack.did == ["node diff"]
    assert len(stack.world.leases) == 1


@pytest.mark.slow
def test_a_lease_that_was_taken_away_is_not_said_to_have_reached_its_end(
    stack: Stack, capfd: pytest.CaptureFixture[str]
) -> None:
    stack.world.zones[FIRST] = Zone(preempted_seconds=6000)
    stack.up()
    assert stack.node is not None
    stack.world.advance(7000)
    stack.up()
    assert f"ended before its planned end {stack.node['ends_at']}: nothing serves" in capfd.readouterr().err


@pytest.mark.slow
def test_a_request_without_a_record_exists_only_if_a_zone_has_it(stack: Stack) -> None:
    """What a recovery asks after a kill: its inputs are all that is known."""
    inputs = stack.inputs()
    assert stack.requests.read("r", inputs).id == ""
    stack.up()
    assert stack.request is not None
    read = stack.requests.read("r", inputs)
    assert (read.id, read.outs["state"]) == ("r", "asked")
    # Another moment, the same lease: whoever waits for it looks once more.
    assert read.outs["asked"].partition("@")[0] == stack.request["asked"].partition("@")[0]
    assert read.outs["former_zones"] == []


@pytest.mark.slow
def test_with_renew_it_is_bought_again_and_is_another_lease(stack: Stack, capfd: pytest.CaptureFixture[str]) -> None:
    stack.up()
    assert stack.node is not None
    first = stack.node["lease"]
    stack.world.advance(15000)
    stack.up(renew=True)
    assert "lease.renew is true: this deploy buys it" in capfd.readouterr().err
    assert (stack.node["state"], stack.node["lease"] == first) == ("active", False)
    assert [lease.number for lease in remaining(stack)] == [2]


@pytest.mark.slow
def test_a_lease_that_went_before_its_end_keeps_its_last_cost(stack: Stack) -> None:
    """A lease that went before its end is gone and keeps what was reckoned last."""
    stack.up()
    assert stack.node is not None
    cost = stack.node["cost"]
    stack.world.leases[0].deleted = stack.world.now
    stack.world.advance(60)
    stack.refresh()
    assert (stack.node["state"], stack.node["cost"]) == ("gone", cost)


@pytest.mark.slow
def test_one_lease_too_many_is_previewed_and_deleted(stack: Stack, capfd: pytest.CaptureFixture[str]) -> None:
    """One lease too many is reported by the preview and deleted by the deploy."""
    stack.world.zones[SECOND] = Zone(queue_seconds=0, provision_seconds=0)
    stack.up()
    serving = remaining(stack)[0]
    twin = copy.deepcopy(serving)
    twin.zone, twin.number, twin.created = SECOND, 9, stack.world.now
    stack.world.take(twin)
    stack.up()
    assert "exists more than once" in capfd.readouterr().err
    assert remaining(stack) == [serving]


@pytest.mark.slow
def test_without_a_line_to_google_the_preview_warns_and_changes_nothing(
    stack: Stack, capfd: pytest.CaptureFixture[str]
) -> None:
    stack.up()
    stack.world.faults.append(answers(10**9, Answer(reset=True)))
    assert stack.node is not None
    assert not stack.nodes.diff("n", stack.node, stack.node).changes
    assert "its state is unknown, as it cannot be read" in capfd.readouterr().err
    with pytest.raises(DeployError, match=r"roles/tpu\.viewer"):
        stack.refresh()


@pytest.mark.slow
def test_only_an_error_that_ends_the_deploy_shortens_tracebacks(stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    stack.up()
    stack.world.faults.append(answers(10**9, Answer(reset=True)))
    assert stack.node is not None
    with monkeypatch.context() as plugin:
        plugin.setattr(sys.modules["__main__"], "__spec__", ModuleSpec("pulumi.dynamic.__main__", None))
        assert not stack.nodes.diff("n", stack.node, stack.node).changes
        assert not hasattr(sys, "tracebacklimit")
        with pytest.raises(DeployError):
            stack.refresh()
        assert sys.tracebacklimit == 0
        del sys.tracebacklimit


@pytest.mark.slow
def test_a_wait_that_failed_is_gone_on_with(stack: Stack) -> None:
    stack.world.zones[FIRST] = Zone(provision_seconds=math.inf)
    with pytest.raises(DeployError, match="Repair: run the same command again"):
        stack.up()
    assert stack.request is not None
    stack.world.zones[FIRST].provision_seconds = stack.world.now - stack.world.leases[0].created + 30
    stack.up()
    assert len(stack.world.leases) == 1


def test_nothing_of_a_provider_stands_in_the_state_but_its_name() -> None:
    for provider in (TpuRequestProvider(), TpuNodeProvider()):
        assert vars(provider) == {}
        assert len(pickle.dumps(provider)) < 150


def test_the_component_declares_the_request_before_the_wait() -> None:
    """The component declares the request before the wait and puts out what the lease is."""

    def program() -> None:
        args = TpuLeaseArgs(
            project="acme",
            name="bezel-v6e4",
            stack="v6e4",
            back_end="queued_resource",
            zones=(ZoneChoice(FIRST, 60.0),),
            subnetworks=SUBNETWORKS,
            body=body_of("queued_resource"),
            hourly_usd={FIRST: 5.4, SECOND: None},
            run_seconds=14400,
        )
        TpuLease("lease", args, pulumi.ResourceOptions())

    made = declare(program)
    request, node = made.one("components:TpuRequest"), made.one("components:TpuNode")
    component = made.one("bezel:lease:TpuLease")
    assert made.waits_for(node, request)
    assert not made.waits_for(request, node)
    assert {request.parent, node.parent} == {component.urn}
    assert component.outputs is not None
    assert set(component.outputs) == {"lease", "zone", "state", "address", "ends_at", "cost"}
    assert node.inputs["hourly_usd"] == {FIRST: 5.4}
