"""Rights over load balancing: what a new part refers to needs `use`, and a condition may name a record set."""

import pytest

from bezel_localcloud.core.paths import PROJECT
from localcloud_support.balancer_programs import BALANCER, DNS, GLOBAL, add_record, make_balancer, make_zone
from localcloud_support.in_process import COMPUTE, SCOPE, Project

ACCOUNT = f"limited@{PROJECT}.iam.gserviceaccount.com"


@pytest.fixture
def project(tmp_path):
    project = Project(tmp_path)
    for api in ("iam", "cloudresourcemanager"):
        project.cloud.store.put("api", f"{api}.googleapis.com", {"state": "ENABLED"})
    project.ok("POST", f"/iam/v1/projects/{PROJECT}/serviceAccounts", {"accountId": "limited"})
    yield project
    project.close()


def grant(project, *permissions, condition=""):
    """Give the account these permissions and no other one, and send the next requests in its name."""
    role = {"title": "Limited", "includedPermissions": list(permissions)}
    project.ok("POST", f"/iam/v1/projects/{PROJECT}/roles", {"roleId": "limited", "role": role})
    binding = {"role": f"projects/{PROJECT}/roles/limited", "members": [f"serviceAccount:{ACCOUNT}"]}
    binding |= {"condition": {"title": "t", "expression": condition}} if condition else {}
    policy = project.ok("POST", f"/crm/v1/projects/{PROJECT}:getIamPolicy", {})
    policy["bindings"].append(binding)
    project.ok("POST", f"/crm/v1/projects/{PROJECT}:setIamPolicy", {"policy": policy | {"version": 3}})
    project.token = project.cloud.tokens.access_token(ACCOUNT, SCOPE)[0]


@pytest.mark.parametrize("may_use", [True, False])
def test_a_reference_needs_the_permission_to_use_it(project, may_use):
    make_balancer(project)
    uses = ["compute.backendServices.use"] if may_use else []
    grant(project, "compute.urlMaps.create", "compute.urlMaps.update", "compute.urlMaps.get", *uses)
    other = {"name": "other", "defaultService": f"{GLOBAL}/backendServices/be"}
    assert project.call("POST", f"{COMPUTE}/global/urlMaps", other).status_code == (200 if may_use else 403)
    current = project.ok("GET", f"{COMPUTE}/global/urlMaps/map")["fingerprint"]
    change = BALANCER["global/urlMaps"] | {"description": "d", "fingerprint": current}
    project.ok("PUT", f"{COMPUTE}/global/urlMaps/map", change)


def test_a_condition_may_name_a_record_set_of_a_zone(project):
    zone = make_zone(project)
    add_record(project, "old.acme.example.", "A", "203.0.113.7")
    name = f"/managedZones/{zone['id']}/rrsets/llm.acme.example./A"
    grant(
        project,
        *(f"dns.resourceRecordSets.{verb}" for verb in ("create", "update", "delete")),
        "dns.changes.create",
        condition=f'resource.type != "dns.googleapis.com/ResourceRecordSet" || resource.name.endsWith("{name}")',
    )
    add_record(project, "llm.acme.example.", "A", "203.0.113.7")
    record = {"name": "old.acme.example.", "type": "A", "ttl": 300, "rrdatas": ["203.0.113.7"]}
    for change in ({"deletions": [record]}, {"additions": [record | {"name": "www.acme.example."}]}):
        project.refusal(403, "POST", f"{DNS}/acme/changes", change)
    project.ok("POST", f"{DNS}/acme/changes", {"deletions": [record | {"name": "llm.acme.example."}]})
