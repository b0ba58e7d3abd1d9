"""Secrets that expire: set as a duration or a timestamp, shown as a timestamp, deleted when the time has come."""

import pytest

from bezel_localcloud.core.json_types import timestamp
from localcloud_support.in_process import Project

SECRETS = "/secretmanager/v1/projects/bezel-local/secrets"
ONE = f"{SECRETS}/one"
PLAIN = {"replication": {"automatic": {}}}


@pytest.fixture
def new_project(tmp_path):
    project = Project(tmp_path)
    project.ok("POST", "/serviceusage/v1/projects/bezel-local/services/secretmanager.googleapis.com:enable", {})
    yield project
    project.close()


@pytest.mark.parametrize("form", ["ttl", "expireTime"])
def test_an_expiration_is_shown_as_a_timestamp_however_it_was_given(new_project, form):
    moment = timestamp(new_project.clock.time + 3600)
    fields = {"ttl": {"ttl": "3600s"}, "expireTime": {"expireTime": moment}}[form]
    secret = new_project.ok("POST", SECRETS, PLAIN | fields, secretId="one")
    assert secret["expireTime"] == new_project.ok("GET", ONE)["expireTime"] == moment
    assert "ttl" not in secret


@pytest.mark.slow
def test_a_secret_goes_with_its_versions_at_its_time(new_project):
    """A secret goes with its versions when its time has come and not before."""
    new_project.ok("POST", SECRETS, PLAIN | {"ttl": "3600s"}, secretId="one")
    new_project.ok("POST", SECRETS, PLAIN, secretId="two")
    new_project.ok("POST", f"{ONE}:addVersion", {"payload": {"data": "YQ=="}})
    new_project.clock.time += 3599
    assert new_project.ok("GET", f"{ONE}/versions/latest:access")["payload"]["data"] == "YQ=="
    new_project.clock.time += 1
    assert "not found" in new_project.refusal(404, "GET", f"{ONE}/versions/latest:access")["message"]
    assert "not found" in new_project.refusal(404, "GET", ONE)["message"]
    assert [secret["name"].rpartition("/")[2] for secret in new_project.ok("GET", SECRETS)["secrets"]] == ["two"]
    assert not dict(new_project.cloud.store.rows("secretVersion"))
    new_project.ok("POST", SECRETS, PLAIN, secretId="one")


@pytest.mark.parametrize("form", ["ttl", "expireTime", "expire_time"])
def test_an_expiration_is_changed_and_taken_away_by_a_mask(new_project, form):
    new_project.ok("POST", SECRETS, PLAIN | {"ttl": "3600s"}, secretId="one")
    moment = timestamp(new_project.clock.time + 7200)
    fields = {"ttl": "7200s"} if form == "ttl" else {"expireTime": moment}
    assert new_project.ok("PATCH", ONE, fields, updateMask=form)["expireTime"] == moment
    assert new_project.ok("PATCH", ONE, {"labels": {"a": "b"}}, updateMask="labels")["expireTime"] == moment
    assert "expireTime" not in new_project.ok("PATCH", ONE, {}, updateMask=form)
    new_project.clock.time += 10_000
    assert new_project.ok("GET", ONE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"ttl": "59s"}, "at least 60 seconds"),
        ({"ttl": "3200000000s"}, "at most 100 years"),
        ({"expireTime": "2020-01-01T00:00:00Z"}, "at least 60 seconds"),
        ({"ttl": "60s", "expireTime": "2099-01-01T00:00:00Z"}, "oneof field 'expiration' is already set"),
    ],
)
def test_an_expiration_that_is_too_near_too_far_or_given_twice_is_refused(new_project, fields, word):
    assert word in new_project.refusal(400, "POST", SECRETS, PLAIN | fields, secretId="one")["message"]
    new_project.ok("POST", SECRETS, PLAIN | {"ttl": "60s"}, secretId="one")
    assert word in new_project.refusal(400, "PATCH", ONE, fields, updateMask=",".join(fields))["message"]
