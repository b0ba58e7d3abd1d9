"""Zones of Cloud DNS and their record sets: changed as a whole or not at all, in both versions of the API."""

import pytest

from localcloud_support.balancer_programs import DNS, add_record, make_zone
from localcloud_support.in_process import Project

ZONE, SETS = f"{DNS}/acme", f"{DNS}/acme/rrsets"


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    make_zone(project)
    yield project
    project.close()


def kinds(project):
    return [(each["name"], each["type"]) for each in project.ok("GET", SETS)["rrsets"]]


def test_a_zone_begins_with_its_servers_and_is_found_by_name_and_id(project):
    zone = project.ok("GET", ZONE)
    assert len(zone["nameServers"]) == 4
    assert project.ok("GET", f"{DNS}/{zone['id']}".replace("/v1/", "/v1beta2/")) == zone
    assert kinds(project) == [("acme.example.", "NS"), ("acme.example.", "SOA")]
    assert project.ok("GET", DNS, dnsName="acme.example.")["managedZones"] == [zone]
    assert "managedZones" not in project.ok("GET", DNS, dnsName="other.example.")


def test_the_project_has_the_quotas_that_clients_read(project):
    quotas = project.ok("GET", DNS.removesuffix("/managedZones"))["quota"]
    assert quotas["managedZones"] == quotas["rrsetsPerManagedZone"] == 10_000


def test_a_change_is_pending_and_then_done(project):
    change = add_record(project, "llm.acme.example.", "A", "203.0.113.7")
    assert (change["status"], change["id"]) == ("pending", "1")
    project.passes(5)
    assert project.ok("GET", f"{ZONE}/changes/1")["status"] == "done"
    assert [each["id"] for each in project.ok("GET", f"{ZONE}/changes")["changes"]] == ["1"]
    project.refusal(404, "GET", f"{ZONE}/changes/2")


def test_a_change_replaces_a_record_set_or_leaves_all_as_it_was(project):
    old = {"name": "llm.acme.example.", "type": "A", "ttl": 300, "rrdatas": ["203.0.113.7"]}
    new = old | {"ttl": 60}
    add_record(project, old["name"], "A", "203.0.113.7")
    other = {"name": "www.acme.example.", "type": "A", "ttl": 5, "rrdatas": ["203.0.113.8"]}
    assert project.refusal(409, "POST", f"{ZONE}/changes", {"additions": [other, new]})
    assert ("www.acme.example.", "A") not in kinds(project)
    project.ok("POST", f"{ZONE}/changes", {"deletions": [old], "additions": [new]})
    assert project.ok("GET", SETS, name=old["name"], type="A")["rrsets"][0]["ttl"] == 60
    assert project.refusal(412, "POST", f"{ZONE}/changes", {"deletions": [old]})["errors"][0]["reason"] == (
        "conditionNotMet"
    )
    project.refusal(404, "POST", f"{ZONE}/changes", {"deletions": [other]})


def test_a_record_set_is_a_resource_of_its_own(project):
    record = {"name": "llm.acme.example.", "type": "A", "ttl": 300, "rrdatas": ["203.0.113.7"]}
    project.ok("POST", SETS, record)
    one = f"{SETS}/llm.acme.example./A"
    assert project.ok("PATCH", one, {"ttl": 60})["ttl"] == 60
    project.ok("DELETE", one)
    project.refusal(404, "GET", one)


def test_a_zone_goes_only_when_it_is_empty(project):
    add_record(project, "llm.acme.example.", "A", "203.0.113.7")
    refusal = project.refusal(400, "DELETE", ZONE)
    assert (refusal["errors"][0]["reason"], refusal["message"]) == (
        "containerNotEmpty",
        "The resource named 'acme' cannot be deleted because it contains one or more 'resource records'.",
    )
    project.ok("DELETE", f"{SETS}/llm.acme.example./A")
    assert project.call("DELETE", ZONE).status_code == 204
    project.refusal(404, "GET", ZONE)
    assert not list(project.cloud.store.rows("dns/rrsets"))


def test_a_zone_keeps_what_is_fixed(project):
    zone = project.ok("GET", ZONE)
    assert project.ok("PUT", ZONE, zone | {"description": "e", "id": int(zone["id"])})["type"] == "update"
    assert project.ok("GET", ZONE)["description"] == "e"
    project.ok("PATCH", ZONE, {"labels": {"a": "b"}})
    assert project.ok("GET", ZONE)["labels"] == {"a": "b"}
    assert "dnsName" in project.refusal(400, "PATCH", ZONE, {"dnsName": "other.example."})["message"]


RECORD = {"name": "x.acme.example.", "type": "A", "ttl": 300, "rrdatas": ["203.0.113.7"]}
WRONG = {
    "a name without a dot": (RECORD | {"name": "x.acme.example"}, "additions[0].name"),
    "a name of another zone": (RECORD | {"name": "x.other.example."}, "additions[0].name"),
    "an address that is none": (RECORD | {"rrdatas": ["x"]}, "rrdata[0]"),
    "an IPv6 address in an A record": (RECORD | {"rrdatas": ["2001:db8::1"]}, "rrdata[0]"),
    "no value": (RECORD | {"rrdatas": []}, "rrdata"),
    "another type": (RECORD | {"type": "LOC"}, "does not serve records of the type"),
    "an alias at the apex": (
        {"name": "acme.example.", "type": "CNAME", "rrdatas": ["a.example."]}, "additions[0].rrdata",
    ),
    "an alias beside an address": (
        {"name": "llm.acme.example.", "type": "CNAME", "rrdatas": ["a.example."]}, "conflicts",
    ),
}  # fmt: skip


def test_a_wrong_record_is_refused_with_its_place(project):
    add_record(project, "llm.acme.example.", "A", "203.0.113.7")
    for record, says in WRONG.values():
        assert says in project.refusal(400, "POST", f"{ZONE}/changes", {"additions": [record]})["message"]
    apex = project.ok("GET", SETS, name="acme.example.", type="NS")["rrsets"]
    assert "exactly one" in project.refusal(400, "POST", f"{ZONE}/changes", {"deletions": apex})["message"]
    for body, says in (
        ({"name": "x", "dnsName": "acme.example", "description": "d"}, "dnsName"),
        ({"name": "X", "dnsName": "a.example.", "description": "d"}, "name"),
        ({"name": "x", "dnsName": "a.example.", "peeringConfig": {"targetNetwork": {}}}, "peeringConfig"),
        ({"name": "x", "dnsName": "a.example.", "dnssecConfig": {"state": "on"}}, "DNSSEC"),
    ):
        assert says in project.refusal(400, "POST", DNS, body)["message"]
    project.refusal(409, "POST", DNS, {"name": "acme", "dnsName": "acme.example."})
