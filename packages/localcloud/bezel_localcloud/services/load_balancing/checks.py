"""Checks of one load-balancing resource by itself, and what the platform adds to it, by kind. Pure."""

import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import Any

from bezel_localcloud.core.errors import ApiError, refuse_unserved, unserved_error
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.services.compute.errors import missing, wrong
from bezel_localcloud.services.compute.vpc_kinds import check_name
from bezel_localcloud.services.load_balancing.kinds import PLATFORMS, BalancerKind

_SCHEMES = frozenset({"EXTERNAL", "EXTERNAL_MANAGED"})
_PORTS = re.compile(r"([0-9]{1,5})(?:-([0-9]{1,5}))?")
_DOMAIN = re.compile(r"(?:\*\.)?(?:[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?\.)+[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?\.?")
# What a route rule may look at here; see routes.py.
_MATCHED = frozenset({"fullPathMatch", "headerMatches", "ignoreCase", "prefixMatch"})
_OF_HEADERS = frozenset({"exactMatch", "headerName", "invertMatch", "prefixMatch", "presentMatch", "suffixMatch"})
_MOST_DOMAINS = 100  # of a managed certificate; source: Google's page on quotas of SSL certificates
LAST_PRIORITY = 2**31 - 1
"""Priority of a security policy's default rule."""
_DEFAULT_RULE: Json = {
    "action": "allow", "description": "default rule", "preview": False, "priority": LAST_PRIORITY,
    "match": {"versionedExpr": "SRC_IPS_V1", "config": {"srcIpRanges": ["*"]}},
}  # fmt: skip
# Source: Google's page on SSL policies, the features of each profile.
_MODERN = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
    "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
]  # fmt: skip
_OLDER = [
    "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA",
    "TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA",
]  # fmt: skip
_OLDEST = [
    "TLS_RSA_WITH_3DES_EDE_CBC_SHA", "TLS_RSA_WITH_AES_128_CBC_SHA", "TLS_RSA_WITH_AES_128_GCM_SHA256",
    "TLS_RSA_WITH_AES_256_CBC_SHA", "TLS_RSA_WITH_AES_256_GCM_SHA384",
]  # fmt: skip
PROFILES = {"COMPATIBLE": sorted(_MODERN + _OLDER + _OLDEST), "MODERN": sorted(_MODERN + _OLDER), "RESTRICTED": _MODERN}


def complete(kind: BalancerKind, body: Json) -> Json:
    """Return a resource with all its defaults.

    Raises:
        ApiError: For an invalid resource, and for features that localcloud does not support.
    """
    check_name(body.get("name"))
    served = kind.served | PLATFORMS | {"name", "description"} | ({"labels"} if kind.has_labels else frozenset())
    if refused := sorted(field for field, value in body.items() if value and field not in served):
        raise unserved_error(f"{', '.join(refused)} of {kind.collection}")
    for field in kind.required:
        if not body.get(field):
            raise missing(f"resource.{field}")
    row = {**kind.defaults, **{field: value for field, value in body.items() if value not in (None, "")}}
    if "loadBalancingScheme" in row and row["loadBalancingScheme"] not in _SCHEMES:
        raise unserved_error(f"loadBalancingScheme {row['loadBalancingScheme']}", "use EXTERNAL_MANAGED")
    if row.get("networkTier", "PREMIUM") != "PREMIUM":
        raise wrong("resource.networkTier", row["networkTier"], "A global resource is of the tier PREMIUM.")
    return _COMPLETED[kind.name](row) if kind.name in _COMPLETED else row


def _address(row: Json) -> Json:
    if row["addressType"] != "EXTERNAL":
        raise unserved_error("internal global addresses", "leave addressType out")
    if row.get("address"):
        raise unserved_error("a global address that the caller chooses", "leave address out: Google chooses one too")
    return row


