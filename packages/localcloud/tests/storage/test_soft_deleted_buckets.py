"""Soft-deleted buckets, and policies of single objects."""

import pytest

from localcloud_support.in_process import SCOPE

BUCKETS = "/storage/v1/b"
OBJECTS = f"{BUCKETS}/shelf/o"
WEEK = 604_800
READER = "reader@bezel-local.iam.gserviceaccount.com"
OWN = {"role": "roles/storage.legacyObjectReader", "members": [f"serviceAccount:{READER}"]}


def deleted_buckets(project):
    return project.ok("GET", BUCKETS, project="bezel-local", softDeleted="true").get("items", [])


def test_a_deleted_bucket_is_restored_with_its_policy_and_objects(project, put):
    """A deleted bucket is listed, read and restored with its policy and its objects."""
    number = put("a", b"kept")["generation"]
    project.ok("PATCH", f"{BUCKETS}/shelf", {"labels": {"team": "ml"}})
    policy = project.ok("GET", f"{BUCKETS}/shelf/iam")
    project.call("DELETE", f"{OBJECTS}/a")
    assert project.call("DELETE", f"{BUCKETS}/shelf").status_code == 204
    assert project.call("GET", f"{BUCKETS}/shelf").status_code == 404
    (row,) = deleted_buckets(project)
    assert (row["labels"], row["softDeleteTime"] < row["hardDeleteTime"]) == ({"team": "ml"}, True)
    one = project.ok("GET", f"{BUCKETS}/shelf", softDeleted="true", generation=row["generation"])
    assert one == row
    project.refusal(400, "GET", f"{BUCKETS}/shelf", softDeleted="true")
    project.refusal(404, "POST", f"{BUCKETS}/shelf/restore", generation="1")
    restored = project.ok("POST", f"{BUCKETS}/shelf/restore", generation=row["generation"])
    assert (restored["labels"], "softDeleteTime" in restored) == ({"team": "ml"}, False)
    assert (deleted_buckets(project), project.ok("GET", f"{BUCKETS}/shelf/iam")["bindings"]) == ([], policy["bindings"])
    assert project.call("GET", f"{OBJECTS}/a").status_code == 404
    project.ok("POST", f"{OBJECTS}/a/restore", generation=number)
    assert project.raw("GET", f"{OBJECTS}/a?alt=media").content == b"kept"


def test_a_new_bucket_of_the_name_hinders_the_restoration(project, put):
    """A new bucket of the name has nothing of the old one and is in the way of its restoration."""
    put("a", b"old")
    project.call("DELETE", f"{OBJECTS}/a")
    project.call("DELETE", f"{BUCKETS}/shelf")
    project.ok("POST", BUCKETS, {"name": "shelf"}, project="bezel-local")
    assert "items" not in project.ok("GET", OBJECTS, softDeleted="true")
    (row,) = deleted_buckets(project)
    project.refusal(409, "POST", f"{BUCKETS}/shelf/restore", generation=row["generation"])
    project.restart()
    project.call("DELETE", f"{BUCKETS}/shelf")
    project.ok("POST", f"{BUCKETS}/shelf/restore", generation=row["generation"])
    assert [item["name"] for item in project.ok("GET", OBJECTS, softDeleted="true")["items"]] == ["a"]


def test_a_deleted_bucket_is_gone_after_its_retention(project):
    """A bucket without a soft-delete policy is gone and one with it after its time."""
    body = {"name": "short", "softDeletePolicy": {"retentionDurationSeconds": "0"}}
    project.ok("POST", BUCKETS, body, project="bezel-local")
    project.call("DELETE", f"{BUCKETS}/short")
    assert deleted_buckets(project) == []
    project.call("DELETE", f"{BUCKETS}/shelf")
    (row,) = deleted_buckets(project)
    project.passes(WEEK + 1)
    assert deleted_buckets(project) == []
    project.refusal(404, "POST", f"{BUCKETS}/shelf/restore", generation=row["generation"])


@pytest.fixture
def read(project, put):
    """The status of a read of an object by an account without any role but on objects."""
    project.ok("POST", "/serviceusage/v1/projects/bezel-local/services/iam.googleapis.com:enable", {})
    project.ok("POST", "/iam/v1/projects/bezel-local/serviceAccounts", {"accountId": "reader"})
    token = project.cloud.tokens.access_token(READER, SCOPE, 600.0)[0]
    put("a"), put("b")

    def status(name):
        headers = {"authorization": f"Bearer {token}"}
        return project.raw("GET", f"{OBJECTS}/{name}", headers=headers, token=False).status_code

    return status


def test_the_policy_of_an_object_counts_for_it_alone(project, put, read):
    """The policy of an object counts for it alone and until it is overwritten."""
    assert read("a") == 403
    written = project.ok("PUT", f"{OBJECTS}/a/iam", {"bindings": [OWN]})
    assert written["resourceId"] == "projects/_/buckets/shelf/objects/a"
    assert project.ok("GET", f"{OBJECTS}/a/iam")["bindings"] == [OWN]
    assert (read("a"), read("b")) == (200, 403)
    wanted = ["storage.objects.get", "storage.objects.delete"]
    assert project.ok("GET", f"{OBJECTS}/a/iam/testPermissions", permissions=wanted)["permissions"] == wanted
    put("a", b"new")
    assert read("a") == 403
    project.refusal(404, "GET", f"{OBJECTS}/absent/iam")


def test_with_uniform_access_policies_of_objects_do_not_count(project, put, read):
    """With uniform access an object has no policy and an earlier one does not count."""
    for name in ("a", "b"):
        project.ok("PUT", f"{OBJECTS}/{name}/iam", {"bindings": [OWN]})
    project.ok("PATCH", f"{BUCKETS}/shelf", {"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}}})
    for verb, body in (("GET", None), ("PUT", {"bindings": [OWN]})):
        assert project.refusal(400, verb, f"{OBJECTS}/a/iam", body)["message"] == (
            "Object policies are disabled for bucket 'shelf' when uniform bucket-level access is enabled. Read more at "
            "https://cloud.google.com/storage/docs/uniform-bucket-level-access."
        )
    assert read("a") == 403
    put("b", b"new")
    project.ok("PATCH", f"{BUCKETS}/shelf", {"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": False}}})
    assert (read("a"), read("b")) == (200, 403)
