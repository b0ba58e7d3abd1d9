"""Calls of google-cloud-compute: an address, endpoint groups, a backend service, routes, proxies, rules, policies."""

from collections.abc import Callable
from typing import Any

from google.cloud import compute_v1 as gce
from google_calls import PROJECT, Report, options
from google_compute import GLOBAL, await_operation, has_ended

report = Report("google-cloud-compute")
common = {"client_options": options("COMPUTE")}
PATH = f"projects/{PROJECT}/global"
REGIONS = ("us-east4", "europe-west4")
DOMAIN = "llm.acme.example"
CERTIFICATES = gce.TargetHttpsProxiesSetSslCertificatesRequest(ssl_certificates=[f"{PATH}/sslCertificates/tried"])
addresses = gce.GlobalAddressesClient(**common)
groups = gce.RegionNetworkEndpointGroupsClient(**common)
services = gce.BackendServicesClient(**common)
maps = gce.UrlMapsClient(**common)
https = gce.TargetHttpsProxiesClient(**common)
http = gce.TargetHttpProxiesClient(**common)
rules = gce.GlobalForwardingRulesClient(**common)
tls = gce.SslPoliciesClient(**common)
certificates = gce.SslCertificatesClient(**common)
policies = gce.SecurityPoliciesClient(**common)


def change(name: str, action: Callable[[], gce.Operation]) -> None:
    """A call whose operation is awaited and has no error."""
    report.call(name, await_operation(action), has_ended)


def make(client: Any, kind: str, one: str, body: Any, check: Callable[[Any], Any]) -> dict[str, Any]:
    """Insert, insert again, get, list; the name of it in further requests."""
    named = GLOBAL | {one: "tried"}
    request = GLOBAL | {f"{one}_resource": body}
    change(f"{kind}.insert", lambda: client.insert_unary(request))
    report.raises(f"{kind}.insert again", "ALREADY_EXISTS", lambda: client.insert_unary(request))
    report.call(f"{kind}.get", lambda: client.get(named), check)
    report.call(
        f"{kind}.list", lambda: list(client.list(project=PROJECT)), lambda answer: [x.name for x in answer] == ["tried"]
    )
    return named


def address() -> None:
    """A global address."""
    body = gce.Address(name="tried", network_tier="PREMIUM", labels={"a": "b"})
    named = make(addresses, "globalAddresses", "address", body, lambda got: got.address and got.status == "RESERVED")
    got = addresses.get(named)
    labels = gce.GlobalSetLabelsRequest(labels={"c": "d"}, label_fingerprint=got.label_fingerprint)
    request = GLOBAL | {"resource": "tried", "global_set_labels_request_resource": labels}
    change("globalAddresses.setLabels", lambda: addresses.set_labels_unary(request))
    report.call(
        "globalAddresses.get, with labels", lambda: addresses.get(named), lambda got: dict(got.labels) == {"c": "d"}
    )


def backends() -> None:
    """An endpoint group in each region, and the backend service in front of them."""
    for region in REGIONS:
        place = GLOBAL | {"region": region}
        run = gce.NetworkEndpointGroupCloudRun(service="chat")
        body = gce.NetworkEndpointGroup(name="tried", network_endpoint_type="SERVERLESS", cloud_run=run)
        request = place | {"network_endpoint_group_resource": body}
        change(f"regionNetworkEndpointGroups.insert in {region}", lambda request=request: groups.insert_unary(request))
        named = place | {"network_endpoint_group": "tried"}
        report.call(
            f"regionNetworkEndpointGroups.get in {region}",
            lambda named=named: groups.get(named),
            lambda got: got.cloud_run.service == "chat",
        )
        report.call(
            f"regionNetworkEndpointGroups.list in {region}",
            lambda place=place: list(groups.list(place)),
            lambda answer: len(answer) == 1,
        )
    body = gce.BackendService(
        name="tried",
        load_balancing_scheme="EXTERNAL_MANAGED",
        protocol="HTTPS",
        backends=[
            gce.Backend(group=f"projects/{PROJECT}/regions/{each}/networkEndpointGroups/tried") for each in REGIONS
        ],
        outlier_detection=gce.OutlierDetection(consecutive_errors=5, base_ejection_time=gce.Duration(seconds=30)),
    )
    named = make(services, "backendServices", "backend_service", body, lambda got: len(got.backends) == len(REGIONS))
    got = services.get(named)
    stale = named | {"backend_service_resource": gce.BackendService(timeout_sec=31, fingerprint="AAAAAAAAAAA=")}
    report.raises("backendServices.patch, stale", "CONDITION_NOT_MET", lambda: services.patch_unary(stale))
    part = gce.BackendService(timeout_sec=31, fingerprint=got.fingerprint)
    change("backendServices.patch", lambda: services.patch_unary(named | {"backend_service_resource": part}))
    whole = services.get(named)
    report.call("backendServices.get, patched", lambda: whole, lambda got: got.timeout_sec == 31 and got.backends)
    change("backendServices.update", lambda: services.update_unary(named | {"backend_service_resource": whole}))
    report.raises(
        "regionNetworkEndpointGroups.delete of one in use",
        "INVALID_ARGUMENT",
        lambda: groups.delete_unary(GLOBAL | {"region": REGIONS[0], "network_endpoint_group": "tried"}),
    )


