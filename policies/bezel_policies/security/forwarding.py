"""Rule of addresses on the internet: what a forwarding rule leads to checks who calls. Pure.

Follows each external forwarding rule, global or of a region, over proxy, URL map and backend service to its backends:
by the resources whose outputs are in their inputs, which a preview knows too, and by written names. Cloud Run and
Cloud Functions check identities (`no-public-invoker` refuses what does not), and so do Identity-Aware Proxy and a VPN
gateway. Whatever else answers, is not in the program or is not known yet, is refused, and so is a proxy without TLS
that leads to anything: it takes callers' tokens in plain text. The services behind an endpoint group may be another
program's.

A door of keys has an address of its own and checks callers itself, by its program (`no-public-invoker` judges that).
Its image has to be Docker Hub's: from a repository of this program that pulls from there.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from bezel.resource_cost.inputs import Inputs
from bezel_base.errors import Problem
from bezel_policies.config import PolicyConfig
from bezel_policies.security.door import image_repository, is_meant_as_door

_RULE = re.compile(r"gcp:compute/\w+:(?:Global)?ForwardingRule")
_SERVICE = re.compile(r"gcp:compute/\w+:(?:Region)?BackendService")
_BETWEEN = re.compile(r"gcp:compute/\w+:(?:Region)?(?:Target(?:https?|grpc|ssl|tcp)Proxy|UrlMap)", re.IGNORECASE)
_PLAIN_PROXY = re.compile(r"gcp:compute/\w+:(?:Region)?TargetHttpProxy")
_VPN = "gcp:compute/vPNGateway:VPNGateway"
_REPOSITORY = "gcp:artifactregistry/repository:Repository"
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
_IMAGE_CONSEQUENCE = (
    "everyone may send requests to it, and its image may be another one than Docker Hub's: nothing says that it checks "
    "keys."
)
_IMAGE_REPAIR = "pull it through a repository of this program with publicRepository DOCKER_HUB (ContainerImage does)."
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
    resources = tuple(resources)
    computes = [each for each in resources if each.token.startswith("gcp:compute/")]
    for rule in computes:
        if _RULE.fullmatch(rule.token) and not _is_internal(rule):
            open_ends, plain_proxies = _ends(rule, computes)
            for end in dict.fromkeys(open_ends):
                yield Problem(f"{rule.name}.target", end, _CONSEQUENCE, _REPAIR)
            for proxy in plain_proxies:
                yield Problem(f"{rule.name}.target", proxy, _PLAIN_CONSEQUENCE, _PLAIN_REPAIR)
    yield from _doors_of_other_images(resources)


def _doors_of_other_images(resources: Iterable[LinkedResource]) -> Iterator[Problem]:
    """Doors whose image may be another one than Docker Hub's."""
    mirrors = {_repository_name(each.inputs) for each in resources if _mirrors_docker_hub(each)}
    for each in resources:
        if is_meant_as_door(each.token, each.inputs) and each.inputs.switch("invokerIamDisabled"):
            repository = image_repository(each.inputs)
            if repository not in mirrors:
                name = "the image" if repository is None else f"repository {repository[2]}"
                yield Problem(f"{each.name}.template.containers.0.image", name, _IMAGE_CONSEQUENCE, _IMAGE_REPAIR)


def _mirrors_docker_hub(resource: LinkedResource) -> bool:
    inputs = resource.inputs
    if resource.token != _REPOSITORY or inputs.get("mode") != "REMOTE_REPOSITORY":
        return False
    return inputs.get("remoteRepositoryConfig", "dockerRepository", "publicRepository") == "DOCKER_HUB"


def _repository_name(repository: Inputs) -> tuple[str, str, str]:
    project, location, name = (repository.text(key) or "" for key in ("project", "location", "repositoryId"))
    return project, location, name


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
