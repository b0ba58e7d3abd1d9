"""Kinds of Certificate Manager's resources, one row each, with the checks of one by itself. Pure."""

import re
import zlib
from collections.abc import Callable
from dataclasses import dataclass

from bezel_localcloud.core.errors import invalid, unserved_error
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.services.load_balancing.checks import check_domains

_HOST = re.compile(r"(?:\*\.)?(?:[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z0-9-]{1,63}")
_MOST_CERTIFICATES = 4  # of a map entry; source: the document's text on the field


@dataclass(frozen=True)
class ManagerKind:
    """One kind of resource.

    Attributes:
        collection: Last collection of its names.
        parent: Collection of the resource that it is in, "" for the location.
        id_parameter: Query parameter with the id of a new one.
        body: Field that the body is bound to.
        permissions: Prefix of its permissions. Source: the published roles of Certificate Manager.
        message: Its message.
        settable: Fields that a create may set.
        changeable: Those that an update may change.
        completed: Adds to a body what the platform decides, and checks it.
        references: Fields with names of other resources -> their collection.
    """

    collection: str
    parent: str
    id_parameter: str
    body: str
    permissions: str
    message: str
    settable: frozenset[str]
    changeable: frozenset[str]
    completed: Callable[[str, Json], Json]
    references: tuple[tuple[str, str], ...] = ()

    @property
    def row_kind(self) -> str:
        """The kind of its rows."""
        return f"certificatemanager/{self.collection}"


def _certificate(name: str, body: Json) -> Json:
    del name
    if body.get("selfManaged") or body.get("managedIdentity") or not body.get("managed"):
        raise unserved_error("certificates that the caller brings", "use managed.domains")
    if body.get("scope", "DEFAULT") != "DEFAULT":
        raise unserved_error(f"the scope {body['scope']}", "leave scope out: DEFAULT is that of global load balancers")
    managed = body["managed"]
    if managed.get("issuanceConfig"):
        raise unserved_error("issuanceConfig", "use dnsAuthorizations")
    domains = managed.get("domains") or []
    check_domains("certificate.managed.domains", domains)
    if not managed.get("dnsAuthorizations") and any(domain.startswith("*") for domain in domains):
        text = "A certificate for a wildcard domain needs a DNS authorization."
        raise invalid(text, ("certificate.managed.dns_authorizations", text))
    return body | {"managed": {"domains": domains, "dnsAuthorizations": managed.get("dnsAuthorizations") or []}}


def _map(name: str, body: Json) -> Json:
    del name
    return body


def _entry(name: str, body: Json) -> Json:
    del name
    if bool(body.get("hostname")) == (body.get("matcher") == "PRIMARY"):
        text = "Exactly one of hostname and matcher must be set."
        raise invalid(text, ("certificate_map_entry.hostname", text))
    if body.get("hostname") and not _HOST.fullmatch(body["hostname"]):
        text = f"Invalid hostname {body['hostname']!r}: it must be a domain in lower case, or one after '*.'."
        raise invalid(text, ("certificate_map_entry.hostname", text))
    if not 1 <= len(body.get("certificates") or []) <= _MOST_CERTIFICATES:
        text = f"A certificate map entry has 1 to {_MOST_CERTIFICATES} certificates."
        raise invalid(text, ("certificate_map_entry.certificates", text))
    return body | {"state": "ACTIVE"}


def _authorization(name: str, body: Json) -> Json:
    domain = body.get("domain") or ""
    check_domains("dns_authorization.domain", [domain])
    if domain.startswith("*"):
        text = "A DNS authorization is for a domain and its wildcard: name the domain without '*.'."
        raise invalid(text, ("dns_authorization.domain", text))
    kind = body.get("type", "FIXED_RECORD")
    label = "" if kind == "FIXED_RECORD" else f"_{zlib.crc32(PROJECT.encode()):08x}"
    token = f"{zlib.crc32(name.encode()):08x}-{zlib.crc32(domain.encode()):08x}"
    record = {
        "name": f"_acme-challenge{label}.{domain.rstrip('.')}.",
        "type": "CNAME",
        "data": f"{token}.1.authorize.certificatemanager.goog.",
    }
    return body | {"domain": domain.rstrip("."), "type": kind, "dnsResourceRecord": record}


_DESCRIBED = frozenset({"description", "labels"})
CERTIFICATE = ManagerKind(
    "certificates", "", "certificateId", "certificate", "certificatemanager.certs", "Certificate",
    _DESCRIBED | {"managed", "managedIdentity", "scope", "selfManaged"}, _DESCRIBED, _certificate,
    (("dnsAuthorizations", "dnsAuthorizations"),),
)  # fmt: skip
MAP = ManagerKind(
    "certificateMaps", "", "certificateMapId", "certificateMap", "certificatemanager.certmaps", "CertificateMap",
    _DESCRIBED, _DESCRIBED, _map,
)  # fmt: skip
ENTRY = ManagerKind(
    "certificateMapEntries", "certificateMaps", "certificateMapEntryId", "certificateMapEntry",
    "certificatemanager.certmapentries", "CertificateMapEntry",
    _DESCRIBED | {"certificates", "hostname", "matcher"}, _DESCRIBED | {"certificates"}, _entry,
    (("certificates", "certificates"),),
)  # fmt: skip
AUTHORIZATION = ManagerKind(
    "dnsAuthorizations", "", "dnsAuthorizationId", "dnsAuthorization", "certificatemanager.dnsauthorizations",
    "DnsAuthorization", _DESCRIBED | {"domain", "type"}, _DESCRIBED, _authorization,
)  # fmt: skip
KINDS = (CERTIFICATE, MAP, ENTRY, AUTHORIZATION)
