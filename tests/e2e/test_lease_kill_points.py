"""One lease through a life of kills: whatever dies wherever, there is one machine afterwards, and none in the end.

The command after a kill is struck as well, up to three in a row; then one is let through, a further one has nothing to
do, and what is there is read from the cloud. Each call of the resources of a lease: see `tests/leases`.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.e2e.kill_points import Boundary, Point, killed_run, message_of
from tests.support.e2e.lease_harness import STACK, LeaseFaultHarness
from tests.support.e2e.rehearsal import Rehearsal

RESULTS = Path(__file__).parent.parent / "results" / "kills-engine-leases.json"
ZONES = "/tpu/v2alpha1/projects/bezel-local/locations"
FIRST, SECOND = (f"{ZONES}/us-east5-{letter}" for letter in "ab")
NAME = f"bezel-{STACK}"
ASK = Boundary("POST", f"{FIRST}/queuedResources", 1)
WAIT = Boundary("POST", f"{FIRST}/nodes/{NAME}:getGuestAttributes", 1)
DELETE = Boundary("DELETE", f"{FIRST}/queuedResources/{NAME}", 1)
DELETE_SECOND = Boundary("DELETE", f"{SECOND}/queuedResources/{NAME}", 1)
GONE = Boundary("GET", f"{SECOND}/queuedResources/{NAME}", 1)
LIFE = {
    "deploy": (
        Point("up", "engine", ASK, "after", STACK),
        Point("up", "dynamic provider", WAIT, "before", STACK),
    ),
    "replace, and move on": (
        Point("up", "engine", DELETE, "after", STACK),
        Point("up", "program", ASK, "before", STACK),
        Point("up", "dynamic provider", DELETE, "after", STACK),
    ),
    "destroy": (
        Point("destroy", "engine", DELETE_SECOND, "after", STACK),
        Point("destroy", "dynamic provider", GONE, "before", STACK),
    ),
}
TABLE = {
    "title": "Kills with the whole engine, of a leased machine",
    "document": "reliability",
    "provider": "the stand-in for networks and accounts; leases are requested over REST",
    "order": 22,
    "about": "One lease is deployed, replaced with no machine left in the first zone, and destroyed; each row kills "
    "(SIGKILL) a part at a call, and what the next command says of it stands beside. The command after a kill is "
    "struck as well, up to the last row of a step, after which one is let through. What is there then is read from the "
    "cloud: its requests and machines in all zones. A further `up` has nothing to do. Whether a change of another "
    "resource was open too, which the engine makes meanwhile, is chance, and left out here.",
    "command": ".venv/bin/pytest tests/e2e/test_lease_kill_points.py",
    "stamp": None,
    "columns": ["step", "victim", "boundary", "next command said", "after the step"],
    "rows": [],
    "notes": [],
}


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[LeaseFaultHarness]:
    rehearsal = Rehearsal.new(tmp_path / "checkout", tmp_path / "cloud")
    rehearsal.set("smoke", {"requests": 2, "concurrency": 2, "output_tokens": 4, "prompt_tokens": 32}, STACK)
    rehearsal.start_cloud()
    yield LeaseFaultHarness(rehearsal, "", seats=64)
    rehearsal.stop_cloud()


def _of_the_lease(text: str) -> str:
    messages = (re.sub(r"^\d+ changes? open$", "open changes", message) for message in message_of(text).split("; "))
    return "; ".join(message for message in messages if ": " not in message or message.endswith(f": {NAME}"))


@pytest.mark.long
@pytest.mark.timeout(600)  # some ten runs of the engine, one after the other
def test_whatever_is_killed_one_machine_is_left_and_none_in_the_end(stage: LeaseFaultHarness) -> None:
    rows: list[list[str]] = []

    def step(name: str, command: str) -> str:
        texts = [killed_run(stage.rehearsal, point) for point in LIFE[name]]
        last = stage.rehearsal.local(command, STACK)
        assert last.code == 0, last.text
        if command == "down":
            stage.rehearsal.start_cloud()
        after = stage.there()
        for point, text in zip(LIFE[name], [*texts[1:], last.text], strict=True):
            call = point.boundary
            nth = f" ({call.nth})" if call.nth > 1 else ""
            boundary = f"{point.when} {call.method} {call.path}{nth}"
            rows.append([name, point.victim, boundary, _of_the_lease(text) or "nothing", after])
        return last.text

    step("deploy", "up")
    assert stage.one_lease()
    # The machine that was asked for before the first kill is the very one that serves.
    assert stage.request_count() == 1
    stage.nothing_left()

    stage.need_a_lease()
    stage.add("lease-stock-out", zone="us-east5-a")
    step("replace, and move on", "up")
    assert stage.one_lease()
    assert all("/us-east5-b/" in name for names in stage.leases().values() for name in names)
    stage.clear()
    stage.nothing_left()

    step("destroy", "down")
    left = {kind: names for kind, names in stage.rehearsal.exists().items() if kind not in {"enabledApis", "objects"}}
    assert left == {"buckets": ["bezel-local-models"]}

    if os.environ.get("BEZEL_RECORD") == "1":
        RESULTS.write_text(json.dumps(TABLE | {"rows": rows}, indent=1, ensure_ascii=False) + "\n")
    again = f"look at why, then: BEZEL_RECORD=1 {TABLE['command']}"
    assert json.loads(RESULTS.read_text())["rows"] == rows, again
