"""A region dies under 64 callers who stream, and comes back: what they lose is what the plan says, and no more."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from bezel.planner.address.failover import EJECTION_SECONDS, FAILURES
from localcloud_support.client import until
from tests.support.e2e.regions import A, B, RegionsStack, deploy_two

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.e2e.kill_points import KillHarness

# The platform's seconds in one of this machine's: its waits are much longer than those of 64 callers.
SPEED = 5.0
LARGE = {"vllm.max-num-seqs": 64, "vllm.max-model-len": 8192}
KEPT = {"scaling": {"min_instances": 1}, "cost.max_idle_hourly_usd": 5}


@pytest.fixture
def two(grounds: KillHarness, tmp_path: Path) -> Iterator[RegionsStack]:
    """The stack in service in two regions, deployed once for all tests."""
    made = grounds.copy_with_cloud("regions", deploy_two, tmp_path / "two")
    yield RegionsStack(made)
    made.stop_cloud()


def deploy(stack: RegionsStack, settings: dict[str, Any], failover: str) -> float:
    """Deploy for many callers on a slower platform; how long the plan says that a dead region stays in use, here."""
    stack.deploy(**LARGE, **settings)
    address = stack.rehearsal.outputs()["plan"]["address"]
    assert address["failover"] == failover
    stack.slow_down(SPEED)
    return float(address["detection_seconds"]) / SPEED


def now() -> str:
    return datetime.now(UTC).isoformat()


@pytest.mark.wide
def test_callers_lose_no_stream_once_a_region_is_known_dead(two: RegionsStack) -> None:
    detection = deploy(two, KEPT, "service health")
    with two.callers() as callers:
        callers.wait_for_whole_streams()
        since = now()
        is_up = time.monotonic()
        two.fault("region-down", region=A)
        is_down = time.monotonic()
        # Longer than outlier detection alone would leave it out.
        until(lambda: time.monotonic() > is_down + 1.5 * EJECTION_SECONDS / SPEED)
        callers.wait_for_whole_streams(time.monotonic())
        assert two.serving_regions() == {B}
        assert two.request_count(B, since) >= callers.count
        lost = callers.failures()
        assert [each for each in lost if each.began < is_down], "those in flight there"
        assert len([each for each in lost if each.began < is_up]) <= callers.count, "each caller has one at a time"
        is_known = is_down + detection + callers.stalled_seconds(is_down)
        assert [each for each in lost if each.began > is_known] == []
        two.mend()
        until(lambda: two.serving_regions() == {A, B}, 60)
        since = now()
        callers.wait_for_whole_streams(time.monotonic())
        until(lambda: two.request_count(A, since) > 0, 60)
        two.fault("region-drain", region=A)
        callers.wait_for_whole_streams(time.monotonic())
        assert two.serving_regions() == {B}
    assert callers.failures() == lost, "neither the way back nor a drain costs a stream"


@pytest.mark.wide
def test_callers_fail_a_few_times_where_a_dead_region_returns(two: RegionsStack) -> None:
    detection, pause = deploy(two, {}, "outlier detection"), EJECTION_SECONDS / SPEED
    with two.callers() as callers:
        callers.wait_for_whole_streams()
        died = time.monotonic()
        two.fault("region-down", region=A)
        callers.wait_for_whole_streams(died)
        # Dead or not, it returns after its time, and is left out for twice as long.
        until(lambda: len(callers.bursts(pause / 2)) == 2, 60)
        two.mend()  # at once: it may return a third time
        callers.wait_for_whole_streams(time.monotonic())
        until(lambda: two.serving_regions() == {A, B}, 60)
        since = now()
        until(lambda: two.request_count(A, since) > 0, 60)
        callers.wait_for_whole_streams(time.monotonic())
    # Google's default takes a region out after three answers of 502 to 504 already.
    for burst in callers.bursts(pause / 2):
        judged = sorted(each.ended for each in burst)[:FAILURES][-1]
        assert [each for each in burst if each.began > judged + detection] == []
    first, again = callers.bursts(pause / 2)
    assert len([each for each in first if each.began < died]) <= callers.count, "those in flight there"
    assert len(again) < callers.count / 2, "most callers see nothing of its return"
