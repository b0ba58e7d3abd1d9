"""`iamConfiguration` of buckets: whole in every answer, and uniform access by both of its names."""

import pytest

from localcloud_support.in_process import Project

BUCKETS, SHELF = "/storage/v1/b", "/storage/v1/b/shelf"
OFF = {
    "bucketPolicyOnly": {"enabled": False},
    "uniformBucketLevelAccess": {"enabled": False},
    "publicAccessPrevention": "inherited",
}
BOTH = ("bucketPolicyOnly", "uniformBucketLevelAccess")


@pytest.fixture
def project(tmp_path):
    new_project = Project(tmp_path)
    yield new_project
    new_project.close()


def make_bucket(project, name="shelf", **configuration):
    body = {"name": name} | ({"iamConfiguration": configuration} if configuration else {})
    return project.ok("POST", BUCKETS, body, project="bezel-local")


def on(bucket):
    """Whether access is uniform, which both names must say alike."""
    configuration = bucket["iamConfiguration"]
    assert configuration["bucketPolicyOnly"] == configuration["uniformBucketLevelAccess"]
    assert set(configuration) >= set(OFF)
    return configuration["bucketPolicyOnly"]["enabled"]


@pytest.mark.slow
def test_every_answer_has_the_whole_configuration(project):
    answers = [
        make_bucket(project),
        project.ok("GET", SHELF),
        project.ok("PATCH", SHELF, {"labels": {"a": "b"}}),
        project.ok("PUT", SHELF, {"labels": {"a": "b"}}),
        *project.ok("GET", BUCKETS, project="bezel-local")["items"],
    ]
    generation = answers[0]["generation"]
    assert project.call("DELETE", SHELF).status_code == 204
    answers += project.ok("GET", BUCKETS, project="bezel-local", softDeleted="true")["items"]
    answers.append(project.ok("GET", SHELF, softDeleted="true", generation=generation))
    answers.append(project.ok("POST", f"{SHELF}/restore", generation=generation))
    project.ok("PATCH", SHELF, {"retentionPolicy": {"retentionPeriod": "1"}})
    metageneration = project.ok("GET", SHELF)["metageneration"]
    answers.append(project.ok("POST", f"{SHELF}/lockRetentionPolicy", ifMetagenerationMatch=metageneration))
    assert [answer["iamConfiguration"] for answer in answers] == [OFF] * 9


def test_a_bucket_of_an_earlier_version_has_it_too(project):
    row = {key: value for key, value in make_bucket(project).items() if key != "iamConfiguration"}
    project.cloud.store.put("bucket", "shelf", row)
    assert project.ok("GET", SHELF)["iamConfiguration"] == OFF


@pytest.mark.parametrize("name", BOTH)
def test_each_name_turns_uniform_access_on_and_off(project, name):
    bucket = make_bucket(project, **{name: {"enabled": True}})
    assert on(bucket)
    assert bucket["iamConfiguration"][name]["lockedTime"] > bucket["timeCreated"]
    project.raw("POST", "/upload/storage/v1/b/shelf/o?uploadType=media&name=a", b"x")
    assert project.call("GET", f"{SHELF}/o/a/iam").status_code == 400
    assert not on(project.ok("PATCH", SHELF, {"iamConfiguration": {name: {"enabled": False}}}))
    assert project.call("GET", f"{SHELF}/o/a/iam").status_code == 200
    assert not on(project.ok("PATCH", SHELF, {"iamConfiguration": {"publicAccessPrevention": "enforced"}}))
    assert on(project.ok("PUT", SHELF, {"iamConfiguration": {name: {"enabled": True}}}))
    assert not on(project.ok("PUT", SHELF, {}))


@pytest.mark.slow
@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("start", [True, False])
def test_a_client_that_changes_one_name_of_what_it_read_is_heeded(project, name, start):
    read = make_bucket(project, uniformBucketLevelAccess={"enabled": start})["iamConfiguration"]
    changed = read | {name: read[name] | {"enabled": not start}}
    assert on(project.ok("PATCH", SHELF, {"iamConfiguration": changed})) is not start
    assert (
        on(project.ok("PATCH", SHELF, {"iamConfiguration": project.ok("GET", SHELF)["iamConfiguration"]})) is not start
    )


def test_uniform_access_is_permanent_after_ninety_days(project):
    locked = make_bucket(project, bucketPolicyOnly={"enabled": True})["iamConfiguration"]["bucketPolicyOnly"][
        "lockedTime"
    ]
    project.passes(86_400 * 89)
    off = {"iamConfiguration": {"uniformBucketLevelAccess": {"enabled": False}}}
    assert project.ok("PATCH", SHELF, {"labels": {"a": "b"}})["iamConfiguration"]["bucketPolicyOnly"] == {
        "enabled": True,
        "lockedTime": locked,
    }
    project.passes(86_400 * 2)
    project.token = project.cloud.tokens.access_token("deployer@bezel-local.iam.gserviceaccount.com", "", 1e9)[0]
    assert "locked since" in project.refusal(400, "PATCH", SHELF, off)["message"]


def test_a_wrong_value_is_refused_and_a_former_one_is_the_default(project):
    make_bucket(project, publicAccessPrevention="unspecified")
    assert project.ok("GET", SHELF)["iamConfiguration"] == OFF
    wrong = {"iamConfiguration": {"publicAccessPrevention": "never"}}
    assert "publicAccessPrevention" in project.refusal(400, "PATCH", SHELF, wrong)["message"]


def test_links_are_at_the_address_that_the_client_used(project):
    make_bucket(project)
    project.raw("POST", "/upload/storage/v1/b/shelf/o?uploadType=media&name=a", b"x")
    host = {"Host": "localhost:4711"}
    bucket = project.raw("GET", SHELF, headers=host).json()
    listed = project.raw("GET", f"{SHELF}/o", headers=host).json()["items"][0]
    started = project.raw("POST", "/upload/storage/v1/b/shelf/o?uploadType=resumable&name=b", b"{}", host)
    network = project.raw("GET", "/compute/v1/projects/bezel-local/zones/us-east5-a", headers=host).json()
    links = [bucket["selfLink"], listed["selfLink"], listed["mediaLink"], started.headers["location"]]
    links += [network["selfLink"], network["region"]]
    assert [link.startswith("http://localhost:4711/") for link in links] == [True] * 6
    assert project.ok("GET", SHELF)["selfLink"].startswith(project.cloud.base)
    for link in (listed["mediaLink"], listed["selfLink"]):
        assert project.raw("GET", link).status_code == 200
