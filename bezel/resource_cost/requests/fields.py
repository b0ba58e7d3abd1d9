"""Bodies of requests that are understood whole: every field whose meaning for price and access is known here.

A body with any other field is not understood. Source of the fields: the discovery documents of tpu v2alpha1 and v2
(revision 20261001), compute v1 (20261106) and run v2 (20261031). Left out on purpose: fields that add hardware
(`guestAccelerators`), take it from elsewhere (`sourceMachineImage`, reservations), or end a lease in another way.
"""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bezel.resource_cost.inputs import Inputs, camel

VALUE: Final = "value"
"""One text, number or switch."""
ANY: Final = "any"
"""Names and values of the user's own: labels, metadata."""
Fields = Mapping[str, Any]
"""Name -> VALUE, ANY, fields of an object, or a list with one of these for its entries."""
LONGEST_BODY = 2**20
"""Characters of a body: Cloud Scheduler takes jobs of 1 MB."""

_NETWORK: Fields = {"network": VALUE, "subnetwork": VALUE, "enableExternalIps": VALUE}
NODE: Fields = {
    "acceleratorType": VALUE,
    "acceleratorConfig": {"type": VALUE, "topology": VALUE},
    "runtimeVersion": VALUE,
    "description": VALUE,
    "networkConfig": _NETWORK,
    "networkConfigs": [_NETWORK],
    "serviceAccount": {"email": VALUE, "scope": [VALUE]},
    "metadata": ANY,
    "labels": ANY,
    "tags": [VALUE],
    "shieldedInstanceConfig": {"enableSecureBoot": VALUE},
}
_MANY: Fields = {"nodeCount": VALUE, "nodeIdPrefix": VALUE}
_SPEC: Fields = {
    "parent": VALUE, "nodeId": VALUE, "node": NODE, "multisliceParams": _MANY, "multiNodeParams": _MANY
}  # fmt: skip
QUEUED_RESOURCE: Fields = {
    "tpu": {"nodeSpec": [_SPEC]},
    "provisioningModel": VALUE,
    "runDuration": {"maxRunDuration": VALUE},
    "queueingPolicy": {"validUntilDuration": VALUE, "validUntilTime": VALUE},
    "spot": {},
    "bestEffort": {},
}
_DISK: Fields = {
    "autoDelete": VALUE,
    "boot": VALUE,
    "deviceName": VALUE,
    "initializeParams": {"sourceImage": VALUE, "diskSizeGb": VALUE, "diskType": VALUE, "labels": ANY},
}
INSTANCE: Fields = {
    "name": VALUE,
    "description": VALUE,
    "machineType": VALUE,
    "scheduling": {
        "provisioningModel": VALUE,
        "preemptible": VALUE,
        "automaticRestart": VALUE,
        "onHostMaintenance": VALUE,
        "instanceTerminationAction": VALUE,
        "maxRunDuration": {"seconds": VALUE},
    },
    "disks": [_DISK],
    "metadata": {"items": [{"key": VALUE, "value": VALUE}]},
    "serviceAccounts": [{"email": VALUE, "scopes": [VALUE]}],
    "labels": ANY,
    "reservationAffinity": {"consumeReservationType": VALUE},
    "tags": {"items": [VALUE]},
    "networkInterfaces": [{"network": VALUE, "subnetwork": VALUE, "accessConfigs": ANY, "ipv6AccessConfigs": ANY}],
    "params": {"requestValidForDuration": {"seconds": VALUE}},
    "shieldedInstanceConfig": {"enableSecureBoot": VALUE, "enableVtpm": VALUE, "enableIntegrityMonitoring": VALUE},
}
MINIMUM: Fields = {"scaling": {"minInstanceCount": VALUE}}


def body_of(target: Inputs) -> Inputs:
    """The body of a request that Cloud Scheduler sends: an object as JSON, in base64.

    Raises:
        InputError: It is another text, names a field twice, or is not known yet.
    """
    text = target.text("body") or ""
    if len(text) > LONGEST_BODY:
        raise target.refusal("(text)", f"it is longer than {LONGEST_BODY} characters.", "write a shorter one.", "body")
    try:
        decoded = base64.b64decode(text, validate=True).decode("utf-8")
        parsed = json.loads(decoded, object_pairs_hook=_object, parse_constant=_no_number)
    except (binascii.Error, ValueError, RecursionError):
        raise target.refusal("(text)", "expected JSON in base64.", "write the body of the request.", "body") from None
    return Inputs(parsed, (*target.where, "body"))


def unread_field(value: object, fields: object, path: tuple[str, ...] = ()) -> tuple[str, ...] | None:
    """The path of the first field that is not among the known ones, or has another shape; None without one."""
    if value is None or fields is ANY:
        return None
    if isinstance(fields, Mapping):
        if not isinstance(value, Mapping):
            return path
        for name, inner in value.items():
            field = fields.get(camel(name))
            unread = (*path, name) if field is None else unread_field(inner, field, (*path, name))
            if unread:
                return unread
        return None
    if isinstance(fields, Sequence) and not isinstance(fields, str):
        if not isinstance(value, list):
            return path
        entries = (unread_field(entry, fields[0], (*path, str(number))) for number, entry in enumerate(value))
        return next((unread for unread in entries if unread), None)
    return path if isinstance(value, Mapping | list) else None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a name stands twice")
    return members


def _no_number(name: str) -> Any:
    raise ValueError(name)
