"""Rules of record sets and of changes to a zone, in Cloud DNS's words. Pure."""

import ipaddress
import re
from collections.abc import Iterable

from bezel_localcloud.core.errors import ApiError, unserved_error
from bezel_localcloud.core.json_types import Json

_LABEL = r"(?:\*|[A-Za-z0-9_](?:[-A-Za-z0-9_]{0,61}[A-Za-z0-9_])?)"
_NAME = re.compile(rf"(?:{_LABEL}\.)+")
TYPES = frozenset({"A", "AAAA", "CAA", "CNAME", "HTTPS", "MX", "NS", "PTR", "SOA", "SRV", "SVCB", "TXT"})
_LONGEST_TTL = 2**31 - 1
_Key = tuple[str, str]


def name_servers(number: int) -> list[str]:
    """The four servers of a zone, of one of Google's five groups."""
    return [f"ns-cloud-{'abcde'[number % 5]}{place}.googledomains.com." for place in range(1, 5)]


def first_records(dns_name: str, servers: list[str]) -> list[Json]:
    """The records that a public zone begins with, and keeps."""
    soa = f"{servers[0]} cloud-dns-hostmaster.google.com. 1 21600 3600 259200 300"
    common = {"name": dns_name, "ttl": 21600}
    return [common | {"type": "NS", "rrdatas": servers}, common | {"type": "SOA", "rrdatas": [soa]}]


def check_dns_name(name: str) -> None:
    """Check the name of a zone.

    Raises:
        ApiError: It is no domain with a dot at its end.
    """
    if not _NAME.fullmatch(name) or "*" in name or len(name) > 254:
        raise _invalid("entity.managedZone.dnsName", name)


def check_record(record: Json, dns_name: str, field: str) -> Json:
    """Return a record set with its TTL.

    Args:
        record: The caller's JSON.
        dns_name: Name of the zone.
        field: Its place in the request, for the refusal.

    Raises:
        ApiError: A part is missing or is not what its type needs.
    """
    name, kind, data = record.get("name", ""), record.get("type", ""), record.get("rrdatas") or []
    if kind not in TYPES:
        raise unserved_error(f"records of the type {kind!r}", f"use one of {', '.join(sorted(TYPES))}")
    if not _NAME.fullmatch(name) or not (name == dns_name or name.endswith(f".{dns_name}")):
        raise _invalid(f"{field}.name", name)
    if bool(data) == bool(record.get("routingPolicy")):
        raise _invalid(f"{field}.rrdata", "" if not data else ", ".join(data))
    if kind == "CNAME" and (len(data) > 1 or name == dns_name):
        raise _invalid(f"{field}.rrdata", ", ".join(data))
    for text in data:
        if not _is_data(kind, text):
            raise _invalid(f"{field}.rrdata[0]", text)
    if not 0 <= record.get("ttl", 0) <= _LONGEST_TTL:
        raise _invalid(f"{field}.ttl", record.get("ttl"))
    kept = {key: record[key] for key in ("name", "type", "rrdatas", "routingPolicy") if record.get(key)}
    return kept | {"ttl": record.get("ttl", 0)}


def _is_data(kind: str, text: str) -> bool:
    if kind in {"A", "AAAA"}:
        try:
            return ipaddress.ip_address(text).version == (4 if kind == "A" else 6)
        except ValueError:
            return False
    return bool(_NAME.fullmatch(text)) if kind in {"CNAME", "NS", "PTR"} else bool(text)


def changed_records(present: dict[_Key, Json], deletions: Iterable[Json], additions: Iterable[Json], dns_name: str) -> (
    dict[_Key, Json]
):  # fmt: skip
    """The record sets of a zone after a change, by name and type.

    Args:
        present: Those before it.
        deletions: Record sets as they are.
        additions: Checked record sets.
        dns_name: Name of the zone.

    Raises:
        ApiError: A deletion is not what is there, an addition is there already, the zone would lose what it needs, or
            an alias would stand beside other records.
    """
    left, added = dict(present), set[_Key]()
    for index, record in enumerate(deletions):
        key, field = key_of(record), f"entity.change.deletions[{index}]"
        if key not in left:
            text = f"The '{field}' resource named '{record.get('name')} ({record.get('type')})' does not exist."
            raise ApiError("NOT_FOUND", text, reason="notFound")
        if any(_plain(left[key].get(part)) != _plain(record.get(part)) for part in ("ttl", "rrdatas")):
            raise ApiError(
                "FAILED_PRECONDITION", f"Precondition not met for '{field}'", status=412, reason="conditionNotMet"
            )
        del left[key]
    for index, record in enumerate(additions):
        key = key_of(record)
        if key in left:
            text = f"The resource 'entity.change.additions[{index}]' named '{key[0]} ({key[1]})' already exists"
            raise ApiError("ALREADY_EXISTS", text, reason="alreadyExists")
        left[key] = record
        added.add(key)
    for kind in ("NS", "SOA"):
        if (dns_name, kind) in present and (dns_name, kind) not in left:
            text = f"The resource record set '{dns_name} ({kind})' is invalid because a zone must contain exactly one."
            raise ApiError("FAILED_PRECONDITION", text, reason="invalidZoneApex")
    for name in {name for name, kind in left if kind == "CNAME"}:
        others = [key for key in left if key[0] == name and key[1] != "CNAME"]
        if others and any(key[0] == name for key in added):
            text = f"The resource record set 'entity.change.additions' is invalid because '{name} (CNAME)' conflicts."
            raise ApiError("FAILED_PRECONDITION", text, reason="cnameResourceRecordSetConflict")
    return left


def key_of(record: Json) -> _Key:
    """Name and type of a record set."""
    return record.get("name", ""), record.get("type", "")


def _plain(value: object) -> object:
    return sorted(value) if isinstance(value, list) else value or 0


def _invalid(field: str, value: object) -> ApiError:
    return ApiError("INVALID_ARGUMENT", f"Invalid value for '{field}': '{value}'", reason="invalid")
