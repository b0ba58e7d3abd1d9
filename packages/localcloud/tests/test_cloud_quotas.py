"""Cloud Quotas tells how many GPUs Cloud Run allows: the number by which it refuses a revision."""

import pytest

from bezel_localcloud.services.cloud_run.quotas import gpu_quota_of
from bezel_localcloud.services.cloud_run.spec import limits

ENABLE = "/serviceusage/v1/projects/bezel-local/services/cloudquotas.googleapis.com"
SERVICES = "/cloudquotas/v1/projects/bezel-local/locations/global/services"
L4 = "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion"


@pytest.fixture
def quotas(cloud):
    """A function that asks for one; the API is on."""
    assert cloud.post(f"{ENABLE}:enable").is_success
    yield lambda name, service="run.googleapis.com": cloud.get(f"{SERVICES}/{service}/quotaInfos/{name}")
    assert cloud.post(f"{ENABLE}:disable").is_success


def test_a_quota_is_reported_with_the_regions_that_it_holds_for(quotas):
    quota = quotas(L4).json()
    (info,) = quota["dimensionsInfos"]
    assert quota["quotaId"] == L4
    assert quota["metric"] == "run.googleapis.com/nvidia_l4_gpu_allocation_no_zonal_redundancy"
    assert info["details"]["value"] == str(gpu_quota_of("nvidia-l4", redundant=False).gpus)
    assert "us-east4" in info["applicableLocations"]
    assert "us-central1" not in info["applicableLocations"]


@pytest.mark.parametrize("redundant", [False, True])
@pytest.mark.parametrize("accelerator", limits()["accelerators"])
def test_every_accelerator_has_its_quotas_as_they_count(quotas, accelerator, redundant):
    quota = gpu_quota_of(accelerator, redundant=redundant)
    reported = quotas(quota.name).json()
    (info,) = reported["dimensionsInfos"]
    assert info["details"]["value"] == str(quota.gpus * quota.unit)
    assert reported["metric"] == quota.metric


def test_a_fault_of_the_quota_is_reported_too(quotas, cloud):
    path = "/localcloud/faults"
    assert cloud.post(path, {"kind": "quota-exceeded", "parameters": {}}).is_success
    (info,) = quotas(L4).json()["dimensionsInfos"]
    assert cloud.delete(path).is_success
    assert info["details"]["value"] == "0"


@pytest.mark.parametrize(
    ("name", "service", "place", "elsewhere"),
    [
        ("TPUV6EPreemptiblePerProjectPerZoneForTPUAPI", "tpu", "us-east5-a", "us-east4-a"),
        ("PREEMPTIBLE-TPU-V6E-per-project-region", "compute", "us-east5", "us-east4"),
        ("NVIDIA-L4-GPUS-per-project-region", "compute", "us-east4", "us-east5"),
    ],
)
def test_the_quotas_of_leases_hold_for_zones_or_regions_with_the_hardware(quotas, name, service, place, elsewhere):
    quota = quotas(name, service=f"{service}.googleapis.com").json()
    (info,) = quota["dimensionsInfos"]
    assert int(info["details"]["value"]) > 0
    assert quota["metric"].startswith(f"{service}.googleapis.com/")
    assert place in info["applicableLocations"]
    assert elsewhere not in info["applicableLocations"]
    assert quotas(name).status_code == 404


@pytest.mark.parametrize(
    ("name", "limit"), [("CpuAllocPerProjectRegion", "cpu_milli"), ("MemAllocPerProjectRegion", "memory_bytes")]
)
def test_cpus_and_memory_are_reported_by_the_number_that_refuses_a_service(quotas, name, limit):
    (info,) = quotas(name).json()["dimensionsInfos"]
    assert info["details"]["value"] == str(limits()["quotas"][limit])
    assert {"us-east4", "us-central1"} <= {*info["applicableLocations"]}


def test_no_other_quota_is_known(quotas):
    assert quotas("RequestsPerMinutePerProject").status_code == 404
    assert quotas(L4, service="compute.googleapis.com").status_code == 404


def test_who_has_not_enabled_it_gets_an_error_that_says_so(cloud):
    answer = cloud.get(f"{SERVICES}/run.googleapis.com/quotaInfos/{L4}")
    assert answer.status_code == 403
    assert "Cloud Quotas API has not been used in project bezel-local before" in answer.json()["error"]["message"]
