"""Monitoring v3: projects.uptimeCheckConfigs over HTTP and TCP, stored and shown. No check is sent.

Passwords and masked headers are kept out of every response, as Google keeps them. Synthetic monitors, groups of
resources and checks inside of a network are refused as not served.
"""

import re

from bezel_localcloud.core.errors import invalid, refuse_unserved, unserved_error
from bezel_localcloud.core.json_types import Json, seconds_of
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.http.messages import settable_fields
from bezel_localcloud.http.update_mask import apply_mask
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.monitoring.alert_policies import KIND as POLICY
from bezel_localcloud.services.monitoring.labels import label_problems
from bezel_localcloud.services.monitoring.numbered import new_name

api = Api("monitoring.googleapis.com", "Cloud Monitoring API")
KIND = "uptimeCheckConfig"
_ROOT = "/monitoring/v3/projects/{project:id}/uptimeCheckConfigs"
_ONE = _ROOT + "/{check:id}"
_NAME = "projects/{project}/uptimeCheckConfigs/{check}"
_MESSAGE = "monitoring.UptimeCheckConfig"
_SETTABLE = settable_fields(_MESSAGE)
_FIXED = ("monitoredResource", "checkerType")
_BEYOND = ("syntheticMonitor", "resourceGroup", "internalCheckers", "isInternal")
_PERIODS = frozenset({60.0, 300.0, 600.0, 900.0})
_PERIOD, _SHORTEST, _LONGEST = "300s", 1.0, 60.0
_FIELD = "uptime_check_config"
_MASK = "******"
_CHECK_ID = re.compile(r'check_id"?\s*=\s*"([^"]*)"')  # in the filter of an alert policy


@api.route("POST", _ROOT, needs="monitoring.uptimeCheckConfigs.create", body=_FIELD)
def create(call: Call) -> Json:
    """Create a check; Google chooses its id."""
    store = call.cloud.store
    check = _complete_check({key: value for key, value in call.body.items() if key in _SETTABLE})
    with store.transaction():
        name = new_name(call, "uptimeCheckConfigs", KIND)
        check = {"name": name, **check}
        store.put(KIND, name, check)
    return _masked_check(check)


@api.route("GET", _ROOT, needs="monitoring.uptimeCheckConfigs.list", query="pageSize pageToken")
def list_checks(call: Call) -> Json:
    """Checks of the project."""
    rows = call.cloud.store.rows(KIND)
    page = call.page([(name, _masked_check(check)) for name, check in rows], "uptimeCheckConfigs")
    return page | ({"totalSize": len(rows)} if rows else {})


@api.route("GET", _ONE, needs="monitoring.uptimeCheckConfigs.get")
def get(call: Call) -> Json:
    """One check."""
    return _masked_check(_check(call)[1])


@api.route("PATCH", _ONE, needs="monitoring.uptimeCheckConfigs.update", query="updateMask", body=_FIELD)
def patch(call: Call) -> Json:
    """Change the fields that the mask names; without one, all that can change."""
    store = call.cloud.store
    with store.transaction():
        name, old = _check(call)
        changed = apply_mask(old, call.body, call.mask() or ["*"], _MESSAGE, _SETTABLE)
        # What a check watches cannot change: the provider's updates leave it out.
        fixed = {key: old[key] for key in _FIXED if key in old}
        if any(changed.get(key, old.get(key)) != old.get(key) for key in _FIXED):
            raise invalid("Field monitored_resource cannot be changed.", ("monitored_resource", "is immutable"))
        check = {"name": name, **_complete_check(_with_secrets(changed, old) | fixed)}
        store.put(KIND, name, check)
    return _masked_check(check)


@api.route("DELETE", _ONE, needs="monitoring.uptimeCheckConfigs.delete")
def delete(call: Call) -> Json:
    """Delete a check that no alert policy uses."""
    store = call.cloud.store
    with store.transaction():
        name, _ = _check(call)
        own_id = name.rpartition("/")[2]
        for policy, body in store.rows(POLICY):
            filters = [(one.get("conditionThreshold") or {}).get("filter", "") for one in body["conditions"]]
            if any(own_id in _CHECK_ID.findall(text) for text in filters):
                raise invalid(f"Cannot delete uptime check {name}: it is used by the alert policy {policy}.")
        store.delete(KIND, name)
    return {}


