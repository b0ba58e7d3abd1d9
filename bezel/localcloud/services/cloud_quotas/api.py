"""Cloud Quotas v1: the GPUs, CPUs and memory that Cloud Run allows in each region, and the chips and GPUs to lease.

The shape is that of QuotaInfo in Google's reference of Cloud Quotas v1, November 2026. Leaves out every other quota,
and requests for an increase: a project's quotas are in data/cloud_run.toml and data/machines.toml.
"""

from bezel.localcloud.core.errors import ApiError
from bezel.localcloud.core.json_types import Json
from bezel.localcloud.core.paths import PROJECT_NUMBER
from bezel.localcloud.core.regions import regions
from bezel.localcloud.faults.platform import gpu_quota
from bezel.localcloud.machines.capacity import metric_of, quota_places
from bezel.localcloud.routing.router import Api, Call
from bezel.localcloud.services.cloud_run.quotas import CPU_METRIC, MEMORY_METRIC, gpu_quota_of
from bezel.localcloud.services.cloud_run.spec import limits

api = Api("cloudquotas.googleapis.com", "Cloud Quotas API", locations=frozenset({"global"}))
_INFO = "/cloudquotas/v1/projects/{project:id}/locations/{location:id}/services/{service:id}/quotaInfos/{quota:id}"


@api.route("GET", _INFO, needs="cloudquotas.quotas.get")
def get_info(call: Call) -> Json:
    """The limit of a quota in each location.

    Raises:
        ApiError: NOT_FOUND for any other quota.
    """
    service, quota_id = call.param("service"), call.param("quota")
    for accelerator, known in limits()["accelerators"].items():
        for redundant in (False, True):
            quota = gpu_quota_of(accelerator, redundant=redundant)
            if (service, quota_id) != ("run.googleapis.com", quota.name):
                continue
            value = gpu_quota(call.cloud.faults, quota.gpus) * quota.unit
            return _info(service, quota_id, quota.metric, value, "region", known["regions"])
    of_region = {
        "CpuAllocPerProjectRegion": ("cpu_milli", CPU_METRIC),
        "MemAllocPerProjectRegion": ("memory_bytes", MEMORY_METRIC),
    }
    if service == "run.googleapis.com" and quota_id in of_region:
        limit, metric = of_region[quota_id]
        return _info(service, quota_id, metric, limits()["quotas"][limit], "region", sorted(regions()))
    machine_quotas = call.cloud.machines.quotas()
    if quota_id in machine_quotas:
        owner, dimension, places = quota_places(quota_id)
        if owner == service:
            return _info(service, quota_id, metric_of(quota_id), machine_quotas[quota_id], dimension, places)
    raise ApiError("NOT_FOUND", f"Quota info {quota_id} of {service} was not found.")


def _info(service: str, quota: str, metric: str, value: int, dimension: str, places: list[str]) -> Json:
    return {
        "name": f"projects/{PROJECT_NUMBER}/locations/global/services/{service}/quotaInfos/{quota}",
        "quotaId": quota,
        "service": service,
        "metric": metric,
        "isPrecise": True,
        "containerType": "PROJECT",
        "dimensions": [dimension],
        "dimensionsInfos": [{"details": {"value": str(value)}, "applicableLocations": places}],
    }
