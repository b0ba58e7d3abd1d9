"""Two revisions at a time need room, as the quota counts it."""

import pytest

from bezel.planner.rollout import GpuQuota, check_room, gpu_quota

L4 = GpuQuota("NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion", 1)


@pytest.mark.parametrize(("allowed", "instances", "fits"), [(2, 1, True), (1, 1, False), (3, 2, False), (4, 2, True)])
def test_two_revisions_at_a_time_need_room(allowed: int, instances: int, fits: bool) -> None:
    found = check_room(allowed, max_instances=instances, gpus=1, quota=L4, region="us-east4")
    assert (not found) is fits


def test_a_quota_that_is_too_small_is_told_with_what_to_do() -> None:
    (one,) = check_room(1, max_instances=1, gpus=1, quota=L4, region="us-east4")
    assert (one.key, one.value) == ("bezel:rollout", "gated")
    assert f"may need 2 of {L4.id} at a time, and this project has 1 in us-east4" in one.consequence
    assert one.repair.startswith("set bezel:rollout to direct, or ask for 2")
    (more,) = check_room(3, max_instances=2, gpus=1, quota=L4, region="us-east4")
    assert "lower bezel:scaling.max_instances to 1, or ask for 4" in more.repair


def test_a_quota_in_thousandths_counts_as_such() -> None:
    quota = gpu_quota("nvidia-rtx-pro-6000", zonal_redundancy=False)
    assert (quota.id, quota.unit) == ("NvidiaRtxPro6000GpuAllocNoZonalRedundancyPerProjectRegion", 1000)
    assert check_room(1000, max_instances=1, gpus=1, quota=quota, region="us-central1")
    assert not check_room(2000, max_instances=1, gpus=1, quota=quota, region="us-central1")
    assert gpu_quota("nvidia-l4", zonal_redundancy=True).id == "NvidiaL4GpuAllocPerProjectRegion"
