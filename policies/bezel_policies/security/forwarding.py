"""Rule of addresses on the internet: what a forwarding rule leads to checks who calls. Pure.

Follows each external forwarding rule over proxy, URL map and backend service to its backends: by the resources whose
outputs are in their inputs, which a preview knows too, and by written names. Cloud Run checks identities
(`no-public-invoker` refuses a service that does not), and so does Identity-Aware Proxy. Whatever else answers, or is
not in the program, is refused. The services behind an endpoint group may be another program's.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from bezel.resource_cost.inputs import Inputs
from bezel_base.errors import Problem
from bezel_policies.config import PolicyConfig

_RULE = re.compile(r"gcp:compute/\w+:(?:Global)?ForwardingRule")
_SERVICE = re.compile(r"gcp:compute/\w+:(?:Region)?BackendService")
_BETWEEN = re.compile(r"gcp:compute/\w+:(?:Region)?(?:Target(?:https?|grpc|ssl|tcp)Proxy|UrlMap)", re.IGNORECASE)
_SERVERLESS = "gcp:compute/regionNetworkEndpointGroup:RegionNetworkEndpointGroup"
# Inputs that send requests further; others, as certificates, policies and tests of a URL map, send none.
_ONWARD = ("target", "backendService", "urlMap", "defaultService", "defaultRouteAction", "pathMatchers", "backends")
# Names of references in blocks: `service`, `defaultService`, `backendService`, `group`.
_REFERENCE = re.compile(r"\w*service|group", re.IGNORECASE)
_NOT_KNOWN = "(not known before the deploy)"
_CONSEQUENCE = "nothing there checks who calls: anyone on the internet could use what is behind it, at your cost."
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
            for end in dict.fromkeys(_open_ends(rule, computes)):
                yield Problem(f"{rule.name}.target", end, _CONSEQUENCE, _REPAIR)


def _is_internal(rule: LinkedResource) -> bool:
    scheme = rule.inputs.get("loadBalancingScheme")
    # Empty: an endpoint of Private Service Connect, which has an internal address.
    return scheme == "" or str(scheme).startswith("INTERNAL")


def _open_ends(rule: LinkedResource, computes: list[LinkedResource]) -> Iterator[str]:
    """What a rule leads to that checks no caller."""
    done: list[LinkedResource] = []
    todo = [rule]
    while todo:
        resource = todo.pop()
        if resource in done:
            continue
        done.append(resource)
        if _SERVICE.fullmatch(resource.token) and resource.inputs.at("iap").switch("enabled"):
            continue
        if any(kind.fullmatch(resource.token) for kind in (_RULE, _BETWEEN, _SERVICE)):
            for key in _ONWARD:
                following, strangers = _following(resource, key, computes)
                todo += following
                yield from strangers
        elif resource.token != _SERVERLESS or not resource.inputs.get("cloudRun"):
            yield f"{resource.token.rpartition(':')[2]} {resource.name}"


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
    """Whether a reference is to a resource: `…/urlMaps/NAME`, or the name alone."""
    *path, name = reference.split("/")
    kind = re.sub("^(region|global)", "", resource.token.rpartition(":")[2].lower())
    collection = re.sub("ies$", "y", path[-1].lower()).removesuffix("s") if path else kind
    return resource.inputs.get("name") == name and kind == collection