def policy() -> None:
    """A security policy with a rule, and the backend service that has it."""
    body = gce.SecurityPolicy(name="tried", description="d")
    named = make(policies, "securityPolicies", "security_policy", body, lambda got: len(got.rules) == 1)
    match = gce.SecurityPolicyRuleMatcher(
        versioned_expr="SRC_IPS_V1", config=gce.SecurityPolicyRuleMatcherConfig(src_ip_ranges=["203.0.113.0/24"])
    )
    rule = gce.SecurityPolicyRule(action="deny(403)", priority=1000, match=match)
    change(
        "securityPolicies.addRule",
        lambda: policies.add_rule_unary(named | {"security_policy_rule_resource": rule}),
    )
    one = named | {"priority": 1000}
    report.call("securityPolicies.getRule", lambda: policies.get_rule(one), lambda got: got.action == "deny(403)")
    preview = gce.SecurityPolicyRule(preview=True)
    change(
        "securityPolicies.patchRule",
        lambda: policies.patch_rule_unary(one | {"security_policy_rule_resource": preview}),
    )
    reference = gce.SecurityPolicyReference(security_policy=f"{PATH}/securityPolicies/tried")
    request = GLOBAL | {"backend_service": "tried", "security_policy_reference_resource": reference}
    change("backendServices.setSecurityPolicy", lambda: services.set_security_policy_unary(request))
    none = request | {"security_policy_reference_resource": gce.SecurityPolicyReference()}
    change("backendServices.setSecurityPolicy to none", lambda: services.set_security_policy_unary(none))
    change("securityPolicies.removeRule", lambda: policies.remove_rule_unary(one))
    change("securityPolicies.delete", lambda: policies.delete_unary(named))


def routes() -> None:
    """A URL map with a host of its own."""
    service = f"{PATH}/backendServices/tried"
    matcher = gce.PathMatcher(name="m", default_service=service)
    body = gce.UrlMap(
        name="tried",
        default_service=service,
        host_rules=[gce.HostRule(hosts=[DOMAIN], path_matcher="m")],
        path_matchers=[matcher],
    )
    named = make(maps, "urlMaps", "url_map", body, lambda got: got.path_matchers[0].default_service.endswith("/tried"))
    part = gce.UrlMap(description="d", fingerprint=maps.get(named).fingerprint)
    change("urlMaps.patch", lambda: maps.patch_unary(named | {"url_map_resource": part}))
    whole = maps.get(named)
    change("urlMaps.update", lambda: maps.update_unary(named | {"url_map_resource": whole}))
    report.call("urlMaps.get, changed", lambda: maps.get(named), lambda got: got.description == "d")
    report.call("urlMaps.invalidateCache", lambda: maps.invalidate_cache_unary(named))


