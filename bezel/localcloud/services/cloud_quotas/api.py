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
_INFOS = "/cloudquotas/v1/projects/{project:id}/locations/{location:id}/services/{service:id}/quotaInfos"


@api.route("GET", _INFOS, needs="cloudquotas.quotas.get", query="pageSize pageToken")
def list_infos(call: Call) -> Json:
    """The quotas of a service that are known here."""
    return call.page(sorted(_infos(call).items()), "quotaInfos")


@api.route("GET", _INFOS + "/{quota:id}", needs="cloudquotas.quotas.get")
def get_info(call: Call) -> Json:
    """The limit of a quota in each location.

    Raises:
        ApiError: NOT_FOUND for any other quota.
    """
    info = _infos(call).get(call.param("quota"))
    if info is None:
        raise ApiError("NOT_FOUND", f"Quota info {call.param('quota')} of {call.param('service')} was not found.")
    return info


def _infos(call: Call) -> dict[str, Json]:
    """The quotas of the path's service, by id."""
    service, found = call.param("service"), []
    if service == "run.googleapis.com":
        for accelerator, known in limits()["accelerators"].items():
            for redundant in (False, True):
                quota = gpu_quota_of(accelerator, redundant=redundant)
                value = gpu_quota(call.cloud.faults, quota.gpus) * quota.unit
                found.append(_info(service, quota.name, quota.metric, value, "region", known["regions"]))
        of_region = {
            "CpuAllocPerProjectRegion": ("cpu_milli", CPU_METRIC),
            "MemAllocPerProjectRegion": ("memory_bytes", MEMORY_METRIC),
        }
        for name, (limit, metric) in of_region.items():
            found.append(_info(service, name, metric, limits()["quotas"][limit], "region", sorted(regions())))
    for name, value in call.cloud.machines.quotas().items():
        owner, dimension, places = quota_places(name)
        if owner == service:
            found.append(_info(service, name, metric_of(name), value, dimension, places))
    return {info["quotaId"]: info for info in found}


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
