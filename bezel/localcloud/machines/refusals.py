"""Refusals of requests for machines, in the words of either API. Pure."""

from bezel.localcloud.core.errors import ApiError, error_info
from bezel.localcloud.machines.lifecycle import INVALID_NOW, NEVER_READY, NO_ADDRESS

PLAIN = "ZONE_RESOURCE_POOL_EXHAUSTED"
DETAILED = f"{PLAIN}_WITH_DETAILS"


def model_refused(zone: str) -> ApiError:
    """400: the zone does not take flex-start."""
    return ApiError("INVALID_ARGUMENT", f"FLEX_START provisioning model is not supported in zone {zone}.")


def over_quota(quota: str, used: int, allowed: int, place: str) -> ApiError:
    """429: the request exceeds a quota together with what is not yet deleted."""
    text = f"Quota '{quota}' exceeded. Limit: {allowed} in {place}; in use: {used}."
    violation = {"subject": f"{quota} in {place}", "description": text}
    detail = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}
    info = error_info("QUOTA_EXCEEDED", {"quota_limit": quota, "quota_limit_value": str(allowed)})
    return ApiError("RESOURCE_EXHAUSTED", text, [info, detail])


def failed(failure: str, zone: str, machine_type: str, said: str) -> ApiError:
    """The error of a request that failed after it was stored.

    Args:
        failure: The life cycle's name of the failure.
        zone: Zone of the request.
        machine_type: The requested machine type.
        said: The zone's stock-out message: one of the two codes, "" for the TPU API's own sentence.
    """
    if failure == INVALID_NOW:
        text = f"No capacity for {machine_type} in zone {zone} was found while the request was valid."
        return ApiError("DEADLINE_EXCEEDED", text, [error_info("VALIDITY_EXPIRED", {"zone": zone})])
    if failure == NEVER_READY:
        text = f"Internal error encountered while {machine_type} was made in zone {zone}."
        return ApiError("INTERNAL", text, [error_info("INTERNAL_ERROR", {"zone": zone})])
    if failure == NO_ADDRESS:
        text = f"IP space of the subnetwork is exhausted: no address is left for {machine_type}."
        return ApiError("RESOURCE_EXHAUSTED", text, [error_info("IP_SPACE_EXHAUSTED", {"zone": zone})])
    return _stock_out(zone, machine_type, said or PLAIN)


def _stock_out(zone: str, machine_type: str, code: str) -> ApiError:
    text = f'{code}: There is no more capacity in the zone "{zone}"; try another zone, or try again later.'
    metadata = {"zone": zone}
    if code == DETAILED:
        text = (
            f"{code}: {machine_type} is currently unavailable in the {zone} zone: there is no more capacity. Consider "
            "trying your request in other zones, or try again later."
        )
        metadata |= {"vmType": machine_type}
    return ApiError("RESOURCE_EXHAUSTED", text, [error_info(code, metadata)])