def proxies() -> None:
    """A certificate, a TLS policy, both proxies, and what is set on them."""
    managed = gce.SslCertificateManagedSslCertificate(domains=[DOMAIN])
    body = gce.SslCertificate(name="tried", type_="MANAGED", managed=managed)
    make(certificates, "sslCertificates", "ssl_certificate", body, lambda got: got.managed.status == "PROVISIONING")
    policy_body = gce.SslPolicy(name="tried", profile="MODERN", min_tls_version="TLS_1_2")
    one = make(tls, "sslPolicies", "ssl_policy", policy_body, lambda got: got.profile == "MODERN")
    part = gce.SslPolicy(profile="RESTRICTED", fingerprint=tls.get(one).fingerprint)
    change("sslPolicies.patch", lambda: tls.patch_unary(one | {"ssl_policy_resource": part}))
    plain = gce.TargetHttpProxy(name="tried", url_map=f"{PATH}/urlMaps/tried")
    make(http, "targetHttpProxies", "target_http_proxy", plain, lambda got: got.url_map.endswith("/tried"))
    secure = gce.TargetHttpsProxy(name="tried", url_map=f"{PATH}/urlMaps/tried", **ssl_certificates())
    named = make(https, "targetHttpsProxies", "target_https_proxy", secure, lambda got: len(got.ssl_certificates) == 1)
    for verb, request in {
        "set_ssl_policy": {
            "ssl_policy_reference_resource": gce.SslPolicyReference(ssl_policy=f"{PATH}/sslPolicies/tried")
        },
        "set_url_map": {"url_map_reference_resource": gce.UrlMapReference(url_map=f"{PATH}/urlMaps/tried")},
        "set_ssl_certificates": {"target_https_proxies_set_ssl_certificates_request_resource": CERTIFICATES},
        "set_quic_override": {
            "target_https_proxies_set_quic_override_request_resource": gce.TargetHttpsProxiesSetQuicOverrideRequest(
                quic_override="DISABLE"
            )
        },
    }.items():
        setter = getattr(https, f"{verb}_unary")
        change(f"targetHttpsProxies.{verb}", lambda setter=setter, request=request: setter(named | request))
    report.call("targetHttpsProxies.get, set", lambda: https.get(named), lambda got: got.quic_override == "DISABLE")
    reference = gce.UrlMapReference(url_map=f"{PATH}/urlMaps/tried")
    request = GLOBAL | {"target_http_proxy": "tried", "url_map_reference_resource": reference}
    change("targetHttpProxies.set_url_map", lambda: http.set_url_map_unary(request))


def ssl_certificates() -> dict[str, list[str]]:
    """The certificate of a proxy."""
    return {"ssl_certificates": list(CERTIFICATES.ssl_certificates)}


def forwarding() -> None:
    """A forwarding rule on the address, and who uses what."""
    body = gce.ForwardingRule(
        name="tried",
        I_p_address=f"{PATH}/addresses/tried",
        I_p_protocol="TCP",
        port_range="443",
        load_balancing_scheme="EXTERNAL_MANAGED",
        target=f"{PATH}/targetHttpsProxies/tried",
    )
    named = make(rules, "globalForwardingRules", "forwarding_rule", body, lambda got: got.port_range == "443-443")
    got = rules.get(named)
    labels = gce.GlobalSetLabelsRequest(labels={"a": "b"}, label_fingerprint=got.label_fingerprint)
    request = GLOBAL | {"resource": "tried", "global_set_labels_request_resource": labels}
    change("globalForwardingRules.setLabels", lambda: rules.set_labels_unary(request))
    target = gce.TargetReference(target=f"{PATH}/targetHttpsProxies/tried")
    change(
        "globalForwardingRules.setTarget",
        lambda: rules.set_target_unary(named | {"target_reference_resource": target}),
    )
    report.call(
        "globalAddresses.get of one in use",
        lambda: addresses.get(GLOBAL | {"address": "tried"}),
        lambda got: got.status == "IN_USE" and got.users[0].endswith("forwardingRules/tried"),
    )
    report.raises(
        "backendServices.delete of one in use",
        "INVALID_ARGUMENT",
        lambda: services.delete_unary(GLOBAL | {"backend_service": "tried"}),
    )


def end() -> None:
    """Delete all of it, what nothing uses first."""
    for client, kind, one in (
        (rules, "globalForwardingRules", "forwarding_rule"),
        (https, "targetHttpsProxies", "target_https_proxy"),
        (http, "targetHttpProxies", "target_http_proxy"),
        (maps, "urlMaps", "url_map"),
        (services, "backendServices", "backend_service"),
        (tls, "sslPolicies", "ssl_policy"),
        (certificates, "sslCertificates", "ssl_certificate"),
        (addresses, "globalAddresses", "address"),
    ):
        named = GLOBAL | {one: "tried"}
        change(f"{kind}.delete", lambda client=client, named=named: client.delete_unary(named))
        report.raises(f"{kind}.get of a deleted one", "NOT_FOUND", lambda client=client, named=named: client.get(named))
    for region in REGIONS:
        named = GLOBAL | {"region": region, "network_endpoint_group": "tried"}
        change(f"regionNetworkEndpointGroups.delete in {region}", lambda named=named: groups.delete_unary(named))


for part in (address, backends, policy, routes, proxies, forwarding, end):
    part()
