"""Cloud Quotas v1: quotaPreferences, the requests for another value of a quota.

Checks and shapes are those of QuotaPreference in google/api/cloudquotas/v1 (googleapis, 2026). Leaves out the decision
(decisions.py) and the effect (in_force.py). A preference is never deleted: Google has no method for it.
"""

import hashlib
import re
import uuid

from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.http.messages import settable_fields
from bezel_localcloud.http.update_mask import apply_mask
from bezel_localcloud.routing.context import Series
from bezel_localcloud.routing.router import Call
from bezel_localcloud.services.cloud_quotas.api import api
from bezel_localcloud.services.cloud_quotas.decisions import UNLIMITED, decide, unsafe
from bezel_localcloud.services.cloud_quotas.in_force import KIND, Preference, preferences, values_in_force
from bezel_localcloud.services.cloud_quotas.known import KnownQuota, known_quotas
from bezel_localcloud.services.monitoring.quota_use import use_of

_ALL = "/cloudquotas/v1/projects/{project:id}/locations/{location:id}/quotaPreferences"
_ONE = _ALL + "/{preference:id}"
_PARENT = "projects/{project}/locations/{location}/quotaPreferences"
_NAME = _PARENT + "/{preference}"
_MESSAGE = "cloudquotas.QuotaPreference"
_FIXED = ("service", "quotaId", "dimensions")
_SETTABLE = settable_fields(_MESSAGE)
_ID = re.compile(r"[A-Za-z0-9_.-]{1,255}")
_GET, _UPDATE = "cloudquotas.quotas.get", "cloudquotas.quotas.update"


@api.route("GET", _ALL, needs=_GET, query="pageSize pageToken")
def list_preferences(call: Call) -> Json:
    """Preferences of the project, by their creation."""
    ordered = sorted(preferences(call.cloud.store), key=lambda item: (item[1].body["createTime"], item[0]))
    return call.page_in_order(
        [_preference_json(call, name, preference) for name, preference in ordered], "quotaPreferences"
    )


@api.route("GET", _ONE, needs=_GET)
def get(call: Call) -> Json:
    """One preference with its state at this time."""
    return _preference_json(call, *_find_preference(call))


@api.route("POST", _ALL, needs=_UPDATE, query="quotaPreferenceId ignoreSafetyChecks", body="quota_preference")
def create(call: Call) -> Json:
    """Request another value; without an id Google chooses one."""
    name = f"{call.name(_PARENT)}/{_id(call.query('quotaPreferenceId') or str(uuid.uuid4()))}"
    with call.cloud.store.transaction():
        call.check_absent(KIND, name, f"Quota preference {name} already exists.")
        return _begin(call, name)


@api.route(
    "PATCH",
    _ONE,
    needs=_UPDATE,
    query="updateMask allowMissing validateOnly ignoreSafetyChecks",
    body="quota_preference",
)
def patch(call: Call) -> Json:
    """Request another value again, in any state of the earlier request."""
    name = call.name(_NAME)
    with call.cloud.store.transaction():
        if call.flag("allowMissing") and call.cloud.store.get(KIND, name) is None:
            _id(call.param("preference"))
            return _begin(call, name)
        _, old = _find_preference(call)
        if call.body.get("etag", "") not in {"", old.body["etag"]}:
            raise ApiError(
                "ABORTED", f"The etag given is not the current one of {name}: read it again, then change it."
            )
        body = apply_mask(old.body, call.body, call.mask() or ["*"], _MESSAGE, _SETTABLE)
        body.pop("contactEmail", None)  # which is never shown
        for field in _FIXED:
            if body.setdefault(field, old.body.get(field)) != old.body.get(field):
                raise invalid(f"Field '{field}' cannot be changed.", (f"quota_preference.{field}", "is immutable"))
        return _request(call, name, body | {"createTime": old.body["createTime"]})


def _begin(call: Call, name: str) -> Json:
    body = {key: value for key, value in call.body.items() if key in _SETTABLE - {"contactEmail"}}
    _quota(call, body)
    target = (body.get("service"), body.get("quotaId"), body.get("dimensions") or {})
    for taken, other in preferences(call.cloud.store):
        if target == (other.body["service"], other.body["quotaId"], other.body.get("dimensions") or {}):
            raise ApiError("ALREADY_EXISTS", f"{taken} is the preference of this quota and these dimensions already.")
    return _request(call, name, body | {"createTime": timestamp(call.cloud.pace.now())})


