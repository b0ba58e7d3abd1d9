"""Life cycle of a request for machines, from stored to gone, as a function of time. Pure.

The states are those of the TPU API's queued resources; Compute Engine names the same states differently. Waits of the
platform are given in real seconds here (already divided by the clock's speed); the run duration is real time
everywhere.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from bezel_localcloud.core.errors import ApiError, error_info

# States in which a machine is reserved for a request, or runs.
HOLDING = frozenset({"ACCEPTED", "PROVISIONING", "ACTIVE", "SUSPENDING"})
# States in which it has a place in a network.
PLACED = frozenset({"PROVISIONING", "ACTIVE", "SUSPENDING"})
GONE = "GONE"
STOCK_OUT, INVALID_NOW, NEVER_READY, NO_ADDRESS = "stock-out", "not valid any more", "never ready", "no address"


@dataclass(frozen=True)
class Life:
    """Progress of a request.

    Attributes:
        state: State of a queued resource, or GONE.
        since: When that state began, Unix seconds.
        created: When it was stored, Unix seconds.
        valid_until: When it stops waiting for capacity, Unix seconds; None for never, 0 where it does not wait.
        run_seconds: Real seconds that its machine runs at most; None for no limit.
        failure: Why it failed: one of the words above.
        lost: Whether the platform reclaimed the machine.
        by_user: Whether a user requested the state.
    """

    state: str
    since: float
    created: float
    valid_until: float | None
    run_seconds: float | None
    failure: str = ""
    lost: bool = False
    by_user: bool = False

    @property
    def ends_at(self) -> float | None:
        """End of the run duration of an active request."""
        return self.since + self.run_seconds if self.state == "ACTIVE" and self.run_seconds is not None else None

    def as_json(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


@dataclass(frozen=True)
class Conditions:
    """The platform's conditions for a request at this moment.

    Attributes:
        waits: Real seconds of each wait, by its name.
        in_stock: Whether a machine is left for it.
        gives_up: Whether the zone gives up on waiting requests.
        never_ready: Real seconds after which making a machine fails; None if it succeeds.
    """

    waits: Mapping[str, float]
    in_stock: bool
    gives_up: bool = False
    never_ready: float | None = None


def new_life(now: float, valid_until: float | None, run_seconds: float | None) -> Life:
    """The life of a new request."""
    return Life("CREATING", now, now, valid_until, run_seconds)


def advance(life: Life, now: float, conditions: Conditions) -> Life | None:
    """Return the next state of a request if it has begun by now, else None.

    `since` of the result is the time when the state began, even if no request was read for a long time.
    """
    waits = conditions.waits
    match life.state:
        case "CREATING":
            return _after(life, now, waits["creating"], "ACCEPTED" if conditions.in_stock else "WAITING_FOR_RESOURCES")
        case "ACCEPTED":
            return _after(life, now, waits["accepted"], "PROVISIONING")
        case "WAITING_FOR_RESOURCES":
            return _end_of_wait(life, now, conditions)
        case "PROVISIONING":
            if conditions.never_ready is not None:
                failed = _after(life, now, conditions.never_ready, "FAILED")
                return replace(failed, failure=NEVER_READY) if failed else None
            return _after(life, now, waits["provisioning"], "ACTIVE")
        case "ACTIVE":
            return None if life.run_seconds is None else _after(life, now, life.run_seconds, "SUSPENDING")
        case "SUSPENDING":
            return _after(life, now, waits["suspending"], "SUSPENDED")
        case "DELETING":
            return _after(life, now, waits["deleting"], GONE)
        case _:
            return None


def move(life: Life, state: str, at: float, **changes: Any) -> Life:
    """A request in another state."""
    fields: dict[str, Any] = {"by_user": False} | changes
    return replace(life, state=state, since=at, **fields)


def _after(life: Life, now: float, seconds: float, state: str) -> Life | None:
    due = life.since + seconds
    return move(life, state, due) if now >= due else None


def _end_of_wait(life: Life, now: float, conditions: Conditions) -> Life | None:
    """Return the end of a wait for capacity: the earliest of its possible ends."""
    ends = [(life.since + conditions.waits["stock_out"], STOCK_OUT)] if conditions.gives_up else []
    if life.valid_until is not None:
        # A request that does not wait fails as soon as the stock is seen to be empty.
        ends.append((life.valid_until, INVALID_NOW) if life.valid_until else (life.since, STOCK_OUT))
    at, failure = min(ends, default=(now + 1, ""))
    if now >= at:
        return move(life, "FAILED", at, failure=failure)
    return move(life, "PROVISIONING", now) if conditions.in_stock else None


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


def failure_error(failure: str, zone: str, machine_type: str, stock_out_code: str) -> ApiError:
    """The error of a request that failed after it was stored.

    Args:
        failure: The life cycle's name of the failure.
        zone: Zone of the request.
        machine_type: The requested machine type.
        stock_out_code: The zone's stock-out message: one of the two codes, "" for the TPU API's own sentence.
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
    return _stock_out(zone, machine_type, stock_out_code or PLAIN)


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
