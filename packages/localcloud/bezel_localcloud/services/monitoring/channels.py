"""Monitoring v3: projects.notificationChannels of the type `email`, which budgets notify.

Owns what a channel may say. Leaves out sending: no mail leaves this machine. Other types hold passwords and tokens of
other companies' services; they are refused as not served, as is the verification that they need.
"""

import re

from bezel_localcloud.core.errors import ApiError, invalid, unserved_error
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.store import Store
from bezel_localcloud.http.messages import settable_fields
from bezel_localcloud.http.update_mask import apply_mask
from bezel_localcloud.routing.router import Api, Call
from bezel_localcloud.services.monitoring.labels import label_problems
from bezel_localcloud.services.monitoring.numbered import by_id, new_name, record

api = Api("monitoring.googleapis.com", "Cloud Monitoring API")
_ROOT = "/monitoring/v3/projects/{project:id}/notificationChannels"
_ONE = _ROOT + "/{channel:id}"
_NAME = "projects/{project}/notificationChannels/{channel}"
_MESSAGE = "monitoring.NotificationChannel"
# Google keeps these itself; its document does not mark them as output only.
_SETTABLE = settable_fields(_MESSAGE) - {"creationRecord", "mutationRecords", "verificationStatus"}
# Source: Google's list of channel descriptors (projects.notificationChannelDescriptors.list), November 2026.
_OTHER_TYPES = frozenset(
    {"campfire", "cloud_mobile_app", "google_chat", "hipchat", "pagerduty", "pubsub", "slack", "sms"}
    | {"webhook_basicauth", "webhook_tokenauth"}
)
_LONGEST_ADDRESS = 320  # characters
_ADDRESS = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_LONGEST_NAME, _LONGEST_DESCRIPTION = 512, 1024
_FIELD = "notification_channel"


@api.route("POST", _ROOT, needs="monitoring.notificationChannels.create", body=_FIELD)
def create(call: Call) -> Json:
    """Create a channel; Google chooses its id."""
    channel = _complete_channel({key: value for key, value in call.body.items() if key in _SETTABLE})
    store = call.cloud.store
    with store.transaction():
        name, made = new_name(call, "notificationChannels", "channel"), record(call)
        channel |= {"name": name, "creationRecord": made, "mutationRecords": [made]}
        store.put("notificationChannel", name, channel)
    return channel


@api.route("GET", _ROOT, needs="monitoring.notificationChannels.list", query="pageSize pageToken")
def list_channels(call: Call) -> Json:
    """Channels of the project."""
    rows = call.cloud.store.rows("notificationChannel")
    page = call.page(rows, "notificationChannels")
    return page | ({"totalSize": len(rows)} if rows else {})


@api.route("GET", _ONE, needs="monitoring.notificationChannels.get")
def get(call: Call) -> Json:
    """One channel."""
    return _channel(call)[1]


@api.route("PATCH", _ONE, needs="monitoring.notificationChannels.update", query="updateMask", body=_FIELD)
def patch(call: Call) -> Json:
    """Change the fields that the mask names; without one, all of them."""
    store = call.cloud.store
    with store.transaction():
        name, channel = _channel(call)
        changed = _complete_channel(apply_mask(channel, call.body, call.mask() or ["*"], _MESSAGE, _SETTABLE))
        if changed["type"] != channel["type"]:
            raise invalid("Field type cannot be changed.", ("notification_channel.type", "is immutable"))
        kept = {key: value for key, value in channel.items() if key not in _SETTABLE}
        channel = changed | kept | {"mutationRecords": [*channel["mutationRecords"], record(call)]}
        store.put("notificationChannel", name, channel)
    return channel


@api.route("DELETE", _ONE, needs="monitoring.notificationChannels.delete", query="force")
def delete(call: Call) -> Json:
    """Delete a channel that no alert policy names, or by force; a budget that names it keeps the name."""
    store = call.cloud.store
    with store.transaction():
        name, _ = _channel(call)
        for policy, body in store.rows("alertPolicy"):
            named = body.get("notificationChannels") or []
            left = [other for other in named if by_id(other) != name]
            if len(left) == len(named):
                continue
            if not call.flag("force"):
                text = f"Cannot delete notification channel {name}: it is used by the alert policy {policy}."
                raise ApiError("FAILED_PRECONDITION", text)
            kept = {key: value for key, value in body.items() if key != "notificationChannels"}
            store.put("alertPolicy", policy, kept | ({"notificationChannels": left} if left else {}))
        store.delete("notificationChannel", name)
    return {}


def find_channel(store: Store, name: str) -> Json | None:
    """The channel with a full name, by the project's id or number; None where there is none."""
    return store.get("notificationChannel", by_id(name))


def _channel(call: Call) -> tuple[str, Json]:
    name = call.name(_NAME)
    return name, call.row_of("notificationChannel", name, f"Cannot find notification channel with name {name}.")


def _complete_channel(channel: Json) -> Json:
    """A channel with the values that Google fills in.

    Raises:
        ApiError: INVALID_ARGUMENT for a channel that cannot be; NotServedError for another type than `email`.
    """
    kind, labels = channel.get("type", ""), channel.get("labels") or {}
    if kind in _OTHER_TYPES:
        raise unserved_error(f"notification channels of the type {kind}", "use the type email")
    problems = label_problems(channel)
    if kind != "email":
        problems.append(("type", f"{kind!r} is not the type of a channel descriptor"))
    elif len(email := labels.get("email_address", "")) > _LONGEST_ADDRESS or not _ADDRESS.fullmatch(email):
        problems.append(("labels", "email_address must be an e-mail address"))
    if unknown := sorted(labels.keys() - {"email_address"}):
        problems.append(("labels", f"a channel of the type email has no label {', '.join(unknown)}"))
    for field, most in (("displayName", _LONGEST_NAME), ("description", _LONGEST_DESCRIPTION)):
        if len(channel.get(field, "")) > most:
            problems.append((field, f"has more than {most} characters"))
    if problems:
        text = "; ".join(f"{field}: {why}" for field, why in problems)
        raise invalid(f"Field notification_channel had an invalid value: {text}.", *problems)
    kept = {key: value for key, value in channel.items() if value not in ("", {}, None)}
    return {"enabled": True, **kept}
