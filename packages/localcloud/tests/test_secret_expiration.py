"""Secrets that expire: set as a duration or a timestamp, shown as a timestamp, deleted when the time has come."""

import pytest

from bezel_localcloud.core.json_types import timestamp
from localcloud_support.in_process import Project

SECRETS = "/secretmanager/v1/projects/bezel-local/secrets"
ONE = f"{SECRETS}/one"
PLAIN = {"replication": {"automatic": {}}}


@pytest.fixture
def made(tmp_path):
    project = Project(tmp_path)
    project.ok("POST", "/serviceusage/v1/projects/bezel-local/services/secretmanager.googleapis.com:enable", {})
    yield project
    project.close()


@pytest.mark.parametrize("form", ["ttl", "expireTime"])
def test_an_expiration_is_shown_as_a_timestamp_however_it_was_given(made, form):
    moment = timestamp(made.clock.time + 3600)
    given = {"ttl": {"ttl": "3600s"}, "expireTime": {"expireTime": moment}}[form]
    secret = made.ok("POST", SECRETS, PLAIN | given, secretId="one")
    assert secret["expireTime"] == made.ok("GET", ONE)["expireTime"] == moment
    assert "ttl" not in secret


@pytest.mark.slow
def test_a_secret_goes_with_its_versions_when_its_time_has_come_and_not_before(made):
    made.ok("POST", SECRETS, PLAIN | {"ttl": "3600s"}, secretId="one")
    made.ok("POST", SECRETS, PLAIN, secretId="two")
    made.ok("POST", f"{ONE}:addVersion", {"payload": {"data": "YQ=="}})
    made.clock.time += 3599
    assert made.ok("GET", f"{ONE}/versions/latest:access")["payload"]["data"] == "YQ=="
    made.clock.time += 1
    assert "not found" in made.refused(404, "GET", f"{ONE}/versions/latest:access")["message"]
    assert "not found" in made.refused(404, "GET", ONE)["message"]
    assert [secret["name"].rpartition("/")[2] for secret in made.ok("GET", SECRETS)["secrets"]] == ["two"]
    assert not dict(made.cloud.store.rows("secretVersion"))
    made.ok("POST", SECRETS, PLAIN, secretId="one")


@pytest.mark.parametrize("form", ["ttl", "expireTime", "expire_time"])
def test_an_expiration_is_changed_and_taken_away_by_a_mask(made, form):
    made.ok("POST", SECRETS, PLAIN | {"ttl": "3600s"}, secretId="one")
    moment = timestamp(made.clock.time + 7200)
    given = {"ttl": "7200s"} if form == "ttl" else {"expireTime": moment}
    assert made.ok("PATCH", ONE, given, updateMask=form)["expireTime"] == moment
    assert made.ok("PATCH", ONE, {"labels": {"a": "b"}}, updateMask="labels")["expireTime"] == moment
    assert "expireTime" not in made.ok("PATCH", ONE, {}, updateMask=form)
    made.clock.time += 10_000
    assert made.ok("GET", ONE)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"ttl": "59s"}, "at least 60 seconds"),
        ({"ttl": "3200000000s"}, "at most 100 years"),
        ({"expireTime": "2020-01-01T00:00:00Z"}, "at least 60 seconds"),
        ({"ttl": "60s", "expireTime": "2099-01-01T00:00:00Z"}, "oneof field 'expiration' is already set"),
    ],
)
def test_an_expiration_that_is_too_near_too_far_or_given_twice_is_refused(made, given, word):
    assert word in made.refused(400, "POST", SECRETS, PLAIN | given, secretId="one")["message"]
    made.ok("POST", SECRETS, PLAIN | {"ttl": "60s"}, secretId="one")
    assert word in made.refused(400, "PATCH", ONE, given, updateMask=",".join(given))["message"]
