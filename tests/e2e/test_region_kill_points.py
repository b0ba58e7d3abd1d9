"""Two regions behind an address, and a lease with a fallback, through lives of kills: each run again converges.

The command after a kill is struck as well, until the last kill of a step; then one is let through, and a preview has
nothing to do. Calls are made beside each other, so the boundaries of a step are in an order that no chance changes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.e2e.consistency import problems
from tests.support.e2e.kill_points import Boundary, Point, killed_run
from tests.support.e2e.regions import DOMAIN, OTHER_DOMAIN, SMOKE, ZONE, A, B, C, RegionsStack

if TYPE_CHECKING:
    from tests.support.e2e.rehearsal import Rehearsal

RESULTS = Path(__file__).parent.parent / "results" / "kills-engine-regions.json"
TABLE: dict[str, Any] = {
    "title": "Kills with the whole engine, of several regions, an address and a fallback",
    "document": "reliability",
    "provider": "the stand-in; leases are requested over REST",
    "order": 23,
    "about": "Two regions behind an address are deployed, get another domain, another region in place of the "
    "first, and are destroyed; a lease with a fallback is deployed and destroyed. Each row kills (SIGKILL) a part at a "
    "call. The command after a kill is struck as well, up to the last row of a step, after which one is let through. "
    "Then a preview has nothing to do, and the address answers; after a destroy nothing of the stack is left.",
    "command": ".venv/bin/pytest tests/e2e/test_region_kill_points.py",
    "stamp": None,
    "columns": ["step", "victim", "boundary", "converged"],
    "rows": [],
    "notes": [],
}
LEASE_STACK = "v6e1-12b"
FALLBACK = {"accelerator": "nvidia-l4", "region": A, "model": "gemma-4-12b-it-qat-w4a16"}
PARENT = "/projects/bezel-local"
GLOBAL = f"*{PARENT}/global"
MANAGER = f"*{PARENT}/locations/global"
CHANGES = f"*{PARENT}/managedZones/{ZONE}/changes"


def services(region: str) -> str:
    return f"/run/v2{PARENT}/locations/{region}/services"


def requests(name: str = "") -> str:
    return f"*{PARENT}/locations/us-east5-a/queuedResources{name}"


# A plugin outlives its engine and repeats a call that was lost, so a kill before a call is followed by one at another.
# A command repeats itself where the stand-in dies over what was made: so the stand-in is the last victim of a step.
# Step -> its operation, and (victim, before or after the call, method, path) of each kill.
LIFE = {
    "deploy": (
        "up",
        ("engine", "after", "POST", services(A)),
        ("localcloud", "before", "POST", services(B)),
        ("program", "after", "POST", services(B)),
        ("engine", "before", "POST", f"{GLOBAL}/addresses"),
        ("engine", "before", "POST", f"{GLOBAL}/targetHttpsProxies"),
        ("localcloud", "before", "POST", f"{GLOBAL}/forwardingRules"),
        ("engine", "after", "POST", f"{GLOBAL}/forwardingRules"),
        ("stand-in", "after", "POST", CHANGES),
    ),
    "another domain": (
        "update",
        ("engine", "after", "PATCH", f"{services(A)}/*"),
        ("engine", "before", "PATCH", f"{services(B)}/*"),
        ("engine", "after", "POST", f"{MANAGER}/dnsAuthorizations"),
        ("localcloud", "before", "POST", f"{MANAGER}/certificates"),
        ("engine", "after", "POST", f"{MANAGER}/certificates"),
        ("engine", "after", "POST", f"{MANAGER}/certificateMaps/*/certificateMapEntries"),
        ("engine", "after", "DELETE", f"{MANAGER}/certificates/*"),
        ("stand-in", "after", "DELETE", f"{MANAGER}/dnsAuthorizations/*"),
    ),
    "another region": (
        "update",
        ("engine", "after", "POST", services(C)),
        ("engine", "before", "POST", f"*{PARENT}/regions/{C}/networkEndpointGroups"),
        ("engine", "after", "PUT", f"{GLOBAL}/backendServices/*"),
        ("stand-in", "after", "DELETE", f"{services(A)}/*"),
    ),
    "destroy": (
        "destroy",
        ("engine", "after", "DELETE", f"{GLOBAL}/forwardingRules/*"),
        ("engine", "before", "DELETE", f"{GLOBAL}/targetHttpsProxies/*"),
        ("engine", "after", "DELETE", f"{GLOBAL}/backendServices/*"),
        ("localcloud", "before", "DELETE", f"{services(C)}/*"),
        ("stand-in", "after", "DELETE", f"{services(C)}/*"),
    ),
}
LEASE_LIFE = {
    "deploy a lease with a fallback": (
        "up",
        ("engine", "after", "POST", services(A)),
        ("stand-in", "before", "POST", services("us-east5")),
        ("dynamic provider", "after", "POST", requests()),
    ),
    "destroy a lease with a fallback": (
        "destroy",
        ("engine", "after", "DELETE", requests("/*")),
        ("engine", "after", "DELETE", f"{services(A)}/*"),
    ),
}


def killed_step(rehearsal: Rehearsal, step: str, kills: tuple[Any, ...], stack: str) -> list[list[str]]:
    """Strike a step at each of its boundaries, run it once more, and return its rows."""
    operation, *points = kills
    for victim, when, method, path in points:
        rehearsal.start_cloud()  # where it was the victim before
        killed_run(rehearsal, Point(operation, victim, Boundary(method, path, 1), when, stack))
    if operation != "destroy":
        last = rehearsal.local("up", stack)
        assert last.code == 0, last.text
        again = rehearsal.local("preview", stack, "--", "--expect-no-changes")
        assert again.code == 0, again.text
    return [[step, victim, f"{when} {method} {path}", "yes"] for victim, when, method, path in points]


def check_rows(rows: list[list[str]]) -> None:
    """Hold the rows to those that are recorded."""
    steps = {row[0] for row in rows}
    recorded = json.loads(RESULTS.read_text())["rows"] if RESULTS.exists() else []
    if os.environ.get("BEZEL_RECORD") == "1":
        order = [*LIFE, *LEASE_LIFE]
        recorded = sorted([row for row in recorded if row[0] not in steps] + rows, key=lambda row: order.index(row[0]))
        RESULTS.write_text(json.dumps(TABLE | {"rows": recorded}, indent=1, ensure_ascii=False) + "\n")
    again = f"look at why, then: BEZEL_RECORD=1 {TABLE['command']}"
    assert [row for row in recorded if row[0] in steps] == rows, again


@pytest.mark.long
@pytest.mark.timeout(1800)  # some forty runs of the engine, one after the other
def test_two_regions_and_their_address_converge_after_each_kill(rehearsal: Rehearsal) -> None:
    stack = RegionsStack(rehearsal)
    stack.prepare(region=None, regions=[A, B], address={"domain": DOMAIN, "zone": ZONE})
    rows = killed_step(rehearsal, "deploy", LIFE["deploy"], stack.name)
    assert stack.client().ask_once() == 200

    rehearsal.set("address.domain", OTHER_DOMAIN)
    rehearsal.set("vllm.max-num-seqs", 7)
    rows += killed_step(rehearsal, "another domain", LIFE["another domain"], stack.name)
    assert stack.client(OTHER_DOMAIN).ask_once() == 200

    rehearsal.set("regions", [B, C])
    rows += killed_step(rehearsal, "another region", LIFE["another region"], stack.name)
    assert stack.serving_regions() == {B, C}
    assert stack.client(OTHER_DOMAIN).ask_once() == 200

    rows += killed_step(rehearsal, "destroy", LIFE["destroy"], stack.name)
    stack.destroy()
    rehearsal.stop_cloud()
    assert problems(rehearsal.cloud) == []
    check_rows(rows)


@pytest.mark.long
@pytest.mark.timeout(600)  # some ten runs of the engine, one after the other
def test_a_lease_with_a_fallback_converges_after_each_kill(rehearsal: Rehearsal) -> None:
    for name, value in {
        "smoke": SMOKE,
        "cost": None,
        "lease": {"zones": [{"zone": "us-east5-a"}]},
        "fallback": FALLBACK | {"vllm": {"max-num-seqs": 32}},
    }.items():
        rehearsal.set(name, value, LEASE_STACK)
    rehearsal.start_cloud()
    rows = []
    for step, kills in LEASE_LIFE.items():
        rows += killed_step(rehearsal, step, kills, LEASE_STACK)
    gone = rehearsal.local("down", LEASE_STACK)
    assert gone.code == 0, gone.text
    rehearsal.start_cloud()
    left = {kind: names for kind, names in rehearsal.exists().items() if kind not in {"enabledApis", "objects"}}
    assert left == {"buckets": ["bezel-local-models"]}
    check_rows(rows)
