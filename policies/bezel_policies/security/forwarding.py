"""Rule of addresses on the internet: what a forwarding rule leads to checks who calls. Pure.

Follows each external forwarding rule, global or of a region, over proxy, URL map and backend service to its backends:
by the resources whose outputs are in their inputs, which a preview knows too, and by written names. Cloud Run and
Cloud Functions check identities (`no-public-invoker` refuses what does not), and so do Identity-Aware Proxy and a VPN
gateway. Whatever else answers, is not in the program or is not known yet, is refused, and so is a proxy without TLS
that leads to anything: it takes callers' tokens in plain text. The services behind an endpoint group may be another
program's.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from bezel.resource_cost.inputs import Inputs
from bezel_base.errors import Problem
from bezel_policies.config import PolicyConfig

_RULE = re.compile(r"gcp:compute/\w+:(?:Global)?ForwardingRule")
_SERVICE = re.compile(r"gcp:compute/\w+:(?:Region)?BackendService")
_BETWEEN = re.compile(r"gcp:compute/\w+:(?:Region)?(?:Target(?:https?|grpc|ssl|tcp)Proxy|UrlMap)", re.IGNORECASE)
_PLAIN_PROXY = re.compile(r"gcp:compute/\w+:(?:Region)?TargetHttpProxy")
_VPN = "gcp:compute/vPNGateway:VPNGateway"
_SERVERLESS = "gcp:compute/regionNetworkEndpointGroup:RegionNetworkEndpointGroup"
# Inputs that send requests further; others, as certificates, policies and tests of a URL map, send none.
_ONWARD = (
    *("target", "backendService", "urlMap", "defaultService", "defaultRouteAction", "defaultCustomErrorResponsePolicy"),
    *("pathMatchers", "backends"),
)
_IDENTIFIED_GROUPS = ("cloudRun", "cloudFunction")
_IDENTIFIED_PROTOCOLS = {"", "HTTP", "HTTPS", "HTTP2", "H2C"}
"""Protocols of Identity-Aware Proxy; it does nothing on a backend service of another one."""
# Names of references in blocks: `service`, `defaultService`, `backendService`, `group`.
_REFERENCE = re.compile(r"\w*service|group", re.IGNORECASE)
_NOT_KNOWN = "(not known before the deploy)"
_CONSEQUENCE = "nothing there checks who calls: anyone on the internet could use what is behind it, at your cost."
_PLAIN_CONSEQUENCE = "callers send their tokens unencrypted: a person who reads one may call in their name."
_PLAIN_REPAIR = "use a TargetHttpsProxy; a plain one may redirect to it (defaultUrlRedirect.httpsRedirect), no more."
_REPAIR = (
    "lead it to Cloud Run (a RegionNetworkEndpointGroup with cloudRun) of this program, or enable Identity-Aware Proxy "
    "on the backend service (iap.enabled)."
)


@dataclass(frozen=True, eq=False)
class LinkedResource:
    """A resource with the resources that its inputs come from.

    Attributes:
        name: Its logical name.
        token: Its type.
        inputs: What is known of it; in a preview without what the cloud sets.
        sources: Input -> resources whose outputs are in it.
    """

    name: str
    token: str
    inputs: Inputs
    sources: dict[str, list["LinkedResource"]] = field(default_factory=dict)


def no_open_address(resources: Iterable[LinkedResource], _config: PolicyConfig) -> Iterator[Problem]:
    """An address on the internet leads only to what checks the caller's identity."""
    computes = [each for each in resources if each.token.startswith("gcp:compute/")]
    for rule in computes:
        if _RULE.fullmatch(rule.token) and not _is_internal(rule):
            open_ends, plain_proxies = _ends(rule, computes)
            for end in dict.fromkeys(open_ends):
                yield Problem(f"{rule.name}.target", end, _CONSEQUENCE, _REPAIR)
            for proxy in plain_proxies:
                yield Problem(f"{rule.name}.target", proxy, _PLAIN_CONSEQUENCE, _PLAIN_REPAIR)