def _request(call: Call, name: str, body: Json) -> Json:
    """Check a request, store it with its decision, and show it."""
    cloud, now = call.cloud, call.cloud.pace.now()
    quota = _quota(call, body)
    config = {key: value for key, value in body["quotaConfig"].items() if key in {"preferredValue", "annotations"}}
    preferred = int(config["preferredValue"])
    place = _place(quota, body.get("dimensions") or {})
    values = values_in_force(cloud.store, now, quota.service, quota.id)
    before = values.get(place, values.get(""))
    present = quota.initial if before is None else before
    used = use_of(cloud)
    most_used = max((used[Series(quota.metric, each)] for each in ([place] if place else quota.places)), default=0)
    ignored = call.request.query_params.getlist("ignoreSafetyChecks")
    for check, reason in unsafe(preferred, present, most_used).items():
        if check not in ignored:
            raise ApiError("FAILED_PRECONDITION", f"The safety check {check} failed: {reason}.")
    decision = decide(preferred, present, quota.initial)
    number = cloud.store.next_number("quota-request")
    body = body | {"quotaConfig": config, "updateTime": timestamp(now), "etag": f'"{number:013x}"'}
    trace = hashlib.sha256(f"{name} {number}".encode()).hexdigest()[:32] if decision.seconds else ""
    decides = now + cloud.pace.seconds(decision.seconds)
    made = Preference(body, before, decides, decision.grants, decision.detail, trace)
    if not call.flag("validateOnly"):
        cloud.store.put(KIND, name, made.as_row())
    return _preference_json(call, name, made)


def _quota(call: Call, body: Json) -> KnownQuota:
    problems = [
        (f"quota_preference.{name}", "is required")
        for name in ("service", "quotaId", "quotaConfig")
        if not body.get(name)
    ]
    if not problems and "preferredValue" not in body["quotaConfig"]:
        problems = [("quota_preference.quota_config.preferred_value", "is required")]
    if problems:
        raise invalid("; ".join(f"{field} {text}" for field, text in problems), *problems)
    quota = known_quotas(call.cloud, body["service"]).get(body["quotaId"])
    if quota is None:
        raise ApiError("NOT_FOUND", f"Quota {body['quotaId']} of {body['service']} was not found.")
    if int(body["quotaConfig"]["preferredValue"]) < UNLIMITED:
        raise invalid(
            "The preferred value must be -1 or more.", ("quota_preference.quota_config", "must be -1 or more")
        )
    return quota


def _place(quota: KnownQuota, dimensions: dict[str, str]) -> str:
    """The region or zone of some dimensions, "" for all of them."""
    for name, value in dimensions.items():
        allowed = quota.places if name == quota.dimension else [quota.more[name]] if name in quota.more else []
        if value not in allowed:
            text = f"Quota {quota.id} has no value for the dimension {name}={value}."
            raise invalid(text, ("quota_preference.dimensions", f"{name}={value}"))
    return dimensions.get(quota.dimension, "")


def _id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise invalid(f"Invalid quota preference id {text!r}.", ("quota_preference_id", text))
    return text


def _find_preference(call: Call) -> tuple[str, Preference]:
    name = call.name(_NAME)
    return name, Preference.of(call.row_of(KIND, name, f"Quota preference {name} was not found."))


def _preference_json(call: Call, name: str, preference: Preference) -> Json:
    """A preference as it is read; the value in force stands for the granted one until the decision."""
    now, body = call.cloud.pace.now(), preference.body
    pending, value = now < preference.decides, preference.value(now)
    if value is None:
        value = known_quotas(call.cloud, body["service"])[body["quotaId"]].initial
    config = body["quotaConfig"] | {"grantedValue": str(value)}
    config |= {"traceId": preference.trace} if preference.trace else {}
    config |= {"stateDetail": preference.detail} if preference.detail and not pending else {}
    shown = {"name": name.replace(f"projects/{PROJECT}/", f"projects/{PROJECT_NUMBER}/", 1), **body}
    return shown | {"quotaConfig": config} | ({"reconciling": True} if pending else {})