def _forwarding_rule(row: Json) -> Json:
    match = _PORTS.fullmatch(row.get("portRange", ""))
    if not row.get("portRange"):
        raise missing("resource.portRange")
    if match is None or int(match[1]) != int(match[2] or match[1]) or not 0 < int(match[1]) < 2**16:
        raise wrong("resource.portRange", row["portRange"], "A global forwarding rule of a proxy has one port.")
    if row["IPProtocol"] != "TCP":
        raise wrong("resource.IPProtocol", row["IPProtocol"], "A target proxy needs TCP.")
    if not re.search("/targetHttps?Proxies/", row["target"]):
        raise unserved_error(f"the target {row['target']}", "use a target HTTP or HTTPS proxy")
    return row | {"portRange": f"{int(match[1])}-{int(match[1])}"}


def _endpoint_group(row: Json) -> Json:
    if row["networkEndpointType"] != "SERVERLESS":
        raise unserved_error(f"network endpoint groups of the type {row['networkEndpointType']}", "use SERVERLESS")
    if not any((row.get("cloudRun") or {}).get(field) for field in ("service", "urlMask")):
        raise wrong("resource.cloudRun", row.get("cloudRun"), "A serverless group needs a service or a URL mask.")
    return row


def _backend_service(row: Json) -> Json:
    if row["enableCDN"] or (row.get("iap") or {}).get("enabled"):
        raise unserved_error("Cloud CDN and Identity-Aware Proxy of a backend service")
    for index, backend in enumerate(row.get("backends", [])):
        field = f"resource.backends[{index}]"
        if not backend.get("group"):
            raise missing(f"{field}.group")
        if "/networkEndpointGroups/" not in backend["group"]:
            raise unserved_error(f"the backend {backend['group']}", "use a serverless network endpoint group")
        if backend.get("maxUtilization"):
            text = "Max utilization is not supported for Serverless network endpoint groups."
            raise wrong(f"{field}.maxUtilization", backend["maxUtilization"], text)
    groups = [backend["group"] for backend in row.get("backends", [])]
    if repeated := sorted({group for group in groups if groups.count(group) > 1}):
        raise wrong("resource.backends", repeated[0], "A backend service names each group once.")
    defaults = {"balancingMode": "UTILIZATION", "capacityScaler": 1}
    backends = [defaults | backend for backend in row.get("backends", [])]
    return row | ({"backends": backends} if backends else {})


def _url_map(row: Json) -> Json:
    _check_default(row, "resource")
    names = [matcher.get("name") for matcher in row.get("pathMatchers", [])]
    for index, matcher in enumerate(row.get("pathMatchers", [])):
        field = f"resource.pathMatchers[{index}]"
        check_name(matcher.get("name"))
        _check_default(matcher, field)
        if matcher.get("pathRules") and matcher.get("routeRules"):
            raise wrong(field, matcher["name"], "A path matcher has path rules or route rules.")
        for rule in matcher.get("routeRules", []):
            for match in rule.get("matchRules", []):
                refuse_unserved(match, match.keys() - _MATCHED, "matchRules")
                for header in match.get("headerMatches", []):
                    refuse_unserved(header, header.keys() - _OF_HEADERS, "headerMatches")
    used = {rule.get("pathMatcher") for rule in row.get("hostRules", [])}
    if unknown := sorted(str(name) for name in used - set(names)):
        raise wrong("resource.hostRules.pathMatcher", unknown[0], "The URL map has no such path matcher.")
    if unused := sorted(str(name) for name in set(names) - used):
        raise wrong("resource.pathMatchers", unused[0], "No host rule uses the path matcher.")
    return row


def _check_default(part: Json, field: str) -> None:
    """Check that a URL map, or a path matcher, says once where requests go that no rule fits."""
    ways = [way for way in ("defaultService", "defaultUrlRedirect") if part.get(way)]
    weighted = (part.get("defaultRouteAction") or {}).get("weightedBackendServices")
    if len(ways) + bool(weighted) != 1:
        text = "Exactly one of defaultService, defaultUrlRedirect and weighted backend services must be specified."
        raise wrong(f"{field}.defaultService", part.get("defaultService", ""), text)


