"""The notice of a lease's end: the very script writes one entry before it, by a clock that the test sets."""

import json
from typing import Any

import pytest

from bezel_localcloud.services.logging.filters import parse_filter
from tests.support.components.fake_node import SECRET, TOKEN, Node

pytestmark = pytest.mark.slow
BEGIN = 1_800_000_000  # 2027-01-15T08:00:00Z
HOUR = 3600
WRITE = "/logging/v2/entries:write"


@pytest.fixture
def node(tmp_path):
    node = Node(tmp_path)
    node.attributes["bezel-end-notice"] = notice(4 * HOUR)
    node.set_clock(BEGIN)
    yield node
    node.close()


def notice(run_seconds: int) -> str:
    return json.dumps({"lease": "bezel-moe", "stack": "moe", "run_seconds": run_seconds})


def entries(node) -> list[dict[str, Any]]:
    return [entry for request in node.written for entry in request["entries"]]


def test_the_end_is_announced_once_30_minutes_before_it(node):
    """The end is told once 30 minutes before it and not after a reboot again."""
    with node.running():
        node.until(lambda: node.waits)
        node.set_clock(BEGIN + 4 * HOUR - 1801)
        assert entries(node) == []
        node.set_clock(BEGIN + 4 * HOUR - 1800)
        (entry,) = entries(node)
        node.set_clock(BEGIN + 4 * HOUR - 60)
    assert entry["severity"] == "WARNING"
    assert (entry["timestamp"], entry["jsonPayload"]["ends_at"]) == ("2027-01-15T11:30:00Z", "2027-01-15T12:00:00Z")
    assert entry["labels"] == {"lease": "bezel-moe", "stack": "moe"}
    assert entry["jsonPayload"]["zone"] == entry["resource"]["labels"]["location"] == "us-east5-a"
    assert node.boot().returncode == 0
    assert entries(node) == [entry]
    output = (node.fake / "calls").read_text() + (node.fake / "console").read_text()
    assert [value for value in (TOKEN, SECRET) if value in output] == []


def test_a_reboot_does_not_move_the_end(node):
    assert node.boot().returncode == 0
    node.set_clock(BEGIN + 3 * HOUR)
    with node.running():
        node.until(lambda: node.waits)
        assert entries(node) == []
        node.set_clock(BEGIN + 4 * HOUR - 1800)
        assert [entry["jsonPayload"]["ends_at"] for entry in entries(node)] == ["2027-01-15T12:00:00Z"]


def test_a_machine_without_the_attribute_writes_nothing(node):
    del node.attributes["bezel-end-notice"]
    with node.running():
        node.until(lambda: node.waits)
        node.set_clock(BEGIN + 4 * HOUR)
        assert node.written == []
    assert "notice" not in (node.fake / "console").read_text()


def test_a_short_lease_tells_its_end_in_its_last_quarter(node):
    node.attributes["bezel-end-notice"] = notice(600)
    with node.running():
        node.until(lambda: node.waits)
        node.set_clock(BEGIN + 449)
        assert entries(node) == []
        node.set_clock(BEGIN + 450)
        assert len(entries(node)) == 1


def test_an_end_that_comes_during_the_boot_is_told_too(node):
    node.attributes["bezel-end-notice"] = notice(60)
    node.healthy_after = 8  # looks, every 10 s
    assert node.boot().returncode == 0
    assert [entry["jsonPayload"]["ends_at"] for entry in entries(node)] == ["2027-01-15T08:01:00Z"]
    console = (node.fake / "console").read_text()
    assert console.index("the notice of the end of the lease is written") < console.index("healthy done")


def test_a_refused_entry_is_tried_again_and_is_the_same_entry(node):
    node.use_real_curl()
    node.broken[WRITE] = (503, 2)
    with node.running():
        node.until(lambda: node.waits)
        for seconds in (0, 60, 120, 180):
            node.set_clock(BEGIN + 4 * HOUR - 1800 + seconds)
        first, second, third = node.written
    assert first == second == third
    console = (node.fake / "console").read_text()
    assert "attempt 2 of 10\n(HTTP 503 refused for a test)" in console
    assert "the notice of the end of the lease is written" in console


def test_an_entry_that_is_refused_for_good_is_given_up(node):
    """An entry that is refused for good is given up and the machine serves on."""
    node.broken[WRITE] = (403, 99)
    with node.running():
        node.until(lambda: node.waits)
        for seconds in range(0, 11 * 60, 60):
            node.set_clock(BEGIN + 4 * HOUR - 1800 + seconds)
        assert len(node.written) == 10
        node.ask({"id": f"{1:032x}", "verb": "stop"})
        assert node.settle()["result"] == "done"
    console = (node.fake / "console").read_text()
    assert "after 10 attempts no\nalert opens before the end; give the node's service account roles/logging." in console
    assert [state for _, state, _ in node.reports if state == "failed"] == []


WRONG = {"no JSON": "4h", "a list": "[1]", "no stack": '{"lease": "a", "run_seconds": 600}'}


@pytest.mark.parametrize("name", WRONG)
def test_an_attribute_that_is_no_notice_is_reported_with_the_others(node, name):
    node.attributes |= {"bezel-end-notice": WRONG[name], "bezel-device": "abacus"}
    assert node.boot().returncode == 1
    for attribute in ("bezel-end-notice", "bezel-device"):
        assert f"{attribute} is" in node.detail("network")


def test_the_entry_can_be_found_by_stack_and_lease(node):
    with node.running():
        node.until(lambda: node.waits)
        node.set_clock(BEGIN + 4 * HOUR)
        (entry,) = entries(node)
    assert parse_filter('labels.stack="moe" AND jsonPayload.event="lease-ends"').holds(entry)
    assert not parse_filter('labels.stack="other"').holds(entry)
