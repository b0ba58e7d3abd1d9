"""IAM policies: kept over everything that happens to their resource but its deletion, and not inherited by the next."""

import pytest

from bezel.leases.requests import ZoneChoice, instance_body, instance_in_zone
from bezel_localcloud.access.permissions import Access
from bezel_localcloud.core.store import Store
from bezel_localcloud.http.methods import served_methods
from localcloud_support.client import DEPLOYER, PARENT, REGION, SERVICES
from localcloud_support.in_process import COMPUTE, Project

JOBS = f"/run/v2/{PARENT}/locations/{REGION}/jobs"
MEMBER = f"serviceAccount:{DEPLOYER}"
SECRETS = f"/secretmanager/v1/{PARENT}/secrets"
REPOSITORIES = f"/artifactregistry/v1/{PARENT}/locations/{REGION}/repositories"
ACCOUNTS = f"/iam/v1/{PARENT}/serviceAccounts"
SUBNETWORKS = f"{COMPUTE}/regions/us-east5/subnetworks"
BUCKETS = "/storage/v1/b"
ID = PARENT.partition("/")[2]
ZONE = ZoneChoice("us-east5-a", 600.0)
MACHINE = instance_in_zone(
    instance_body(
        machine_type="ct6e-standard-1t", source_image="projects/i/global/images/family/f", labels={}, metadata={},
        service_account=None, run_seconds=14_400,
    ),
    ZONE, project=ID, name="kept", subnetwork=f"{PARENT}/regions/us-east5/subnetworks/net-us-east5",
)  # fmt: skip
# Resources that are deleted: list, query and body that make one; its path below the list; the role, and a change.
RESOURCES = {
    "secret": (
        *(SECRETS, {"secretId": "kept"}, {"replication": {"automatic": {}}}, "kept", "roles/secretmanager.viewer"),
        ({"labels": {"a": "b"}}, {"updateMask": "labels"}),
    ),
    "repository": (
        *(REPOSITORIES, {"repositoryId": "kept"}, {"format": "DOCKER"}, "kept", "roles/artifactregistry.reader"),
        ({"description": "d"}, {"updateMask": "description"}),
    ),
    "service account": (
        *(ACCOUNTS, {}, {"accountId": "kept-one"}, f"kept-one@{ID}.iam.gserviceaccount.com"),
        "roles/iam.serviceAccountUser",
        ({"serviceAccount": {"displayName": "d"}, "updateMask": "displayName"}, {}),
    ),
    "subnetwork": (
        *(SUBNETWORKS, {}, {"name": "kept", "network": f"{PARENT}/global/networks/net", "ipCidrRange": "10.9.0.0/24"}),
        *("kept", "roles/compute.networkUser", None),
    ),
    "instance": (
        *(f"{COMPUTE}/zones/us-east5-a/instances", {}, MACHINE, "kept", "roles/compute.viewer"),
        None,
    ),
    "bucket": (
        *(BUCKETS, {"project": ID}, {"name": "kept"}, "kept", "roles/storage.objectViewer"),
        ({"labels": {"a": "b"}}, {}),
    ),
}


@pytest.fixture
def project(tmp_path):
    running_project = Project(tmp_path / "cloud")
    for api in ("secretmanager", "artifactregistry", "iam"):
        running_project.cloud.store.put("api", f"{api}.googleapis.com", {"state": "ENABLED"})
    running_project.network()
    yield running_project
    running_project.close()


def members(policy, role):
    return {member for one in policy.get("bindings", []) if one["role"] == role for member in one["members"]}


def policy_of(project, kind, path, policy=None):
    """The policy of a resource, after it was set where one is given."""
    if kind == "bucket":
        return project.ok("PUT" if policy else "GET", f"{path}/iam", policy)
    sign = "/" if kind in {"subnetwork", "instance"} else ":"
    if policy:
        return project.ok("POST", f"{path}{sign}setIamPolicy", {"policy": policy})
    return project.ok("POST" if kind == "service account" else "GET", f"{path}{sign}getIamPolicy")


# Each resource with a policy that a caller can delete, by the test that tries it.
TRIED = {
    *("secretmanager.projects.secrets", "artifactregistry.projects.locations.repositories"),
    *("iam.projects.serviceAccounts", "compute.subnetworks", "compute.instances", "storage.buckets"),
    *("run.projects.locations.services", "run.projects.locations.jobs", "storage.objects"),
}


def test_every_deletable_resource_with_a_policy_is_tried():
    methods = {tuple(method.id.rsplit(".", 1)) for method in served_methods().values()}
    owners = {resource for resource, method in methods if method == "setIamPolicy"}
    assert {resource for resource in owners if (resource, "delete") in methods} == TRIED


@pytest.mark.slow
@pytest.mark.parametrize("kind", RESOURCES)
def test_a_change_keeps_a_policy_and_a_deletion_ends_it(project, kind):
    parent, query, body, name, role, change = RESOURCES[kind]
    project.ok("POST", parent, body, **query)
    project.passes(120)
    policy_of(project, kind, f"{parent}/{name}", {"bindings": [{"role": role, "members": [MEMBER]}]})
    if change:
        project.ok("PATCH", f"{parent}/{name}", change[0], **change[1])
    assert members(policy_of(project, kind, f"{parent}/{name}"), role) == {MEMBER}
    assert project.call("DELETE", f"{parent}/{name}").is_success
    project.passes(120)
    project.ok("POST", parent, body, **query)
    project.passes(120)
    assert members(policy_of(project, kind, f"{parent}/{name}"), role) == set()


