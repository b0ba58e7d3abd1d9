"""Resources of a load balancer: made, found, changed, held by what uses them, refused by field."""

import pytest

from bezel_localcloud.services.load_balancing.kinds import KINDS
from localcloud_support.balancer_programs import BALANCER, GLOBAL, make_balancer
from localcloud_support.in_process import COMPUTE, PARENT, Project

BETA = COMPUTE.replace("v1", "beta")
ORDER = [f"{COMPUTE}/{path}/{body['name']}" for path, body in BALANCER.items()]


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """One for all tests that change nothing."""
    project = Project(tmp_path_factory.mktemp("cloud"))
    make_balancer(project)
    yield project
    project.close()


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    make_balancer(project)
    yield project
    project.close()


def test_each_kind_is_shown_alone_and_in_its_list(refusing):
    assert {path.rpartition("/")[2] for path in BALANCER} == {kind.collection for kind in KINDS}
    for path, body in BALANCER.items():
        one = refusing.ok("GET", f"{BETA}/{path}/{body['name']}")
        assert one["selfLink"] == f"http://127.0.0.1:1{BETA}/{path}/{body['name']}"
        assert one in refusing.ok("GET", f"{BETA}/{path}")["items"]
        refusing.refusal(404, "GET", f"{BETA}/{path}/absent")


def test_links_lead_to_the_version_that_was_called(refusing):
    proxy = refusing.ok("GET", f"{BETA}/global/targetHttpsProxies/https")
    assert proxy["sslCertificates"] == [f"http://127.0.0.1:1/compute/beta/{GLOBAL}/sslCertificates/cert"]
    group = refusing.ok("GET", f"{COMPUTE}/regions/us-east4/networkEndpointGroups/us")
    assert group["region"] == f"http://127.0.0.1:1/compute/v1/{PARENT}/regions/us-east4"


def test_a_rule_has_the_address_that_it_names_and_the_address_its_user(refusing):
    address, rule = (refusing.ok("GET", f"{COMPUTE}/global/{one}") for one in ("addresses/ip", "forwardingRules/rule"))
    assert rule["IPAddress"] == address["address"]
    assert (address["status"], address["users"]) == ("IN_USE", [rule["selfLink"]])
    assert rule["portRange"] == "443-443"


@pytest.mark.parametrize(("used", "noun"), [(place, place.split("/")[-2]) for place in ORDER if "rule" not in place])
def test_a_resource_in_use_is_not_deleted(used, noun, refusing):
    if noun == "targetHttpProxies":
        return  # nothing uses it here
    refusal = refusing.refusal(400, "DELETE", used)
    assert refusal["errors"][0]["reason"] == "resourceInUseByAnotherResource"
    assert "is already being used by 'projects/" in refusal["message"]


def test_a_balancer_is_deleted_in_the_order_of_its_uses(project):
    for place in reversed(ORDER):
        assert project.ok("DELETE", place)["operationType"] == "delete"
    assert all(not list(project.cloud.store.rows(kind.permissions)) for kind in KINDS)


def test_an_in_use_refusal_is_in_googles_words(refusing):
    refusal = refusing.refusal(400, "DELETE", f"{COMPUTE}/global/sslCertificates/cert")
    assert refusal["message"] == (
        f"The ssl_certificate resource '{GLOBAL}/sslCertificates/cert' is already being used by "
        f"'{GLOBAL}/targetHttpsProxies/https'"
    )


def test_a_change_needs_the_current_fingerprint(project):
    one = f"{COMPUTE}/global/backendServices/be"
    row = project.ok("GET", one)
    project.ok("PUT", one, row | {"timeoutSec": 60})
    assert project.ok("GET", one)["timeoutSec"] == 60
    for stale in (row["fingerprint"], ""):
        refusal = project.refusal(412, "PATCH", one, {"timeoutSec": 7, "fingerprint": stale})
        assert refusal["errors"][0]["reason"] == "conditionNotMet"
    assert project.ok("GET", one)["timeoutSec"] == 60


