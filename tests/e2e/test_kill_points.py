"""A fixed dozen of the kills that `tools/measure/kills.py` tries one by one: each converges, and nothing is left.

Each victim, at calls of each operation. Where the most is at stake, at the service while it is made and deleted, a kill
stands alone; the others strike one stack through its life, so that the command after a kill is struck as well.
"""

import os
import subprocess
import sys
from itertools import groupby
from pathlib import Path

import pytest

from tests.support.e2e import as_written
from tests.support.e2e.kill_points import (
    COMMANDS,
    HOLD,
    Boundary,
    KillHarness,
    Point,
    begin,
    kill,
    kill_at_boundary,
    killed_run,
    leftovers,
)
from tests.support.e2e.rehearsal import SECONDS

SERVICES = "/run/v2/projects/bezel-local/locations/us-east4/services"
SERVICE = f"{SERVICES}/bezel-l4-qat"
RECOVER = "bezel local recover l4-qat"
ACCOUNTS = "/iam/v1/projects/bezel-local/serviceAccounts"
ACCOUNT = f"{ACCOUNTS}/bezel-l4-qat@bezel-local.iam.gserviceaccount.com"
FAULTS = "/localcloud/faults"
GRANTS = "/storage/v1/b/bezel-local-models/iam"
MODEL = "/storage/v1/b/bezel-local-models/o"
ALONE = (
    Point("up", "engine", Boundary("POST", SERVICES, 1), "after"),
    Point("up", "stand-in", Boundary("POST", SERVICES, 1), "after"),
    Point("destroy", "engine", Boundary("DELETE", SERVICE, 1), "after"),
)
IN_A_ROW = (
    Point("up", "engine", Boundary("POST", ACCOUNTS, 1), "before"),
    Point("up", "program", Boundary("PUT", GRANTS, 1), "after"),
    Point("up", "dynamic provider", Boundary("GET", MODEL, 1), "before"),
    Point("update", "command", Boundary("PATCH", SERVICE, 1), "before"),
    Point("update", "engine", Boundary("PATCH", SERVICE, 1), "after"),
    Point("update", "engine, two SIGINT", Boundary("GET", SERVICE, 2), "before"),
    Point("update", "localcloud", Boundary("PATCH", SERVICE, 1), "before"),
    Point("refresh", "engine", Boundary("GET", SERVICE, 1), "after"),
    Point("destroy", "localcloud", Boundary("DELETE", ACCOUNT, 1), "after"),
)


# The series below, which is long, kills at these boundaries and at others.
@pytest.mark.parametrize(
    "point",
    [ALONE[0], *(pytest.param(point, marks=pytest.mark.long) for point in ALONE[1:])],
    ids=lambda at: f"{at.operation}-{at.victim}-{at.when}-{at.boundary.method}",
)
def test_a_kill_at_this_boundary_converges_and_leaves_nothing(
    grounds: KillHarness, point: Point, tmp_path: Path
) -> None:
    rehearsal = grounds.copy(point.operation, tmp_path / "point")
    try:
        outcome = kill_at_boundary(rehearsal, point)
        assert outcome.problems == ()
        if point.victim == "engine":
            assert outcome.message.startswith("unlocked"), outcome.message
        # A plugin that died over something that was made costs no second command.
        assert outcome.message.startswith("itself: ") or (point.victim, point.when) != ("stand-in", "after")
    finally:
        rehearsal.stop_cloud()


@pytest.mark.long
@pytest.mark.timeout(600)  # some twenty runs of the engine, one after the other
def test_a_life_of_kills_ends_as_one_without_any(grounds: KillHarness, tmp_path: Path) -> None:
    rehearsal = grounds.copy("up", tmp_path / "life")
    seats, before = 8, ""
    try:
        for operation, points in groupby(IN_A_ROW, key=lambda point: point.operation):
            for point in points:
                if operation == "update":
                    seats -= 1
                    rehearsal.set("vllm.max-num-seqs", seats)
                text = killed_run(rehearsal, point)
                # An engine that only lost its command ends in order, and leaves no lock to the next one.
                assert before != "command" or "unlocking the stack" not in text, text
                before = point.victim
            # Of what was struck last, and of everything before it.
            repeated = rehearsal.local(COMMANDS[operation], "l4-qat")
            assert repeated.code == 0, repeated.text
            if operation == "update":
                assert f"--max-num-seqs={seats}" in rehearsal.outputs()["arguments"]
                again = rehearsal.local("preview", "l4-qat", "--", "--expect-no-changes")
                assert again.code == 0, again.text
        assert leftovers(rehearsal) == []
    finally:
        rehearsal.stop_cloud()