def _ssl_certificate(row: Json) -> Json:
    if row.get("type", "MANAGED") != "MANAGED" or not row.get("managed"):
        raise unserved_error("certificates that the caller brings", "set type to MANAGED and managed.domains")
    domains = row["managed"].get("domains") or []
    check_domains("resource.managed.domains", domains)
    if any(domain.startswith("*") for domain in domains):
        raise wrong("resource.managed.domains", domains, "Wildcards are not supported: use Certificate Manager.")
    return row | {"type": "MANAGED", "managed": {"domains": [domain.rstrip(".") for domain in domains]}}


def check_domains(field: str, domains: list[str]) -> None:
    """Check the domains of a managed certificate.

    Raises:
        ApiError: There is none, there are too many, or one is no domain.
    """
    if not 1 <= len(domains) <= _MOST_DOMAINS:
        raise wrong(field, domains, f"A managed certificate has 1 to {_MOST_DOMAINS} domains.")
    for domain in domains:
        if not _DOMAIN.fullmatch(domain) or len(domain) > 253:
            raise wrong(field, domain, "Must be a fully qualified domain name in lower case.")


def _ssl_policy(row: Json) -> Json:
    custom = row.get("customFeatures") or []
    if row["profile"] == "FIPS_202205":
        raise unserved_error("the profile FIPS_202205", "use MODERN or RESTRICTED")
    if (row["profile"] == "CUSTOM") != bool(custom):
        raise wrong("resource.customFeatures", custom, "Required with, and only with, the profile CUSTOM.")
    if unknown := [feature for feature in custom if feature not in PROFILES["COMPATIBLE"]]:
        raise wrong("resource.customFeatures", unknown[0], "There is no such feature.")
    if row["minTlsVersion"] == "TLS_1_3" and row["profile"] != "RESTRICTED":
        raise wrong("resource.minTlsVersion", "TLS_1_3", "TLS 1.3 needs the profile RESTRICTED.")
    return row | {"enabledFeatures": sorted(custom) or PROFILES[row["profile"]]}


def _security_policy(row: Json) -> Json:
    if row["type"] != "CLOUD_ARMOR":
        raise unserved_error(f"security policies of the type {row['type']}", "use CLOUD_ARMOR")
    rules = [security_rule(rule) for rule in row.get("rules", [])]
    if all(rule["priority"] != LAST_PRIORITY for rule in rules):
        rules.append(_DEFAULT_RULE)
    if len({rule["priority"] for rule in rules}) < len(rules):
        raise wrong("resource.rules", len(rules), "Cannot have rules with the same priorities.")
    return row | {"rules": sorted(rules, key=lambda rule: int(rule["priority"]))}


def security_rule(rule: Json) -> Json:
    """Return a rule of a security policy with its defaults.

    Raises:
        ApiError: It lacks a part, or a range is none.
    """
    for field in ("action", "match"):
        if not rule.get(field):
            raise missing(f"resource.{field}")
    for text in _ranges(rule):
        _check_range(text)
    return {"priority": 0, "preview": False, "description": ""} | rule


def _ranges(rule: Json) -> Iterator[str]:
    yield from (rule["match"].get("config") or {}).get("srcIpRanges", [])


def _check_range(text: Any) -> None:
    try:
        if text != "*":
            ipaddress.ip_network(text, strict=False)
    except ValueError:
        raise wrong("resource.match.config.srcIpRanges", text, "Must be a CIDR address range or *") from None


def _https_proxy(row: Json) -> Json:
    if row.get("sslCertificates") and len(row["sslCertificates"]) > 15:
        raise wrong("resource.sslCertificates", len(row["sslCertificates"]), "At most 15 certificates.")
    return row


def stale(what: str) -> ApiError:
    """412 for a fingerprint that is not the current one."""
    return ApiError("FAILED_PRECONDITION", f"Invalid {what}.", status=412, reason="conditionNotMet")


_COMPLETED: dict[str, Callable[[Json], Json]] = {
    "address": _address,
    "forwardingRule": _forwarding_rule,
    "networkEndpointGroup": _endpoint_group,
    "backendService": _backend_service,
    "urlMap": _url_map,
    "targetHttpsProxy": _https_proxy,
    "sslCertificate": _ssl_certificate,
    "sslPolicy": _ssl_policy,
    "securityPolicy": _security_policy,
}
