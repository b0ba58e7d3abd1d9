"""Cloud Quotas v1: the GPUs, CPUs and memory that Cloud Run allows in each region, and the chips and GPUs to lease.

The shape is that of QuotaInfo in Google's reference of Cloud Quotas v1, November 2026. Leaves out every other quota
(known.py), and requests for another value (preferences_api.py).
"""

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT_NUMBER
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.cloud_quotas.in_force import values_in_force
from bezel_localcloud.services.cloud_quotas.known import KnownQuota, known_quotas

api = Api("cloudquotas.googleapis.com", "Cloud Quotas API", locations=frozenset({"global"}))
_INFOS = "/cloudquotas/v1/projects/{project:id}/locations/{location:id}/services/{service:id}/quotaInfos"


@api.route("GET", _INFOS, needs="cloudquotas.quotas.get", query="pageSize pageToken")
def list_infos(call: Call) -> Json:
    """The quotas of a service that are known here."""
    quotas = known_quotas(call.cloud, call.param("service"))
    return call.page([(name, _info(call, quota)) for name, quota in sorted(quotas.items())], "quotaInfos")


@api.route("GET", _INFOS + "/{quota:id}", needs="cloudquotas.quotas.get")
def get_info(call: Call) -> Json:
    """The limit of a quota in each location.

    Raises:
        ApiError: NOT_FOUND for any other quota.
    """
    quota = known_quotas(call.cloud, call.param("service")).get(call.param("quota"))
    if quota is None:
        raise ApiError("NOT_FOUND", f"Quota info {call.param('quota')} of {call.param('service')} was not found.")
    return _info(call, quota)


def _info(call: Call, quota: KnownQuota) -> Json:
    values = values_in_force(call.cloud.store, call.cloud.pace.now(), quota.service, quota.id)
    valued_places = [place for place in quota.places if place in values]
    rows = [
        _row(min(values[place], quota.cap), [place], {quota.dimension: place} | quota.more) for place in valued_places
    ]
    others = [place for place in quota.places if place not in values]
    rows += [_row(min(values.get("", quota.initial), quota.cap), others, quota.more)] if others else []
    return {
        "name": f"projects/{PROJECT_NUMBER}/locations/global/services/{quota.service}/quotaInfos/{quota.id}",
        "quotaId": quota.id,
        "service": quota.service,
        "metric": quota.metric,
        "isPrecise": True,
        "containerType": "PROJECT",
        "dimensions": [quota.dimension, *quota.more],
        "quotaIncreaseEligibility": {"isEligible": True},
        "dimensionsInfos": rows,
    }


def _row(value: float, places: list[str], dimensions: dict[str, str]) -> Json:
    row: Json = {"details": {"value": str(int(value))}, "applicableLocations": places}
    return {"dimensions": dimensions, **row} if dimensions else row
