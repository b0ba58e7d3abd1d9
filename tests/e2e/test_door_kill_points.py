"""A door for callers by key through kills of its making and its end: each run again converges, and no key is lost.

The command after a kill is struck as well, until the last kill of a step; then one is let through, and a preview has
nothing to do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.test_door import by_key, put_key
from tests.e2e.test_region_kill_points import killed_step, services
from tests.support.e2e.consistency import problems
from tests.support.e2e.kill_points import SMALL

if TYPE_CHECKING:
    from tests.support.e2e.rehearsal import Rehearsal

# Of parts that are made beside each other one is struck: whether another one was there then is chance.
SECRET = "*/secrets/bezel-stack-bezel-l4-qat-door-program"
DOOR = f"{services('us-east4')}/bezel-l4-qat-door"
LIFE: dict[str, tuple[Any, ...]] = {
    "keys on": (
        "up",
        ("engine", "after", "POST", "*/secrets"),
        ("localcloud", "before", "POST", f"{SECRET}:addVersion"),
        ("engine", "after", "POST", f"{SECRET}:addVersion"),
        ("localcloud", "before", "POST", services("us-east4")),
        ("stand-in", "after", "POST", services("us-east4")),
    ),
    "changed": (
        "update",
        ("engine", "before", "PATCH", DOOR),
        ("stand-in", "after", "PATCH", DOOR),
    ),
    "keys off": (
        "update",
        ("engine", "after", "DELETE", DOOR),
        ("localcloud", "before", "DELETE", "/storage/v1/b/bezel-local-bezel-l4-qat-door"),
        ("stand-in", "after", "DELETE", "/storage/v1/b/bezel-local-bezel-l4-qat-door"),
    ),
}


@pytest.mark.long
@pytest.mark.timeout(1800)  # some thirty runs of the engine, one after the other
def test_a_door_converges_after_each_kill_and_keeps_its_keys(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", SMALL)
    rehearsal.set("cost.max_hourly_usd", 2)
    made = rehearsal.local("up", "l4-qat")
    assert made.code == 0, made.text
    before = rehearsal.exists()

    rehearsal.set("access", {"keys": True})
    killed_step(rehearsal, "keys on", LIFE["keys on"], "l4-qat")
    key = put_key(rehearsal)

    rehearsal.set("labels.team", "speech")
    killed_step(rehearsal, "changed", LIFE["changed"], "l4-qat")
    assert by_key(rehearsal.outputs(), key).status_code == 200
    assert problems(rehearsal.cloud) == []

    rehearsal.set("labels.team", None)
    rehearsal.set("access", {"keys": False})
    killed_step(rehearsal, "keys off", LIFE["keys off"], "l4-qat")
    after = rehearsal.exists()
    assert {kind for kind in before if after.get(kind) != before[kind]} == set()
