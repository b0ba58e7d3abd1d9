"""An address on the internet is refused unless what answers checks who calls: in previews, and by written names."""

from __future__ import annotations

from typing import Any

import pytest
from pulumi_policy import PolicyResource, StackValidationArgs
from pulumi_policy.proxy import unknown_checking_proxy

from tests.support.policies.harness import POLICIES, UNKNOWN

PATH = "https://www.googleapis.com/compute/v1/projects/p/global"
KINDS = {
    "rule": "gcp:compute/globalForwardingRule:GlobalForwardingRule",
    "proxy": "gcp:compute/targetHttpsProxy:TargetHttpsProxy",
    "routes": "gcp:compute/uRLMap:URLMap",
    "backend": "gcp:compute/backendService:BackendService",
    "group": "gcp:compute/regionNetworkEndpointGroup:RegionNetworkEndpointGroup",
    "machines": "gcp:compute/instanceGroup:InstanceGroup",
    "bucket": "gcp:compute/backendBucket:BackendBucket",
    "pool": "gcp:compute/targetPool:TargetPool",
    "other": "pulumi:pulumi:StackReference",
    "redirects": "gcp:compute/regionUrlMap:RegionUrlMap",
    "plain": "gcp:compute/regionTargetHttpProxy:RegionTargetHttpProxy",
    "stream": "gcp:compute/targetTCPProxy:TargetTCPProxy",
    "regional": "gcp:compute/forwardingRule:ForwardingRule",
    "vpn": "gcp:compute/vPNGateway:VPNGateway",
    "internet": "gcp:compute/globalNetworkEndpointGroup:GlobalNetworkEndpointGroup",
}
ON: dict[str, dict[str, list[str]]] = {
    "rule": {"target": ["proxy"]},
    "proxy": {"urlMap": ["routes"]},
    "routes": {"defaultService": ["backend"]},
    "backend": {"backends": ["group"]},
    "group": {},
}
CLOUD_RUN = {"group": {"cloudRun": {"service": "chat"}}}


def refusals(links: dict[str, dict[str, list[str]]], inputs: dict[str, dict[str, Any]]) -> list[str]:
    """What the policy says of a preview: inputs with links are unknown in it."""
    resources = {}
    for name, sources in links.items():
        props = {**dict.fromkeys(sources, UNKNOWN), **inputs.get(name, {})}
        seen: Any = unknown_checking_proxy(props)
        resources[name] = PolicyResource(KINDS[name], seen, f"urn:{name}", name, None, None, None, [], {})  # type: ignore[arg-type]
    for name, sources in links.items():
        for key, others in sources.items():
            resources[name].property_dependencies[key] = [resources[other] for other in others]
    lines: list[str] = []
    policy: Any = POLICIES["no-open-address"]
    policy.validate(StackValidationArgs(list(resources.values()), {}), lambda message, _urn=None: lines.append(message))
    return lines


def test_an_address_of_cloud_run_services_passes_in_a_preview() -> None:
    assert refusals(ON, CLOUD_RUN) == []


@pytest.mark.parametrize(
    ("links", "inputs", "end"),
    [
        ({"backend": {"backends": ["machines"]}, "machines": {}}, {}, "InstanceGroup machines"),
        ({"backend": {"backends": ["group", "machines"]}, "machines": {}}, CLOUD_RUN, "InstanceGroup machines"),
        ({}, {"group": {"networkEndpointType": "PRIVATE_SERVICE_CONNECT"}}, "RegionNetworkEndpointGroup group"),
        ({"routes": {"pathMatchers": ["bucket"]}, "bucket": {}}, CLOUD_RUN, "BackendBucket bucket"),
        ({"rule": {"target": ["pool"]}, "pool": {}}, CLOUD_RUN, "TargetPool pool"),
        ({"routes": {"defaultService": ["other"]}, "other": {}}, CLOUD_RUN, "(not known before the deploy)"),
        (
            {},
            {
                **CLOUD_RUN,
                "routes": {"pathMatchers": [{"name": "m", "defaultService": f"{PATH}/backendServices/theirs"}]},
            },
            "backendServices/theirs (not in this program)",
        ),
        ({}, {"rule": {"loadBalancingScheme": UNKNOWN}}, "RegionNetworkEndpointGroup group"),
        ({}, {"backend": {"iap": {"enabled": UNKNOWN}}}, "RegionNetworkEndpointGroup group"),
        ({"backend": {"backends": ["internet"]}, "internet": {}}, {}, "GlobalNetworkEndpointGroup internet"),
        (
            {"rule": {"target": ["stream"]}, "stream": {"backendService": ["backend"]}},
            {"backend": {"protocol": "TCP", "iap": {"enabled": True}}},
            "RegionNetworkEndpointGroup group",
        ),
        (
            {
                "rule": {},
                "regional": {"backendService": ["backend"]},
                "backend": {"backends": ["machines"]},
                "machines": {},
            },
            {"rule": {"loadBalancingScheme": "INTERNAL"}, "regional": {"loadBalancingScheme": "EXTERNAL"}},
            "InstanceGroup machines",
        ),
        (
            {"routes": {"defaultCustomErrorResponsePolicy": ["bucket"]}, "bucket": {}},
            {**CLOUD_RUN, "routes": {"defaultService": UNKNOWN}},
            "BackendBucket bucket",
        ),
    ],
)
def test_what_checks_no_caller_is_refused_by_name(links: dict[str, Any], inputs: dict[str, Any], end: str) -> None:
    (text,) = refusals({**ON, **links}, inputs)
    assert "rule.target" in text or "regional.target" in text
    assert end in text
    assert "Identity-Aware Proxy" in text


