"""Load balancing, Certificate Manager and Cloud DNS for the Google at the wire."""

import re
from typing import Any

NOW = "2026-11-21T10:00:00.000000Z"
SERVERS = [f"ns-cloud-a{number}.googledomains.com." for number in range(1, 5)]
VERBS = (
    *("setLabels", "setTarget", "setUrlMap", "setSslCertificates", "setSslPolicy", "setCertificateMap"),
    *("setQuicOverride", "setSecurityPolicy", "addRule", "patchRule", "removeRule"),
)
ADDRESS = "203.0.113.10"


def whole_path(path: str) -> str:
    """The path of a resource that a verb's path names without `global/`."""
    return re.sub(r"(/projects/[^/]+)/(target\w+/)", r"\1/global/\2", path)


def resource_of(key: str, body: dict[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """A resource of Compute Engine; one of a load balancer with what Google adds to it."""
    collection = key.split("/")[-2]
    if collection not in _ADDITIONS:
        return made
    marks = {"fingerprint": "fingerprint=", "labelFingerprint": "labels="}
    whole = _ADDITIONS[collection] | marks | made
    if collection == "forwardingRules":
        whole |= {"IPAddress": ADDRESS, "portRange": f"{body['portRange']}-{body['portRange']}"}
    return whole


_ADDITIONS: dict[str, dict[str, Any]] = {
    "addresses": {"address": ADDRESS, "addressType": "EXTERNAL", "ipVersion": "IPV4"},
    "forwardingRules": {"IPProtocol": "TCP", "networkTier": "PREMIUM"},
    "networkEndpointGroups": {},
    "backendServices": {"portName": "http", "sessionAffinity": "NONE", "timeoutSec": 30},
    "urlMaps": {},
    "targetHttpsProxies": {},
    "targetHttpProxies": {},
    "sslCertificates": {},
    "sslPolicies": {"enabledFeatures": ["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"]},
    "securityPolicies": {"type": "CLOUD_ARMOR"},
}


def change(thing: dict[str, Any], verb: str, query: dict[str, str], body: dict[str, Any] | None) -> dict[str, Any]:
    """What a verb makes of a resource: the fields that it changes."""
    rules = [rule for rule in thing.get("rules", []) if str(rule["priority"]) != query.get("priority")]
    if verb in {"addRule", "patchRule"}:
        return {"rules": [*rules, body]}
    return {"rules": rules} if verb == "removeRule" else dict(body or {})


def with_name(path: str, key: str, made: dict[str, Any]) -> dict[str, Any]:
    """A resource of Cloud DNS or Certificate Manager as these show it; one of another API as it is."""
    if path.startswith("/dns/"):
        zone = {key: value for key, value in made.items() if key != "createTime"}
        return {"kind": "dns#managedZone", "id": "7", "creationTime": NOW, "nameServers": SERVERS} | zone
    if path.startswith("/certificatemanager/"):
        return made | {"name": key.removeprefix("/certificatemanager/v1/")}
    return made


def records_of_zone(
    things: dict[str, dict[str, Any]], path: str, query: dict[str, str], body: dict[str, Any] | None, number: int
) -> tuple[int, dict[str, Any]]:
    """Record sets of a zone, a change of them, or the state of a change."""
    if "/changes/" in path:
        return 200, {"id": path.rpartition("/")[2], "status": "done"}
    if path.endswith("/changes"):
        return _change_records(things, path.removesuffix("/changes") + "/rrsets", body or {}, number)
    below = [thing for key, thing in things.items() if key.startswith(f"{path}/")]
    return 200, {"rrsets": [thing for thing in below if thing["name"] == query.get("name", thing["name"])]}


def _change_records(
    things: dict[str, dict[str, Any]], sets: str, body: dict[str, Any], number: int
) -> tuple[int, dict[str, Any]]:
    for record in body.get("deletions", []):
        if things.pop(f"{sets}/{record['name']}/{record['type']}", None) is None:
            return 404, {"error": {"code": 404, "message": "There is no such record set."}}
    for record in body.get("additions", []):
        things[f"{sets}/{record['name']}/{record['type']}"] = record
    return 200, body | {"id": str(number), "status": "pending"}
