"""Managed certificates of both products: provisioned by time and record, failed without, and what refers to them."""

import pytest

from localcloud_support.balancer_programs import BALANCER, DOMAIN, GLOBAL, MANAGER, add_record, make_balancer, make_zone
from localcloud_support.in_process import COMPUTE, PARENT, Project

LOCATION = f"{PARENT}/locations/global"
AUTHORIZATION = f"{LOCATION}/dnsAuthorizations/auth"
CERTIFICATE = f"{COMPUTE}/global/sslCertificates/cert"


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    project.cloud.store.put("api", "certificatemanager.googleapis.com", {"state": "ENABLED"})
    make_zone(project)
    yield project
    project.close()


def make(project, collection, identifier, body):
    """A resource of Certificate Manager, whose operation is done at once; its name."""
    key = f"{collection.rpartition('/')[2]}Id".replace("iesId", "yId").replace("sId", "Id")
    operation = project.ok("POST", f"{MANAGER}/{collection}", body, **{key: identifier})
    project.passes(10)
    done = project.ok("GET", f"/certificatemanager/v1/{operation['name']}")
    assert done["done"]
    return done["response"]["name"]


def make_authorized(project):
    """An authorization, and a certificate that uses it."""
    make(project, "dnsAuthorizations", "auth", {"domain": DOMAIN})
    managed = {"domains": [DOMAIN], "dnsAuthorizations": [AUTHORIZATION]}
    return make(project, "certificates", "cert", {"managed": managed})


def managed_status(project):
    managed = project.ok("GET", CERTIFICATE)["managed"]
    return managed["status"], managed["domainStatus"][DOMAIN]


def test_a_certificate_is_active_after_its_record_leads_to_its_balancer(project):
    make_balancer(project)
    assert managed_status(project) == ("PROVISIONING", "PROVISIONING")
    project.passes(3600)
    assert managed_status(project) == ("PROVISIONING", "FAILED_NOT_VISIBLE"), "no record"
    add_record(project, f"{DOMAIN}.", "A", "203.0.113.7")
    project.passes(3600)
    assert managed_status(project) == ("PROVISIONING", "FAILED_NOT_VISIBLE"), "a record that leads elsewhere"
    address = project.ok("GET", f"{COMPUTE}/global/addresses/ip")["address"]
    record = f"/dns/v1/{PARENT}/managedZones/acme/rrsets/{DOMAIN}./A"
    project.ok("PATCH", record, {"rrdatas": [address]})
    assert managed_status(project) == ("PROVISIONING", "PROVISIONING")
    project.passes(3600)
    assert managed_status(project) == ("ACTIVE", "ACTIVE")
    project.ok("DELETE", record)
    project.passes(3600)
    assert managed_status(project) == ("ACTIVE", "ACTIVE"), "it was issued"
    assert project.ok("GET", CERTIFICATE)["expireTime"]


def test_a_certificate_without_a_balancer_is_not_issued(project):
    project.ok("POST", f"{COMPUTE}/global/sslCertificates", BALANCER["global/sslCertificates"])
    add_record(project, f"{DOMAIN}.", "A", "127.250.0.2")
    project.passes(7200)
    assert managed_status(project) == ("PROVISIONING", "FAILED_NOT_VISIBLE")


def test_a_certificate_waits_for_the_record_of_its_authorization(project):
    name = make_authorized(project)
    record = project.ok("GET", f"{MANAGER}/dnsAuthorizations/auth")["dnsResourceRecord"]
    assert (record["name"], record["type"]) == (f"_acme-challenge.{DOMAIN}.", "CNAME")
    project.passes(3600)
    managed = project.ok("GET", f"{MANAGER}/certificates/cert")["managed"]
    assert (managed["state"], managed["provisioningIssue"]["reason"]) == ("PROVISIONING", "AUTHORIZATION_ISSUE")
    assert managed["authorizationAttemptInfo"][0]["failureReason"] == "CONFIG"
    add_record(project, record["name"], "CNAME", record["data"])
    project.passes(3600)
    shown = project.ok("GET", f"{MANAGER}/certificates/cert")
    assert shown["managed"]["state"] == "ACTIVE"
    assert shown["managed"]["authorizationAttemptInfo"] == [{"domain": DOMAIN, "state": "AUTHORIZED"}]
    assert shown["name"] == name