@pytest.mark.wide
def test_what_is_made_after_the_recovery_of_a_kill_is_found_by_the_next_up(
    grounds: KillHarness, tmp_path: Path
) -> None:
    rehearsal = grounds.copy("up", tmp_path / "point")
    try:
        with rehearsal.api() as api:
            point = Point("up", "engine", Boundary("POST", SERVICES, 1), "before")
            process = begin(rehearsal, api, point)
            kill(rehearsal, process, point)
            process.communicate(timeout=SECONDS)
            # As a kill leaves them that strikes while the engine writes them.
            attributes = rehearsal.cloud / "state" / ".pulumi" / "stacks" / "bezel" / "l4-qat.json.attrs"
            assert attributes.read_text()
            attributes.write_text("")
            first = rehearsal.local("recover", "l4-qat")
            api.delete(HOLD)
        assert (first.code, "was not created: " in first.text) == (0, True), first.text
        second = rehearsal.local("up", "l4-qat")
        assert (second.code, "created, now in the state: " in second.text) == (0, True), second.text
    finally:
        rehearsal.stop_cloud()


@pytest.mark.wide
def test_a_user_s_own_run_is_recovered_with_the_user_s_own_environment(grounds: KillHarness, tmp_path: Path) -> None:
    rehearsal = grounds.copy("up", tmp_path / "point")
    try:
        with rehearsal.api() as api:
            process = begin(rehearsal, api, ALONE[0])
            kill(rehearsal, process, ALONE[0])
            process.communicate(timeout=SECONDS)
            api.delete(HOLD)
        # From here on as with a project of Google's: nothing but the environment says where backend and cloud are.
        mine = rehearsal.variables()
        asked = rehearsal.bezel("recover", "l4-qat", **mine)
        assert (asked.code, "unlocks the stack: the engine of process" in asked.text) == (3, True), asked.text
        subprocess.run(
            [str(Path(sys.executable).parent / "pulumi"), "cancel", "--yes", "--stack", "l4-qat"],
            cwd=rehearsal.folder,
            env=os.environ | mine,
            capture_output=True,
            check=True,
        )
        first, second = (rehearsal.bezel("recover", "l4-qat", "--yes", **mine) for _ in range(2))
        assert (first.code, "created, now in the state: " in first.text) == (0, True), first.text
        assert (second.code, "recover l4-qat: unchanged" in second.text) == (0, True), second.text
    finally:
        rehearsal.stop_cloud()


@pytest.mark.wide
def test_what_exists_already_is_adopted_only_when_asked_for(grounds: KillHarness, tmp_path: Path) -> None:
    rehearsal = grounds.copy("up", tmp_path / "point")
    try:
        with rehearsal.api() as api:
            enable = "/serviceusage/v1/projects/bezel-local/services/iam.googleapis.com:enable"
            assert api.post(enable, json={}).is_success
            assert api.post(ACCOUNTS, json={"accountId": "bezel-l4-qat", "serviceAccount": {}}).is_success
        # The account was there before; the service is made by a run of the engine alone, which loses the answer.
        for name in ("serviceAccounts/bezel-l4-qat@", "services/bezel-l4-qat"):
            if name == "services/bezel-l4-qat":
                lost = {"when": "after", "method": "POST", "path": "/run/*/services", "count": 1}
                with rehearsal.api() as api:
                    assert api.post(FAULTS, json={"kind": "dropped-connections", "parameters": lost}).is_success
                assert as_written.run(rehearsal, "pulumi up", "l4-qat").code != 0
            refused = rehearsal.local("up", "l4-qat")
            assert (refused.code, "now in the state: " in refused.text) == (1, False), refused.text
            down = rehearsal.local("down", "l4-qat")
            assert (down.code, "Destroying" in down.text) == (1, False), down.text
            assert name in down.text
            assert f".venv/bin/{RECOVER} --adopt" in refused.text
            asked = as_written.run(rehearsal, as_written.command_in(down.text, f"{RECOVER} --adopt"), "l4-qat")
            assert (asked.code, "created, now in the state: " in asked.text) == (0, True), asked.text
        down = rehearsal.local("down", "l4-qat")
        assert down.code == 0, down.text
        assert leftovers(rehearsal) == []

        # Somebody else's is left alone, and there when the stack is gone.
        rehearsal.start_cloud()
        with rehearsal.api() as api:
            assert api.post(ACCOUNTS, json={"accountId": "bezel-l4-qat", "serviceAccount": {}}).is_success
        refused = rehearsal.local("up", "l4-qat")
        assert refused.code == 1, refused.text
        asked = as_written.run(rehearsal, as_written.command_in(refused.text, f"{RECOVER} --forget"), "l4-qat")
        assert (asked.code, "left alone" in asked.text) == (0, True), asked.text
        down = rehearsal.local("down", "l4-qat")
        assert down.code == 0, down.text
        rehearsal.start_cloud()
        with rehearsal.api() as api:
            assert api.get(f"{ACCOUNTS}/bezel-l4-qat@bezel-local.iam.gserviceaccount.com").is_success
    finally:
        rehearsal.stop_cloud()


@pytest.mark.wide
def test_a_stack_that_was_not_killed_has_nothing_to_recover(grounds: KillHarness, tmp_path: Path) -> None:
    rehearsal = grounds.copy("refresh", tmp_path / "point")
    try:
        run = rehearsal.local("recover", "l4-qat")
        assert (run.code, run.text) == (0, "l4-qat: no open changes\n")
        assert "earlier run" not in rehearsal.local("refresh", "l4-qat").text
    finally:
        rehearsal.stop_cloud()