def test_labels_need_their_own_fingerprint(project):
    one = f"{COMPUTE}/global/addresses/ip"
    row = project.ok("GET", one)
    body = {"labels": {"c": "d"}, "labelFingerprint": row["labelFingerprint"]}
    project.ok("POST", f"{one}/setLabels", body)
    assert project.ok("GET", one)["labels"] == {"c": "d"}
    project.refusal(412, "POST", f"{one}/setLabels", body)


def test_a_verb_sets_its_field_and_only_to_what_exists(project):
    proxy = f"{COMPUTE}/targetHttpsProxies/https"
    project.ok("POST", f"{COMPUTE}/global/sslCertificates", BALANCER["global/sslCertificates"] | {"name": "other"})
    project.ok("POST", f"{proxy}/setSslCertificates", {"sslCertificates": [f"{GLOBAL}/sslCertificates/other"]})
    project.ok("DELETE", f"{COMPUTE}/global/sslCertificates/cert")
    project.refusal(404, "POST", f"{proxy}/setUrlMap", {"urlMap": f"{GLOBAL}/urlMaps/absent"})
    project.refusal(400, "POST", f"{proxy}/setUrlMap", {})
    project.ok("POST", f"{COMPUTE}/global/targetHttpsProxies/https/setSslPolicy", {})
    project.ok("DELETE", f"{COMPUTE}/global/sslPolicies/tls")
    project.ok("POST", f"{COMPUTE}/global/backendServices/be/setSecurityPolicy", {})
    project.ok("DELETE", f"{COMPUTE}/global/securityPolicies/armor")


def test_rules_of_a_security_policy_are_added_changed_and_removed(project):
    one = f"{COMPUTE}/global/securityPolicies/armor"
    rule = BALANCER["global/securityPolicies"]["rules"][0]
    project.refusal(400, "POST", f"{one}/addRule", rule)
    project.ok("POST", f"{one}/addRule", rule | {"priority": 7, "action": "allow"})
    # As the provider sends an expression: with an empty word of an enum beside it.
    match = {"expr": {"expression": "origin.region_code == 'XX'"}, "versionedExpr": ""}
    project.ok("POST", f"{one}/addRule", {"action": "deny(403)", "priority": 8, "match": match})
    project.ok("POST", f"{one}/removeRule", {}, priority=8)
    project.ok("POST", f"{one}/patchRule", {"preview": True}, priority=7, updateMask="preview")
    assert project.ok("GET", f"{one}/getRule", priority=7)["preview"] is True
    project.ok("POST", f"{one}/removeRule", None, priority=1000)
    assert [rule["priority"] for rule in project.ok("GET", one)["rules"]] == [7, 2**31 - 1]
    project.refusal(400, "POST", f"{one}/removeRule", None, priority=2**31 - 1)
    project.refusal(400, "POST", f"{one}/patchRule", {"preview": True}, priority=8)


def test_a_changed_field_keeps_the_others_and_a_fixed_one_is_refused(project):
    rule = f"{COMPUTE}/global/forwardingRules/rule"
    project.ok("PATCH", rule, {"loadBalancingScheme": "EXTERNAL"})
    shown = project.ok("GET", rule)
    assert (shown["loadBalancingScheme"], shown["portRange"]) == ("EXTERNAL", "443-443")
    project.refusal(400, "PATCH", rule, {"portRange": "444"})
    project.ok("POST", f"{rule}/setTarget", {"target": f"{GLOBAL}/targetHttpProxies/http"})
    assert project.ok("GET", rule)["target"].endswith("/targetHttpProxies/http")


def body_with(path, **fields):
    """The path of a collection with a body of another name and other fields."""
    return path, BALANCER[path] | {"name": "x"} | fields