def test_what_a_map_needs_is_not_deleted(project):
    certificate = make_authorized(project)
    entries = "certificateMaps/map/certificateMapEntries"
    link = make(project, "certificateMaps", "map", {})
    make(project, entries, "entry", {"name": "entry", "hostname": DOMAIN, "certificates": [certificate]})
    proxy = {"certificateMap": f"//certificatemanager.googleapis.com/{link}", "sslCertificates": None}
    bodies = {path: dict(body) for path, body in BALANCER.items()}
    bodies["global/targetHttpsProxies"] |= proxy
    make_balancer(project, bodies)
    for used, user in (
        ("dnsAuthorizations/auth", certificate),
        ("certificates/cert", f"{link}/certificateMapEntries/entry"),
        ("certificateMaps/map", f"{GLOBAL}/targetHttpsProxies/https"),
    ):
        refusal = project.refusal(400, "DELETE", f"{MANAGER}/{used}")
        assert refusal["status"] == "FAILED_PRECONDITION"
        assert f"is used by '{user}'" in refusal["message"]
    project.ok("DELETE", f"{COMPUTE}/global/forwardingRules/rule")
    project.ok("DELETE", f"{COMPUTE}/global/targetHttpsProxies/https")
    for used in (f"{entries}/entry", "certificates/cert", "dnsAuthorizations/auth", "certificateMaps/map"):
        project.ok("DELETE", f"{MANAGER}/{used}")
        project.refusal(404, "GET", f"{MANAGER}/{used}")


def test_a_proxy_has_certificates_of_both_products_in_each_spelling(project):
    name = make_authorized(project)
    make_balancer(project)
    host = "//certificatemanager.googleapis.com/"
    managed = f"{GLOBAL}/sslCertificates/cert"
    for link in (f"{host}{name}", f"https:{host}v1/{name}"):
        body = {"sslCertificates": [link, managed]}
        project.ok("POST", f"{COMPUTE}/targetHttpsProxies/https/setSslCertificates", body)
        shown = project.ok("GET", f"{COMPUTE}/global/targetHttpsProxies/https")["sslCertificates"]
        assert shown == [f"{host}{name}", f"http://127.0.0.1:1/compute/v1/{managed}"]
    project.refusal(400, "DELETE", f"{MANAGER}/certificates/cert")
    absent = {"sslCertificates": [f"{host}{name}x"]}
    project.refusal(404, "POST", f"{COMPUTE}/targetHttpsProxies/https/setSslCertificates", absent)


def test_a_mask_names_what_a_patch_changes(project):
    make_authorized(project)
    one = f"{MANAGER}/certificates/cert"
    project.ok("PATCH", one, {"description": "d", "labels": {"a": "b"}}, updateMask="description")
    assert "labels" not in project.ok("GET", one)
    project.ok("PATCH", one, {"labels": {"a": "b"}}, updateMask="description")
    shown = project.ok("GET", one)
    assert "description" not in shown
    for mask in ("managed", ""):
        project.refusal(400, "PATCH", one, {"managed": {"domains": [DOMAIN]}}, updateMask=mask)


WRONG = {
    "a certificate of one's own": ("certificates", {"selfManaged": {"pemCertificate": "x"}}, "does not serve"),
    "a domain that is none": ("certificates", {"managed": {"domains": ["llm"]}}, "fully qualified domain name"),
    "a wildcard without an authorization": ("certificates", {"managed": {"domains": ["*.a.example"]}}, "DNS auth"),
    "an absent authorization": (
        "certificates", {"managed": {"domains": [DOMAIN], "dnsAuthorizations": ["x"]}}, "does not exist",
    ),
    "an edge cache": ("certificates", {"managed": {"domains": [DOMAIN]}, "scope": "EDGE_CACHE"}, "scope EDGE_CACHE"),
    "an authorization of a wildcard": ("dnsAuthorizations", {"domain": "*.a.example"}, "without '*.'"),
    "an entry of both": (
        "certificateMaps/map/certificateMapEntries", {"hostname": DOMAIN, "matcher": "PRIMARY"}, "Exactly one",
    ),
    "an entry without certificates": (
        "certificateMaps/map/certificateMapEntries", {"matcher": "PRIMARY", "certificates": []}, "1 to 4 certificates",
    ),
}  # fmt: skip


def test_a_wrong_resource_is_refused_with_the_reason(project):
    make(project, "certificateMaps", "map", {})
    for collection, body, says in WRONG.values():
        key = f"{collection.rpartition('/')[2]}Id".replace("iesId", "yId").replace("sId", "Id")
        assert says in project.refusal(400, "POST", f"{MANAGER}/{collection}", body, **{key: "x"})["message"]
    project.refusal(409, "POST", f"{MANAGER}/certificateMaps", {}, certificateMapId="map")
    project.refusal(400, "POST", f"{MANAGER}/certificateMaps", {}, certificateMapId="Map")
    elsewhere = MANAGER.replace("/global", "/us-east4")
    assert "regional" in project.refusal(400, "GET", f"{elsewhere}/certificates")["message"]
