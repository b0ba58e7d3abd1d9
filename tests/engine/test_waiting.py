"""What the engine waits for is shown where nothing happens, and nothing is shown where something does."""

import json
from pathlib import Path
from typing import Any

import pytest

from bezel.engine.run.waiting import QUIET_SECONDS, Waiting

SERVICE = "urn:pulumi:l4::bezel::bezel:cloudrun:Gpu$gcp:cloudrunv2/service:Service::service-service"
BUCKET = "urn:pulumi:l4::bezel::gcp:storage/bucket:Bucket::weights"


class Scene:
    """An event log that is written while the clock is moved by hand."""

    def __init__(self, folder: Path) -> None:
        self.file, self.time, self.shown = folder / "events.jsonl", 0.0, []
        self.waiting = Waiting(self.file, lambda: self.time, self.shown.append)

    def write(self, kind: str, urn: str, op: str = "update") -> None:
        with self.file.open("a") as file:
            file.write(json.dumps({kind: {"metadata": {"urn": urn, "op": op}}}) + "\n")

    def after(self, seconds: float) -> list[str]:
        """What is shown that many seconds later, looking every second."""
        self.shown.clear()
        for _ in range(int(seconds)):
            self.time += 1
            self.waiting.look()
        return list(self.shown)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_long_wait_is_told_once_a_minute_with_what_is_awaited(scene: Scene) -> None:
    scene.write("resourcePreEvent", SERVICE)
    assert scene.after(QUIET_SECONDS) == []
    assert scene.after(1) == ["  no progress: still updating gcp:cloudrunv2/service:Service service-service (60 s)"]
    assert scene.after(QUIET_SECONDS - 1) == []
    assert scene.after(1) == ["  no progress: still updating gcp:cloudrunv2/service:Service service-service (120 s)"]


def test_every_operation_under_way_is_told(scene: Scene) -> None:
    scene.write("resourcePreEvent", SERVICE, "create")
    scene.write("resourcePreEvent", BUCKET, "delete-replaced")
    shown = scene.after(QUIET_SECONDS + 1)
    assert [line.split(" (")[0] for line in shown] == [
        "  no progress: still creating gcp:cloudrunv2/service:Service service-service",
        "  no progress: still deleting gcp:storage/bucket:Bucket weights",
    ]


@pytest.mark.parametrize("ended", ["resOutputsEvent", "resOpFailedEvent"])
def test_what_has_ended_is_not_told(scene: Scene, ended: str) -> None:
    scene.write("resourcePreEvent", SERVICE)
    scene.write("resourcePreEvent", BUCKET)
    scene.write(ended, SERVICE)
    (line,) = scene.after(QUIET_SECONDS + 1)
    assert "Bucket weights" in line


def test_progress_of_another_resource_begins_the_wait_anew(scene: Scene) -> None:
    scene.write("resourcePreEvent", SERVICE)
    assert scene.after(QUIET_SECONDS) == []
    scene.write("resOutputsEvent", BUCKET)
    assert scene.after(QUIET_SECONDS) == []
    assert len(scene.after(1)) == 1


@pytest.mark.parametrize("op", ["same", "skip"])
def test_a_resource_without_an_operation_is_not_waited_for(scene: Scene, op: str) -> None:
    scene.write("resourcePreEvent", SERVICE, op)
    assert scene.after(5 * QUIET_SECONDS) == []


def test_a_log_that_is_missing_or_cut_off_is_no_error(scene: Scene) -> None:
    assert scene.after(2 * QUIET_SECONDS) == []
    event: Any = json.dumps({"resourcePreEvent": {"metadata": {"urn": SERVICE, "op": "update"}}})
    scene.file.write_text(f"no json\n{event[:40]}")
    assert scene.after(2 * QUIET_SECONDS) == []
    with scene.file.open("a") as file:
        file.write(event[40:] + "\n")
    assert len(scene.after(QUIET_SECONDS + 1)) == 1
