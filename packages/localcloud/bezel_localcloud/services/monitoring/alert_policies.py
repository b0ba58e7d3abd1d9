"""Monitoring v3: projects.alertPolicies, stored and shown. No policy is evaluated, so no incident opens."""

from bezel_localcloud.core.decimal_text import decimal
from bezel_localcloud.core.errors import invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.http.messages import settable_fields
from bezel_localcloud.http.update_mask import apply_mask
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.monitoring.channels import find_channel
from bezel_localcloud.services.monitoring.conditions import check_condition
from bezel_localcloud.services.monitoring.labels import label_problems
from bezel_localcloud.services.monitoring.numbered import new_name, record
from bezel_localcloud.services.monitoring.promql.series import line_names

api = Api("monitoring.googleapis.com", "Cloud Monitoring API")
KIND = "alertPolicy"
_ROOT = "/monitoring/v3/projects/{project:id}/alertPolicies"
_ONE = _ROOT + "/{policy:id}"
_NAME = "projects/{project}/alertPolicies/{policy}"
_MESSAGE = "monitoring.AlertPolicy"
# Google keeps these itself; its document does not mark them as output only.
_SETTABLE = settable_fields(_MESSAGE) - {"creationRecord", "mutationRecord", "validity"}
_FIELD = "alert_policy"
_MOST_CONDITIONS, _MOST_CHANNELS, _LONGEST_NAME, _LONGEST_TEXT = 6, 16, 512, 8192


@api.route("POST", _ROOT, needs="monitoring.alertPolicies.create", body=_FIELD)
def create(call: Call) -> Json:
    """Create a policy; Google chooses its id and those of its conditions."""
    store = call.cloud.store
    policy = _complete_policy(call, {key: value for key, value in call.body.items() if key in _SETTABLE})
    with store.transaction():
        name, made = new_name(call, "alertPolicies", KIND), record(call)
        policy = _name_conditions(policy, name) | {"name": name, "creationRecord": made, "mutationRecord": made}
        store.put(KIND, name, policy)
    return policy


@api.route("GET", _ROOT, needs="monitoring.alertPolicies.list", query="pageSize pageToken")
def list_policies(call: Call) -> Json:
    """Policies of the project."""
    rows = call.cloud.store.rows(KIND)
    return call.page(rows, "alertPolicies") | ({"totalSize": len(rows)} if rows else {})


@api.route("GET", _ONE, needs="monitoring.alertPolicies.get")
def get(call: Call) -> Json:
    """One policy."""
    return _policy(call)[1]


@api.route("PATCH", _ONE, needs="monitoring.alertPolicies.update", query="updateMask", body=_FIELD)
def patch(call: Call) -> Json:
    """Change the fields that the mask names; without one, all of them."""
    store = call.cloud.store
    with store.transaction():
        name, old = _policy(call)
        policy = _complete_policy(call, apply_mask(old, call.body, call.mask() or ["*"], _MESSAGE, _SETTABLE))
        kept = {key: value for key, value in old.items() if key not in _SETTABLE}
        policy = _name_conditions(policy, name) | kept | {"mutationRecord": record(call)}
        store.put(KIND, name, policy)
    return policy


@api.route("DELETE", _ONE, needs="monitoring.alertPolicies.delete")
def delete(call: Call) -> Json:
    """Delete a policy."""
    with call.cloud.store.transaction():
        call.cloud.store.delete(KIND, _policy(call)[0])
    return {}


def _policy(call: Call) -> tuple[str, Json]:
    name = call.name(_NAME)
    return name, call.row_of(KIND, name, f"Cannot find alert policy with name {name}.")


def _complete_policy(call: Call, policy: Json) -> Json:
    """A policy with the values that Google fills in.

    Raises:
        ApiError: INVALID_ARGUMENT for a policy that cannot be, NOT_FOUND for one with a metric that does not exist.
    """
    conditions, problems = policy.get("conditions") or [], label_problems(policy)
    if not 1 <= len(conditions) <= _MOST_CONDITIONS:
        problems.append(("conditions", f"a policy has 1 to {_MOST_CONDITIONS} conditions"))
    if policy.get("combiner", "COMBINE_UNSPECIFIED") == "COMBINE_UNSPECIFIED":
        problems.append(("combiner", "is required"))
    if not 0 < len(policy.get("displayName", "")) <= _LONGEST_NAME:
        problems.append(("display_name", f"has 1 to {_LONGEST_NAME} characters"))
    if len((policy.get("documentation") or {}).get("content", "")) > _LONGEST_TEXT:
        problems.append(("documentation.content", f"has more than {_LONGEST_TEXT} characters"))
    channels = policy.get("notificationChannels") or []
    if len(channels) > _MOST_CHANNELS:
        problems.append(("notification_channels", f"has more than {_MOST_CHANNELS} members"))
    problems += [
        (f"notification_channels[{index}]", f"{name} does not exist")
        for index, name in enumerate(channels)
        if find_channel(call.cloud.store, name) is None
    ]
    if problems:
        text = "; ".join(f"Field {_FIELD}.{field} had an invalid value: {why}" for field, why in problems)
        raise invalid(f"{text}.", *problems)
    limited = bool((policy.get("alertStrategy") or {}).get("notificationRateLimit"))
    for index, condition in enumerate(conditions):
        where = f"{_FIELD}.conditions[{index}]"
        check_condition(
            condition,
            where,
            alone=len(conditions) == 1,
            rate_limited=limited,
            written=lambda: line_names(call.cloud.prometheus_series.series()),
        )
    kept = {key: value for key, value in policy.items() if value not in ("", {}, [], None, "SEVERITY_UNSPECIFIED")}
    if kept.get("documentation"):
        kept["documentation"] = {"mimeType": "text/markdown", **kept["documentation"]}
    return {"enabled": True, **kept}


def _name_conditions(policy: Json, name: str) -> Json:
    """A policy whose conditions have names: those that they had in it, or new ones."""
    conditions = policy["conditions"]
    prefix = f"{name}/conditions/"
    kept = [one.get("name", "") for one in conditions if one.get("name", "").startswith(prefix)]
    numbers = [number for kept_name in kept if (number := decimal(kept_name.removeprefix(prefix))) is not None]
    following, result, used = max([999, *numbers]) + 1, [], set[str]()
    for condition in conditions:
        condition_name = condition.get("name", "")
        if condition_name not in kept or condition_name in used:
            condition_name, following = f"{prefix}{following}", following + 1
        used.add(condition_name)
        result.append({**condition, "name": condition_name})
    return policy | {"conditions": result}
