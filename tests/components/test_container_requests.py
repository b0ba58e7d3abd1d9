"""Requests to start, stop and restart a machine's container: the very script, asked by its metadata at the wire."""

import json

import pytest

from tests.support.components.fake_node import SECRET, Node

pytestmark = pytest.mark.slow
VERBS = {"start", "stop", "restart"}


@pytest.fixture
def node(tmp_path):
    node = Node(tmp_path)
    yield node
    node.close()


def request(number: int, verb: str) -> dict[str, str]:
    return {"id": f"{number:032x}", "verb": verb}


def ask(node, number: int, verb: str) -> dict:
    """What the machine tells once it has done a request."""
    node.ask(request(number, verb))
    return node.settle()


def done_steps(node) -> list[str]:
    """What was done to the container since the boot began, beside its first start."""
    return [call[1] for call in node.calls("docker") if call[1] in VERBS]


def test_a_container_is_stopped_started_and_restarted(node):
    """A container is stopped, started and restarted and the machine tells how it is."""
    node.use_real_curl()
    with node.running():
        node.until(lambda: node.waits)
        first = {"id": "", "verb": "", "result": "", "detail": "", "state": "running", "exit": 0, "restarts": 0}
        assert node.container == [{**first, "healthy": True, "at": node.container[0]["at"]}]
        stopped = ask(node, 1, "stop")
        assert stopped | request(1, "stop") == stopped
        assert (stopped["result"], stopped["state"], stopped["exit"]) == ("done", "exited", 137)
        assert not stopped["healthy"]
        for number, verb in ((2, "start"), (3, "restart")):
            began = len(node.container)
            report = ask(node, number, verb)
            assert (report["result"], report["state"], report["healthy"]) == ("done", "running", True)
            results = [each["result"] for each in node.container[began:] if each["id"] == report["id"]]
            assert results[0] == "running"
            assert results[-1] == "done"
        assert done_steps(node) == ["stop", "start", "restart"]
        assert [phase for phase, state, _ in node.reports if state == "failed"] == []


def test_a_container_that_ends_by_itself_is_told_too(node):
    with node.running():
        node.until(lambda: node.waits)
        (node.fake / "running").unlink()
        (node.fake / "state").write_text("exited 10 1")
        node.ask("")  # a look comes with any change, and once a minute
        report = node.settle()
        assert (report["state"], report["exit"], report["restarts"], report["healthy"]) == ("exited", 1, 10, False)
        assert report["id"] == ""
        assert done_steps(node) == []


# values of the attribute that are no request
REFUSED = {
    "no JSON": "stop",
    "a list": "[1]",
    "a text": '"stop"',
    "no id": '{"verb": "stop"}',
    "another verb": json.dumps({"id": "1" * 32, "verb": "rm"}),
    "a verb with words": json.dumps({"id": "1" * 32, "verb": "stop; reboot"}),
    "a verb that is none": json.dumps({"id": "1" * 32, "verb": ["stop"]}),
    "a short id": json.dumps({"id": "1", "verb": "stop"}),
    "an id with a line": json.dumps({"id": "1" * 32 + "\n", "verb": "stop"}),
    "an id that is a number": json.dumps({"id": int("1" * 32), "verb": "stop"}),
    "one thing too many": json.dumps({"id": "1" * 32, "verb": "stop", "container": "other"}),
}


def test_what_is_no_request_is_refused_and_the_next_one_is_done(node):
    with node.running():
        node.until(lambda: node.waits)
        for count, (name, value) in enumerate(REFUSED.items(), start=1):
            node.ask(value)
            assert node.settle()["id"] == "", name
            assert done_steps(node) == [], name
            assert (node.fake / "console").read_text().count("bezel-container is refused: it") == count, name
        assert ask(node, 1, "stop")["result"] == "done"


def test_a_request_is_done_once_also_after_a_reboot_and_another_id_again(node):
    with node.running():
        node.until(lambda: node.waits)
        ask(node, 1, "stop")
        node.ask(request(1, "stop"))
        node.settle()
        assert done_steps(node) == ["stop"]
    with node.running():  # the attribute is still there
        node.until(lambda: node.waits)
        assert done_steps(node) == []
        report = node.container[-1]
        assert report | request(1, "stop") == report
        assert (report["result"], report["state"], report["healthy"]) == ("done", "running", True)
        ask(node, 2, "stop")
        assert done_steps(node) == ["stop"]


def test_a_request_of_a_time_without_power_is_done_after_the_boot(node):
    """A request that came while the machine was off is done after its boot."""
    assert node.boot().returncode == 0
    node.ask(request(1, "stop"))
    with node.running():
        node.until(lambda: node.waits)
        assert (node.container[-1]["id"], node.container[-1]["state"]) == (request(1, "stop")["id"], "exited")


FAILURES = {
    "the command fails": (
        lambda node: node.fails("docker-start", 1, f"no such container, {SECRET}"),
        "docker start failed: no such container, ***",
    ),
    "the server ends": (
        lambda node: node.fails("docker-inspect", 0),
        "vLLM ended with exit code 2 before it served, 3 restarts (ValueError: no memory): nothing serves",
    ),
    "the server never answers": (
        lambda node: setattr(node, "healthy_after", 10**6),
        "vLLM does not answer /health after 5400 s (still compiling): nothing serves",
    ),
}


@pytest.mark.wide_cases("the server never answers")
@pytest.mark.parametrize("name", FAILURES)
def test_a_start_that_comes_to_nothing_is_reported_with_its_reason(node, name):
    """A start that comes to nothing is told with its reason and the next one may serve."""
    spoil, says = FAILURES[name]
    (node.fake / "logs").write_text("still compiling\n")
    with node.running():
        node.until(lambda: node.waits)
        ask(node, 1, "stop")
        spoil(node)
        if name == "the server ends":
            (node.fake / "logs").write_text("ValueError: no memory\n")
            (node.fake / "start.state").write_text("restarting 3 2")
        report = ask(node, 2, "start")
        assert (report["result"], report["detail"]) == ("failed", says)
        (node.fake / "start.state").unlink(missing_ok=True)
        node.healthy_after = 1
        assert ask(node, 3, "restart")["result"] == "done"
    assert SECRET not in json.dumps(node.container) + (node.fake / "console").read_text()
    assert [name for name, content in node.files().items() if SECRET.encode() in content] == []


def test_a_start_that_is_awaited_can_be_stopped(node):
    with node.running():
        node.until(lambda: node.waits)
        ask(node, 1, "stop")
        node.healthy_after = 10**6
        node.ask(request(2, "start"))
        node.until(lambda: node.container[-1]["detail"] == "waiting for /health")
        report = ask(node, 3, "stop")
        assert (report["id"], report["result"], report["state"]) == (request(3, "stop")["id"], "done", "exited")


def test_a_metadata_server_that_is_away_for_a_while_is_asked_again(node):
    node.use_real_curl()
    with node.running():
        node.until(lambda: node.waits)
        slept = len(node.slept())
        path = "/computeMetadata/v1/instance/attributes/?recursive=true&alt=json&wait_for_change=true&timeout_sec="
        node.broken[f"{path}60&last_etag=e1"] = (503, 2)
        node.ask("")
        node.settle()
        assert node.slept()[slept:] == [60, 60]
        assert ask(node, 1, "stop")["result"] == "done"