@pytest.mark.slow
def test_a_new_revision_of_a_service_keeps_its_policy(cloud):
    path, role = f"{SERVICES}/policied", "roles/run.invoker"
    cloud.create("policied", cloud.template())
    try:
        cloud.grant(path, role, MEMBER)
        assert "error" not in cloud.update("policied", cloud.template(env=[{"name": "A", "value": "1"}]))
        assert members(cloud.get(f"{path}:getIamPolicy").json(), role) == {MEMBER}
        failed = cloud.update("policied", cloud.template("--exit=1"))
        assert "error" in failed
        assert members(cloud.get(f"{path}:getIamPolicy").json(), role) == {MEMBER}
    finally:
        cloud.remove("policied")
    cloud.create("policied", cloud.template())
    try:
        assert members(cloud.get(f"{path}:getIamPolicy").json(), role) == set()
    finally:
        cloud.remove("policied")


@pytest.mark.slow
def test_an_execution_of_a_job_keeps_its_policy(cloud):
    path, role = f"{JOBS}/policied", "roles/run.invoker"
    task = {"containers": [{"image": cloud.template()["containers"][0]["image"], "args": ["--exit=0"]}]}
    made = {"template": {"template": task | {"serviceAccount": cloud.template()["serviceAccount"]}}}
    for kept in (True, False):
        cloud.finish("run/v2", cloud.post(JOBS, made, jobId="policied"))
        try:
            assert members(cloud.get(f"{path}:getIamPolicy").json(), role) == set()
            if kept:
                cloud.grant(path, role, MEMBER)
                cloud.finish("run/v2", cloud.post(f"{path}:run"))
                assert members(cloud.get(f"{path}:getIamPolicy").json(), role) == {MEMBER}
        finally:
            cloud.finish("run/v2", cloud.delete(path))


def test_an_object_s_policy_outlives_its_change_but_not_its_deletion(project):
    project.ok("POST", BUCKETS, {"name": "shelf"}, project=ID)
    upload = "/upload/storage/v1/b/shelf/o?uploadType=media&name="
    for name in ("a", "a%2Fb"):
        assert project.raw("POST", upload + name, b"x").is_success
    granted = {"bindings": [{"role": "roles/storage.legacyObjectReader", "members": [MEMBER]}]}
    path, role = f"{BUCKETS}/shelf/o/a", "roles/storage.legacyObjectReader"
    project.ok("PUT", f"{path}/iam", granted)
    project.ok("PATCH", path, {"metadata": {"a": "b"}})
    assert project.raw("DELETE", f"{path}%2Fb").status_code == 204
    assert members(project.ok("GET", f"{path}/iam"), role) == {MEMBER}
    assert project.raw("DELETE", path).status_code == 204
    assert project.raw("POST", f"{upload}a", b"x").is_success
    assert members(project.ok("GET", f"{path}/iam"), role) == set()


def test_an_object_with_the_name_of_a_secret_takes_nothing_of_it(project):
    name = f"{PARENT.partition('/')[2]}/secrets/kept"
    project.ok("POST", SECRETS, {"replication": {"automatic": {}}}, secretId="kept")
    policy = {"bindings": [{"role": "roles/secretmanager.viewer", "members": [MEMBER]}]}
    project.ok("POST", f"{SECRETS}/kept:setIamPolicy", {"policy": policy})
    project.ok("POST", BUCKETS, {"name": "projects"}, project=ID)
    encoded = name.replace("/", "%2F")
    assert project.raw("POST", f"/upload/storage/v1/b/projects/o?uploadType=media&name={encoded}", b"x").is_success
    assert project.raw("DELETE", f"/storage/v1/b/projects/o/{encoded}").status_code == 204
    assert members(project.ok("GET", f"{SECRETS}/kept:getIamPolicy"), "roles/secretmanager.viewer") == {MEMBER}


def test_a_row_of_any_kind_is_deleted_alone(tmp_path):
    store = Store(tmp_path / "cloud.db")
    store.put_policy("name", {"version": 1})
    for kind in ("service", "deployment", "lateFill"):
        store.put(kind, "name", {})
    for kind in ("deployment", "lateFill", "service"):
        store.delete(kind, "name")
        assert store.policy("name") == {"version": 1}
    assert store.rows("service") == store.rows("deployment") == []
    store.close()


def test_the_policy_of_an_object_is_not_one_of_longer_names(tmp_path):
    store, bucket = Store(tmp_path / "cloud.db"), "projects/_/buckets/b"
    access, wanted = Access(store), "storage.objects.get"
    store.put_policy(
        f"{bucket}/objects/a", {"bindings": [{"role": "roles/storage.legacyObjectReader", "members": ["allUsers"]}]}
    )
    assert access.allows(None, wanted, f"{bucket}/objects/a")
    assert not access.allows(None, wanted, f"{bucket}/objects/a/b")
    store.put_policy(bucket, {"bindings": [{"role": "roles/storage.objectViewer", "members": ["allUsers"]}]})
    assert access.allows(None, wanted, f"{bucket}/objects/a/b")
    store.close()