def _is_internal(rule: LinkedResource) -> bool:
    scheme = rule.inputs.get("loadBalancingScheme")
    # Empty: an endpoint of Private Service Connect, which has an internal address.
    return scheme == "" or str(scheme).startswith("INTERNAL")


def _ends(rule: LinkedResource, computes: list[LinkedResource]) -> tuple[list[str], list[str]]:
    """What a rule leads to that checks no caller, and the proxies without TLS on the way to what answers."""
    done: list[LinkedResource] = []
    ends: list[str] = []
    todo = [rule]
    answers = False
    while todo:
        resource = todo.pop()
        if resource in done:
            continue
        done.append(resource)
        is_service = _SERVICE.fullmatch(resource.token) is not None
        answers = answers or is_service
        if is_service and _has_identity_proxy(resource.inputs):
            continue
        if is_service or any(kind.fullmatch(resource.token) for kind in (_RULE, _BETWEEN)):
            for key in _ONWARD:
                following, strangers = _following(resource, key, computes)
                todo += following
                ends += strangers
        elif not _identifies_callers(resource):
            ends.append(_typed_name(resource))
    proxies = [_typed_name(each) for each in done if _PLAIN_PROXY.fullmatch(each.token)]
    return ends, proxies if answers else []


def _has_identity_proxy(service: Inputs) -> bool:
    protocol = str(service.get("protocol") or "").upper()
    return protocol in _IDENTIFIED_PROTOCOLS and bool(service.at("iap").switch("enabled"))


def _identifies_callers(resource: LinkedResource) -> bool:
    if resource.token == _SERVERLESS:
        return any(resource.inputs.get(kind) for kind in _IDENTIFIED_GROUPS)
    return resource.token == _VPN  # of a peer that has the shared key


def _typed_name(resource: LinkedResource) -> str:
    return f"{resource.token.rpartition(':')[2]} {resource.name}"


def _following(
    resource: LinkedResource, key: str, computes: list[LinkedResource]
) -> tuple[list[LinkedResource], list[str]]:
    """Resources that an input sends requests to, and references to what is not in the program."""
    sources = resource.sources.get(key, [])
    following = [each for each in sources if each in computes]
    references = list(_references(resource.inputs.get(key)))
    strangers = [] if references or following or not sources else [_NOT_KNOWN]
    for reference in references:
        named = [each for each in computes if each is not resource and _is_named(each, reference)]
        following += named
        strangers += [] if named else [f"{reference} (not in this program)"]
    return following, strangers


def _references(value: object, name: str = "service") -> Iterator[str]:
    """References to resources in an input, at any depth."""
    if isinstance(value, str) and value and _REFERENCE.fullmatch(name):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _references(part, str(key))
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _references(part, name)


def _is_named(resource: LinkedResource, reference: str) -> bool:
    """Whether a reference is to a resource: `projects/P/regions/R/urlMaps/NAME`, a part of its end, or the name."""
    *path, name = reference.split("/")
    kind = re.sub("^(region|global)", "", resource.token.rpartition(":")[2].lower())
    collection = re.sub("ies$", "y", path[-1].lower()).removesuffix("s") if path else kind
    collection = "vpngateway" if collection == "targetvpngateway" else collection
    is_elsewhere = any(
        _last_part(resource, key) not in (None, place)
        for collection_of, key in (("projects", "project"), ("regions", "region"), ("zones", "zone"))
        for parent, place in pairwise(path)
        if parent == collection_of
    )
    return resource.inputs.get("name") == name and kind == collection and not is_elsewhere


def _last_part(resource: LinkedResource, key: str) -> str | None:
    """The name in an input that is a name or a path; None where it is not written or not known."""
    value = resource.inputs.get(key)
    return value.rpartition("/")[2] if isinstance(value, str) and value else None
