"""States of managed certificates, of Compute Engine and of Certificate Manager, as time and DNS records move them.

A domain is authorized while its record leads here: for a DNS authorization the CNAME record that this asks for, else an
address record of a forwarding rule whose proxy has the certificate. A certificate is ACTIVE some time after that holds
for all of its domains, and stays so. Nothing runs in the background: each read of a certificate calls `advance` first.
Source: Google's pages on troubleshooting of managed certificates (states, and that they take up to 60 minutes).
"""

from collections.abc import Iterator

from bezel_localcloud.core.json_types import Json, timestamp
from bezel_localcloud.core.store import Store
from bezel_localcloud.routing.context import Context
from bezel_localcloud.services.load_balancing.references import MANAGER

MANAGED, MANAGER_CERTIFICATE = "sslCertificates", "certificatemanager/certificates"
_PROVISIONING, _ACTIVE, _NOT_VISIBLE = "PROVISIONING", "ACTIVE", "FAILED_NOT_VISIBLE"
_PROVISION_SECONDS = 900.0  # platform time from the record to the certificate
_PATIENCE_SECONDS = 900.0  # platform time until a missing record counts as a failure
_LIFE_SECONDS = 90 * 86_400.0


def provision_seconds(cloud: Context) -> float:
    """Platform time from the moment that a domain's record is right until its certificate is ACTIVE."""
    delayed = cloud.faults.find("certificate-delayed")
    return _PROVISION_SECONDS + (delayed.number("seconds") if delayed else 0.0)


def advance(cloud: Context) -> None:
    """Move every managed certificate to its state at this time."""
    now, pace = cloud.pace.now(), cloud.pace
    for kind in (MANAGED, MANAGER_CERTIFICATE):
        for name, row in list(cloud.store.rows(kind)):
            if row.get("_active") or not row.get("managed"):
                continue
            states = {}
            for domain in row["managed"]["domains"]:
                since = authorized_since(cloud.store, kind, name, domain)
                if since is None:
                    late = now >= row["_changed"] + pace.seconds(_PATIENCE_SECONDS)
                    states[domain] = _NOT_VISIBLE if late else _PROVISIONING
                else:
                    due = max(since, row["_changed"]) + pace.seconds(provision_seconds(cloud))
                    states[domain] = _ACTIVE if now >= due else _PROVISIONING
            active = set(states.values()) == {_ACTIVE}
            if active or states != row.get("_states"):
                cloud.store.put(kind, name, row | {"_states": states} | ({"_active": now} if active else {}))


def authorized_since(store: Store, kind: str, name: str, domain: str) -> float | None:
    """Unix seconds since when a domain of a certificate leads here; None while it does not.

    Args:
        store: The store.
        kind: The kind of the certificate's row.
        name: The certificate's name.
        domain: One of its domains.
    """
    row = store.get(kind, name) or {}
    authorizations = [store.get("certificatemanager/dnsAuthorizations", each) for each in _authorizations(row)]
    for authorization in authorizations:
        if authorization and authorization["domain"] == domain.removeprefix("*."):
            record = authorization["dnsResourceRecord"]
            return next(
                (at for data, at in record_data(store, record["name"], "CNAME") if data == record["data"]), None
            )
    if authorizations:
        return None
    moments = [
        max(at, served) for address, at in _addresses_of(store, name) for served in _records(store, domain, address)
    ]
    return min(moments, default=None)


def _authorizations(row: Json) -> list[str]:
    return list(row.get("managed", {}).get("dnsAuthorizations", []))


def _records(store: Store, domain: str, address: str) -> Iterator[float]:
    """Since when the records of a domain have an address."""
    kind = "AAAA" if ":" in address else "A"
    yield from (at for data, at in record_data(store, f"{domain.rstrip('.')}.", kind) if data == address)


def record_data(store: Store, name: str, kind: str) -> Iterator[tuple[str, float]]:
    """(value, Unix seconds of its last change) of each value of a name's records in public zones.

    Args:
        store: The store.
        name: Name with a dot at its end.
        kind: Type of the records.
    """
    for row_name, row in store.rows("dns/rrsets"):
        zone = store.get("dns/managedZones", row_name.rpartition("/rrsets/")[0]) or {}
        if (row["name"], row["type"]) == (name, kind) and zone.get("visibility") == "public":
            yield from ((data, row["_changed"]) for data in row.get("rrdatas", []))


def _addresses_of(store: Store, certificate: str) -> Iterator[tuple[str, float]]:
    """(address, Unix seconds since when) of the forwarding rules of port 443 whose proxy serves a certificate."""
    maps = {
        entry.rpartition("/certificateMapEntries/")[0]: row["_changed"]
        for entry, row in store.rows("certificatemanager/certificateMapEntries")
        if certificate in row.get("certificates", [])
    }
    for rule in (row for _, row in store.rows("globalForwardingRules") if row["portRange"] == "443-443"):
        proxy = store.get("targetHttpsProxies", rule["target"]) or {}
        listed = [link.removeprefix(MANAGER) for link in proxy.get("sslCertificates", [])]
        in_map = maps.get(proxy.get("certificateMap", "").removeprefix(MANAGER))
        if certificate in listed or in_map is not None:
            yield rule["IPAddress"], max(rule["_changed"], proxy["_changed"], in_map or 0.0)


def certificate_json(row: Json) -> Json:
    """The parts of an SSL certificate of Compute Engine that follow from its state."""
    domains = row["managed"]["domains"]
    states = row.get("_states") or dict.fromkeys(domains, _PROVISIONING)
    status = _ACTIVE if row.get("_active") else _PROVISIONING
    shown: Json = {"managed": {"domains": domains, "domainStatus": states, "status": status}}
    shown["subjectAlternativeNames"] = domains
    return shown | ({"expireTime": timestamp(row["_active"] + _LIFE_SECONDS)} if row.get("_active") else {})


def manager_json(row: Json) -> Json:
    """The parts of a certificate of Certificate Manager that follow from its state."""
    domains, tried = row["managed"]["domains"], timestamp(row["_changed"])
    states = row.get("_states") or dict.fromkeys(domains, _PROVISIONING)
    managed: Json = row["managed"] | {"state": _ACTIVE if row.get("_active") else _PROVISIONING}
    managed["authorizationAttemptInfo"] = [_attempt(domain, states[domain], tried) for domain in domains]
    if failed := [domain for domain in domains if states[domain] == _NOT_VISIBLE]:
        details = f"Failed to authorize {', '.join(failed)}: see authorizationAttemptInfo."
        managed["provisioningIssue"] = {"reason": "AUTHORIZATION_ISSUE", "details": details}
    shown: Json = {"managed": managed, "sanDnsnames": domains}
    return shown | ({"expireTime": timestamp(row["_active"] + _LIFE_SECONDS)} if row.get("_active") else {})


def _attempt(domain: str, state: str, tried: str) -> Json:
    if state == _ACTIVE:
        return {"domain": domain, "state": "AUTHORIZED"}
    if state == _PROVISIONING:
        return {"domain": domain, "state": "AUTHORIZING", "attemptTime": tried}
    details = "The domain has no record that leads to this certificate's authorization or load balancer."
    return {"domain": domain, "state": "FAILED", "failureReason": "CONFIG", "details": details, "attemptTime": tried}
