"""Kills while a stack begins and ends to keep figures: the next run finds what was made, and nothing is left."""

from pathlib import Path

import pytest

from bezel.planner.team.series_labels import collector_secret
from tests.support.e2e.kill_points import Boundary, KillHarness, Point, killed_run, leftovers
from tests.support.e2e.rehearsal import SECRETS

SERVICE = "/run/v2/projects/bezel-local/locations/us-east4/services/bezel-l4-qat"
SECRET = f"{SECRETS}/{collector_secret('bezel-l4-qat')}"
ON = (
    Point("update", "engine", Boundary("POST", SECRETS, 1), "after"),
    Point("update", "stand-in", Boundary("POST", f"{SECRET}:addVersion", 1), "after"),
    Point("update", "localcloud", Boundary("POST", f"{SECRET}:setIamPolicy", 1), "after"),
    Point("update", "engine", Boundary("PATCH", SERVICE, 1), "after"),
)
OFF = (Point("update", "engine", Boundary("DELETE", SECRET, 1), "after"),)


@pytest.mark.long
@pytest.mark.timeout(600)  # ten runs of the engine, one after the other
def test_kills_while_figures_are_switched_on_and_off_converge(grounds: KillHarness, tmp_path: Path) -> None:
    rehearsal = grounds.copy("update", tmp_path / "life")
    try:
        rehearsal.set("cost", {"max_hourly_usd": 2})  # the collector has its price
        for points, kept, containers in ((ON, True, 2), (OFF, False, 1)):
            rehearsal.set("observability", {"metrics": kept})
            for point in points:
                rehearsal.start_cloud()  # the one before may have been it
                killed_run(rehearsal, point)
            again = rehearsal.local("up", "l4-qat")
            assert again.code == 0, again.text
            unchanged = rehearsal.local("preview", "l4-qat", "--", "--expect-no-changes")
            assert unchanged.code == 0, unchanged.text
            with rehearsal.api() as api:
                assert len(api.get(SERVICE).json()["template"]["containers"]) == containers
                assert api.get(SECRET).status_code == (200 if kept else 404)
        gone = rehearsal.local("down", "l4-qat")
        assert gone.code == 0, gone.text
        assert leftovers(rehearsal) == []
    finally:
        rehearsal.stop_cloud()