MATCHED = {"hosts": ["a.example"], "pathMatcher": "m"}
RULES = {"name": "m", "defaultService": f"{GLOBAL}/backendServices/be"}
WRONG = {
    "a name in capitals": (400, "match of regex", *body_with("global/addresses", name="IP")),
    "a name that is taken": (409, "already exists", *body_with("global/addresses", name="ip")),
    "an internal address": (400, "does not serve", *body_with("global/addresses", addressType="INTERNAL")),
    "a field that is not served": (400, "not serve purpose", *body_with("global/addresses", purpose="VPC_PEERING")),
    "an unknown region": (400, "Unknown region", "regions/moon/networkEndpointGroups", {"name": "x"}),
    "another type of group": (
        400, "use SERVERLESS", *body_with("regions/us-east4/networkEndpointGroups", networkEndpointType="GCE_VM_IP"),
    ),
    "a group without a service": (
        400, "needs a service", *body_with("regions/us-east4/networkEndpointGroups", cloudRun={}),
    ),
    "a missing group": (404, "regions/x/", *body_with("global/backendServices", backends=[
        {"group": f"{PARENT}/regions/x/networkEndpointGroups/us"}
    ])),
    "a utilization": (400, "Max utilization is not supported", *body_with("global/backendServices", backends=[
        {"group": f"{PARENT}/regions/us-east4/networkEndpointGroups/us", "maxUtilization": 0.8}
    ])),
    "a cache": (400, "does not serve Cloud CDN", *body_with("global/backendServices", enableCDN=True)),
    "a health check": (400, "healthChecks", *body_with("global/backendServices", healthChecks=["x"])),
    "a map without a default": (400, "Exactly one of", "global/urlMaps", {"name": "x"}),
    "a host without its matcher": (400, "no such path matcher", *body_with("global/urlMaps", hostRules=[MATCHED])),
    "a matcher without a host": (400, "No host rule", *body_with("global/urlMaps", pathMatchers=[RULES])),
    "a match by query": (400, "queryParameterMatches", *body_with("global/urlMaps", hostRules=[MATCHED], pathMatchers=[
        RULES | {"routeRules": [{"priority": 1, "matchRules": [{"queryParameterMatches": [{"name": "a"}]}]}]}
    ])),
    "no domain": (400, "1 to 100 domains", *body_with("global/sslCertificates", managed={"domains": []})),
    "a wildcard": (400, "use Certificate Manager", *body_with(
        "global/sslCertificates", managed={"domains": ["*.a.example"]}
    )),
    "an own certificate": (
        400, "does not serve", "global/sslCertificates", {"name": "x", "certificate": "x", "privateKey": "y"},
    ),
    "features without CUSTOM": (400, "customFeatures", *body_with("global/sslPolicies", customFeatures=["x"])),
    "no certificate": (400, "sslCertificates", *body_with("global/targetHttpsProxies", sslCertificates=[])),
    "another target": (400, "does not serve the target", *body_with("global/forwardingRules", target=f"{GLOBAL}/x/y")),
    "an address in use": (400, "in-use and would result in a conflict", *body_with("global/forwardingRules")),
    "two ports": (400, "one port", *body_with("global/forwardingRules", portRange="80-90")),
    "two rules of one priority": (400, "same priorities", *body_with(
        "global/securityPolicies", rules=BALANCER["global/securityPolicies"]["rules"] * 2
    )),
}  # fmt: skip


@pytest.mark.parametrize(("status", "says", "path", "body"), WRONG.values(), ids=WRONG)
def test_a_wrong_resource_is_refused_by_its_field(status, says, path, body, refusing):
    assert says in refusing.refusal(status, "POST", f"{COMPUTE}/{path}", body)["message"]


def test_a_quota_bounds_each_kind(project):
    for number in range(7):
        project.ok("POST", f"{COMPUTE}/global/addresses", {"name": f"a{number}"})
    refusal = project.refusal(403, "POST", f"{COMPUTE}/global/addresses", {"name": "one-more"})
    assert refusal["errors"][0]["reason"] == "quotaExceeded"
    assert refusal["message"] == "Quota 'STATIC_ADDRESSES' exceeded.  Limit: 8.0 globally."


def test_addresses_are_on_the_loopback_interface_and_no_two_alike(project):
    made = [project.ok("POST", f"{COMPUTE}/global/addresses", {"name": f"a{n}"}) for n in range(2)]
    rows = project.ok("GET", f"{COMPUTE}/global/addresses")["items"]
    assert len({row["address"] for row in rows}) == len(made) + 1
    assert all(row["address"].startswith("127.250.") for row in rows)