def _check(call: Call) -> tuple[str, Json]:
    name = call.name(_NAME)
    return name, call.row_of(KIND, name, f"Cannot find uptime check config with name {name}.")


def _complete_check(check: Json) -> Json:
    """A check with the values that Google fills in.

    Raises:
        ApiError: INVALID_ARGUMENT for a check that cannot be; NotServedError for some parts.
    """
    refuse_unserved(check, _BEYOND, "an uptime check")
    if check.get("checkerType", "STATIC_IP_CHECKERS") not in {"STATIC_IP_CHECKERS", "CHECKER_TYPE_UNSPECIFIED"}:
        raise unserved_error("checkers of the type VPC_CHECKERS", "leave checkerType out")
    resource, problems = check.get("monitoredResource") or {}, label_problems(check)
    if resource.get("type") != "uptime_url":
        raise unserved_error(
            f"uptime checks of a {resource.get('type') or 'resource without a type'}", "use uptime_url"
        )
    if not (resource.get("labels") or {}).get("host"):
        problems.append(("monitored_resource.labels", "host is required"))
    if not check.get("displayName"):
        problems.append(("display_name", "is required"))
    if ("httpCheck" in check) == ("tcpCheck" in check):
        problems.append(("check_request_type", "one of http_check and tcp_check is required"))
    if seconds_of(check.get("period") or _PERIOD, 0.0) not in _PERIODS:
        problems.append(("period", "must be 60s, 300s, 600s or 900s"))
    if not _SHORTEST <= seconds_of(check.get("timeout"), 0.0) <= _LONGEST:
        problems.append(("timeout", "must be between 1 and 60 seconds"))
    http = check.get("httpCheck")
    problems += _http_problems(http) if http is not None else []
    if problems:
        text = "; ".join(f"Field {_FIELD}.{field} had an invalid value: {why}" for field, why in problems)
        raise invalid(f"{text}.", *problems)
    kept = {key: value for key, value in check.items() if value not in ("", {}, [], None)}
    labels = {"project_id": PROJECT, **resource["labels"]}
    kept |= {"period": check.get("period") or _PERIOD, "monitoredResource": {**resource, "labels": labels}}
    if http is not None:
        ssl = http.get("useSsl", False)
        defaults = {"requestMethod": "GET", "path": "/", "port": 443 if ssl else 80}
        kept["httpCheck"] = defaults | {key: value for key, value in http.items() if value not in ("", None, 0)}
    return kept | {"checkerType": "STATIC_IP_CHECKERS"}


def _http_problems(http: Json) -> list[tuple[str, str]]:
    problems = []
    if http.get("body") and http.get("requestMethod") != "POST":
        problems.append(("http_check.body", "only a POST has one"))
    if http.get("authInfo") and http.get("serviceAgentAuthentication"):
        problems.append(("http_check.auth", "auth_info and service_agent_authentication exclude each other"))
    if http.get("serviceAgentAuthentication") and not http.get("useSsl"):
        problems.append(("http_check.service_agent_authentication", "needs use_ssl"))
    return problems


def _with_secrets(check: Json, old: Json) -> Json:
    """A changed check with the masked values that it was read with, if it sends the mask back."""
    http, before = check.get("httpCheck") or {}, old.get("httpCheck") or {}
    if not http.get("maskHeaders") or not http.get("headers"):
        return check
    secrets = before.get("headers") or {}
    headers = {key: secrets.get(key, value) if value == _MASK else value for key, value in http["headers"].items()}
    return check | {"httpCheck": http | {"headers": headers}}


def _masked_check(check: Json) -> Json:
    http = check.get("httpCheck")
    if http is None:
        return check
    if http.get("maskHeaders") and http.get("headers"):
        http = http | {"headers": dict.fromkeys(http["headers"], _MASK)}
    if http.get("authInfo", {}).get("password"):
        http = http | {"authInfo": http["authInfo"] | {"password": _MASK}}
    return check | {"httpCheck": http}
