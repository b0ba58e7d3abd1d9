"""Kinds of load-balancing resources, one row each, from addresses to security policies. Pure.

A row says what is served, what cannot be changed and what a resource refers to. Owns the rows. Leaves out the checks of
single kinds (checks.py), references (references.py) and the handlers (api.py).

Sources: the beta's discovery document (fields, verbs); the published roles of Compute Engine (permissions); `gcloud
compute project-info describe` of a new project (quotas).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bezel_localcloud.core.json_types import Json


@dataclass(frozen=True)
class BalancerKind:
    """One kind of resource.

    Attributes:
        permissions: Prefix of its permissions and the discovery document's name of it, "globalAddresses"; also the
            kind of its rows.
        collection: Its segment of the path, "addresses".
        name: Its name in Compute Engine's `kind`, "address".
        noun: Its name in refusals, "address".
        verbs: Methods beside insert, get, list and delete: patch, update (PUT), setLabels.
        served: Fields that a caller may set, beside name, description and labels.
        required: Fields that an insert needs.
        defaults: Fields of a resource whose caller leaves them out.
        fixed: Fields that no change may touch.
        references: Field, at any depth -> collection of what it names.
        fingerprint: Whether a change must have the current fingerprint; None where there is none.
        quota: Name and limit in a new project.
        regional: Whether it is in a region.
        listed: Name of its list in Compute Engine's `kind`, where it is not the name and "List".
        setters: Verb -> the field that it sets.
        setters_at: Verbs whose path lacks `global/`.
    """

    permissions: str
    collection: str
    name: str
    noun: str
    served: frozenset[str]
    verbs: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    defaults: Mapping[str, object] = field(default_factory=dict)
    fixed: frozenset[str] = frozenset()
    references: Mapping[str, str] = field(default_factory=dict)
    fingerprint: bool | None = None
    quota: tuple[str, int] = ("", 0)
    regional: bool = False
    listed: str = ""
    setters: Mapping[str, str] = field(default_factory=dict)
    setters_at: frozenset[str] = frozenset()

    @property
    def has_labels(self) -> bool:
        """Whether it has labels."""
        return "setLabels" in self.verbs


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SERVICE = "backendServices"
_OF_URL_MAPS = dict.fromkeys(("defaultService", "service", "backendService"), _SERVICE)
_CERTIFICATES = {"sslCertificates": "sslCertificates"}

ADDRESS = BalancerKind(
    "globalAddresses", "addresses", "address", "address",
    served=_words("address addressType ipVersion networkTier"), verbs=("setLabels",),
    defaults={"addressType": "EXTERNAL", "ipVersion": "IPV4", "networkTier": "PREMIUM"},
    quota=("STATIC_ADDRESSES", 8),
)  # fmt: skip
FORWARDING_RULE = BalancerKind(
    "globalForwardingRules", "forwardingRules", "forwardingRule", "forwarding_rule",
    served=_words("IPAddress IPProtocol ipVersion loadBalancingScheme networkTier portRange target"),
    verbs=("patch", "setLabels"), required=("target",),
    defaults={"IPProtocol": "TCP", "loadBalancingScheme": "EXTERNAL", "networkTier": "PREMIUM"},
    fixed=_words("name IPAddress IPProtocol ipVersion portRange"),
    references={"target": "targetHttpsProxies"}, fingerprint=False,
    quota=("FORWARDING_RULES", 15), setters={"setTarget": "target"},
)  # fmt: skip
ENDPOINT_GROUP = BalancerKind(
    "regionNetworkEndpointGroups", "networkEndpointGroups", "networkEndpointGroup", "network_endpoint_group",
    served=_words("annotations cloudRun networkEndpointType"), required=("networkEndpointType",),
    defaults={"size": 0}, quota=("NETWORK_ENDPOINT_GROUPS", 100), regional=True,
)  # fmt: skip
BACKEND_SERVICE = BalancerKind(
    "backendServices", _SERVICE, "backendService", "backend_service",
    served=_words(
        "affinityCookieTtlSec backends circuitBreakers compressionMode connectionDraining customRequestHeaders"
        " customResponseHeaders enableCDN iap loadBalancingScheme localityLbPolicy logConfig outlierDetection port"
        " portName protocol securityPolicy sessionAffinity timeoutSec"
    ),
    verbs=("patch", "update"),
    defaults={
        "loadBalancingScheme": "EXTERNAL", "protocol": "HTTP", "sessionAffinity": "NONE", "timeoutSec": 30,
        "affinityCookieTtlSec": 0, "connectionDraining": {"drainingTimeoutSec": 0}, "enableCDN": False,
        "port": 80,
    },
    references={"group": "networkEndpointGroups", "securityPolicy": "securityPolicies"}, fingerprint=True,
    quota=("BACKEND_SERVICES", 9), fixed=_words("name"), setters={"setSecurityPolicy": "securityPolicy"},
)  # fmt: skip
URL_MAP = BalancerKind(
    "urlMaps", "urlMaps", "urlMap", "url_map",
    served=_words("defaultRouteAction defaultService defaultUrlRedirect headerAction hostRules pathMatchers tests"),
    verbs=("patch", "update"), fixed=_words("name"), references=_OF_URL_MAPS, fingerprint=True,
    quota=("URL_MAPS", 10),
)  # fmt: skip
HTTPS_PROXY = BalancerKind(
    "targetHttpsProxies", "targetHttpsProxies", "targetHttpsProxy", "target_https_proxy",
    served=_words(
        "certificateMap httpKeepAliveTimeoutSec proxyBind quicOverride sslCertificates sslPolicy tlsEarlyData urlMap"
    ),
    verbs=("patch",), required=("urlMap",), defaults={"quicOverride": "NONE"}, fixed=_words("name proxyBind"),
    references={"urlMap": "urlMaps", "sslPolicy": "sslPolicies", **_CERTIFICATES}, fingerprint=True,
    quota=("TARGET_HTTPS_PROXIES", 10),
    setters={
        "setUrlMap": "urlMap", "setSslCertificates": "sslCertificates", "setSslPolicy": "sslPolicy",
        "setCertificateMap": "certificateMap", "setQuicOverride": "quicOverride",
    },
    setters_at=_words("setUrlMap setSslCertificates"),
)  # fmt: skip
HTTP_PROXY = BalancerKind(
    "targetHttpProxies", "targetHttpProxies", "targetHttpProxy", "target_http_proxy",
    served=_words("httpKeepAliveTimeoutSec proxyBind urlMap"), verbs=("patch",), required=("urlMap",),
    fixed=_words("name proxyBind"), references={"urlMap": "urlMaps"}, fingerprint=True,
    quota=("TARGET_HTTP_PROXIES", 10), setters={"setUrlMap": "urlMap"}, setters_at=_words("setUrlMap"),
)  # fmt: skip
SSL_CERTIFICATE = BalancerKind(
    "sslCertificates", "sslCertificates", "sslCertificate", "ssl_certificate", served=_words("managed type"),
    quota=("SSL_CERTIFICATES", 10),
)  # fmt: skip
SSL_POLICY = BalancerKind(
    "sslPolicies", "sslPolicies", "sslPolicy", "ssl_policy", served=_words("customFeatures minTlsVersion profile"),
    verbs=("patch",), defaults={"profile": "COMPATIBLE", "minTlsVersion": "TLS_1_0"}, fixed=_words("name"),
    fingerprint=True, quota=("SSL_POLICIES", 10), listed="sslPoliciesList",
)  # fmt: skip
SECURITY_POLICY = BalancerKind(
    "securityPolicies", "securityPolicies", "securityPolicy", "security_policy",
    served=_words("adaptiveProtectionConfig advancedOptionsConfig recaptchaOptionsConfig rules type"),
    verbs=("patch", "setLabels"), defaults={"type": "CLOUD_ARMOR"}, fixed=_words("name rules type"),
    fingerprint=True, quota=("SECURITY_POLICIES", 10),
)  # fmt: skip
KINDS = (
    ADDRESS, FORWARDING_RULE, ENDPOINT_GROUP, BACKEND_SERVICE, URL_MAP, HTTPS_PROXY, HTTP_PROXY, SSL_CERTIFICATE,
    SSL_POLICY, SECURITY_POLICY,
)  # fmt: skip
OF_COLLECTION: dict[str, BalancerKind] = {kind.collection: kind for kind in KINDS}
# Fields that the platform sets, whatever a caller sends.
PLATFORMS = frozenset(
    {"id", "kind", "selfLink", "selfLinkWithId", "creationTimestamp", "region", "fingerprint", "labelFingerprint"}
)
Row = Json
"""A resource as stored: with names for links, its `id`, `creationTimestamp` and, as `_changed`, when it changed."""