@pytest.mark.parametrize(
    ("links", "inputs"),
    [
        ({}, {"backend": {"iap": {"enabled": True}}}),
        ({}, {"rule": {"loadBalancingScheme": "INTERNAL_MANAGED"}}),
        ({}, {"rule": {"loadBalancingScheme": ""}}),
        (
            {"proxy": {"urlMap": ["redirects"]}, "redirects": {}},
            {"redirects": {"defaultUrlRedirect": {"httpsRedirect": True}}},
        ),
        ({}, {"group": {"cloudFunction": {"function": "f"}}}),
        (
            {"rule": {"target": ["vpn"]}, "vpn": {}},
            {"rule": {"target": f"{PATH}/targetVpnGateways/v"}, "vpn": {"name": "v", "project": "p"}},
        ),
        ({"proxy": {}, "rule": {"target": ["plain"]}, "plain": {"urlMap": ["redirects"]}, "redirects": {}}, {}),
        ({"rule": {}}, {"rule": {"loadBalancingScheme": "INTERNAL", "target": "projects/p/global/elsewhere/x"}}),
    ],
)
def test_what_checks_identities_or_is_not_on_the_internet_passes(links: dict[str, Any], inputs: dict[str, Any]) -> None:
    assert refusals({**ON, **links}, inputs) == []


def test_written_names_are_followed_to_the_end_that_they_name() -> None:
    """Each part has the name of the others: the collection in a path decides."""
    written: dict[str, dict[str, Any]] = {
        "rule": {"name": "web", "target": "projects/p/global/targetHttpsProxies/web"},
        "proxy": {"name": "web", "urlMap": "web"},
        "routes": {"name": "web", "defaultService": f"{PATH}/backendServices/web"},
        "backend": {"name": "web", "backends": [{"group": "projects/p/regions/r/networkEndpointGroups/web"}]},
        "group": {"name": "web"},
    }
    nowhere: dict[str, dict[str, list[str]]] = {name: {} for name in written}
    assert refusals(nowhere, {**written, "group": {"name": "web", **CLOUD_RUN["group"]}}) == []
    (text,) = refusals(nowhere, written)
    assert "RegionNetworkEndpointGroup group" in text


def test_a_proxy_without_tls_is_refused_before_what_checks_tokens() -> None:
    (text,) = refusals({**ON, "rule": {"target": ["plain"]}, "plain": {"urlMap": ["routes"]}}, CLOUD_RUN)
    assert "RegionTargetHttpProxy plain" in text
    assert "unencrypted" in text


def test_a_name_in_another_project_or_region_is_a_stranger() -> None:
    group = {"name": "web", "project": "p", "region": "r", **CLOUD_RUN["group"]}
    links: dict[str, Any] = {**ON, "backend": {}}
    for place, is_ours in (("projects/p/regions/r", True), ("projects/q/regions/r", False), ("regions/s", False)):
        reference = f"{place}/networkEndpointGroups/web"
        texts = refusals(links, {"group": group, "backend": {"backends": [{"group": reference}]}})
        assert [f"{reference} (not in this program)" in text for text in texts] == ([] if is_ours else [True])
