"""Two spellings of one value are no change, and are sent as Google takes them: the provider's DiffSuppressFuncs.

Source: GoogleCloudPlatform/magic-modules, mmv1/products/artifactregistry/Repository.yaml and its constants,
products/cloudrunv2/Service.yaml (recorded too), products/billingbudget/Budget.yaml, and
third_party/terraform/services/storage/resource_storage_bucket.go.tmpl.
"""

from typing import Any

import pytest

from bezel_pulumi_offline.lifecycle.values import decode
from pulumi_offline_support.client import Provider
from pulumi_offline_support.google import FakeGoogle
from pulumi_offline_support.programs import PROGRAMS, with_change

REPOSITORY = "gcp:artifactregistry/repository:Repository"
SERVICE = "gcp:cloudrunv2/service:Service"
BUCKET = "gcp:storage/bucket:Bucket"
BUDGET = "gcp:billing/budget:Budget"

ONE = {"id": "one", "repository": "projects/p/locations/l/repositories/a", "priority": 10}
TWO = {"id": "two", "repository": "projects/p/locations/l/repositories/b", "priority": 20}
OLD = {"id": "old", "action": "DELETE", "condition": {"olderThan": "7d", "newerThan": "90m"}}
PLAIN = {"repositoryId": "hub", "location": "us-central1", "format": "DOCKER"}
VIRTUAL = {**PLAIN, "mode": "VIRTUAL_REPOSITORY", "virtualRepositoryConfig": {"upstreamPolicies": [ONE, TWO]}}
MAVEN = {**PLAIN, "format": "MAVEN", "mavenConfig": {}}
CLEANED = {**PLAIN, "cleanupPolicies": [OLD]}
SITE = {**PROGRAMS[BUCKET], "website": {"mainPageSuffix": "index.html", "notFoundPage": "404.html"}}
DUAL = {**PROGRAMS[BUCKET], "customPlacementConfig": {"dataLocations": ["US-EAST1", "US-WEST1"]}}
AGE = "cleanupPolicies.0.condition.olderThan"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "program", "path", "value", "verdict"),
    [
        (REPOSITORY, PLAIN, "format", "docker", "same"),
        (REPOSITORY, PLAIN, "format", "npm", "replace"),
        (REPOSITORY, MAVEN, "mavenConfig", None, "same"),
        (REPOSITORY, MAVEN, "mavenConfig", {"versionPolicy": "VERSION_POLICY_UNSPECIFIED"}, "same"),
        (REPOSITORY, MAVEN, "mavenConfig", {"allowSnapshotOverwrites": True}, "replace"),
        (REPOSITORY, MAVEN, "mavenConfig", {"versionPolicy": "RELEASE"}, "replace"),
        (REPOSITORY, PLAIN, "mavenConfig", {}, "same"),
        (REPOSITORY, PLAIN, "mavenConfig", {"versionPolicy": "SNAPSHOT"}, "replace"),
        (REPOSITORY, VIRTUAL, "virtualRepositoryConfig.upstreamPolicies", [TWO, ONE], "same"),
        (REPOSITORY, VIRTUAL, "virtualRepositoryConfig.upstreamPolicies", [ONE], "update"),
        (REPOSITORY, VIRTUAL, "virtualRepositoryConfig.upstreamPolicies.0.priority", 30, "update"),
        (REPOSITORY, CLEANED, AGE, "604800s", "same"),
        (REPOSITORY, CLEANED, AGE, "168h", "same"),
        (REPOSITORY, CLEANED, AGE, "8d", "update"),
        (REPOSITORY, CLEANED, AGE, "a week", "update"),
        (SERVICE, PROGRAMS[SERVICE], "name", "projects/bezel-local/locations/us-central1/services/llm", "same"),
        (SERVICE, PROGRAMS[SERVICE], "name", "other", "replace"),
        (BUCKET, PROGRAMS[BUCKET], "location", "us-central1", "same"),
        (BUCKET, SITE, "website.notFoundPage", None, "same"),
        (BUCKET, SITE, "website.notFoundPage", "gone.html", "update"),
        (BUCKET, PROGRAMS[BUCKET], "website", {"mainPageSuffix": "index.html"}, "update"),
        (BUCKET, DUAL, "customPlacementConfig.dataLocations", ["us-west1", "US-EAST1"], "same"),
        (BUCKET, DUAL, "customPlacementConfig.dataLocations", ["US-EAST1", "US-EAST4"], "replace"),
        (BUCKET, {**PROGRAMS[BUCKET], "ipFilter": {"mode": "Disabled"}}, "ipFilter", None, "same"),
        (BUCKET, {**PROGRAMS[BUCKET], "ipFilter": {"mode": "Enabled"}}, "ipFilter", None, "update"),
        (BUCKET, PROGRAMS[BUCKET], "ipFilter", {"mode": "Disabled"}, "update"),
    ],
)
def test_a_spelling_has_the_providers_verdict(
    kind: str, program: dict[str, Any], path: str, value: Any, verdict: str, google: FakeGoogle, gcp: Provider
) -> None:
    del google
    resource_id, made = gcp.create(kind, program)
    answer = gcp.diff(kind, resource_id, made, with_change(program, path, value))
    assert ("replace" if answer.replaces else "update" if answer.diffs else "same") == verdict


@pytest.mark.slow
@pytest.mark.parametrize(
    ("written", "sent"), [("7d", "604800s"), ("36h", "129600s"), ("90m", "5400s"), ("10s", "10s"), ("1w", "1w")]
)
def test_an_age_is_sent_in_seconds(written: str, sent: str, google: FakeGoogle, gcp: Provider) -> None:
    program = with_change(CLEANED, AGE, written)
    resource_id, made = gcp.create(REPOSITORY, program)
    (posted,) = google.requests_of("POST")
    assert posted.body["cleanupPolicies"]["old"]["condition"]["olderThan"] == sent
    assert made["cleanupPolicies"][0]["condition"]["olderThan"] == sent, "the state has Google's spelling"
    assert not gcp.diff(REPOSITORY, resource_id, made, program).diffs


@pytest.mark.parametrize("percent", [0, 0.5])
def test_a_threshold_of_zero_is_sent(percent: float, google: FakeGoogle, gcp: Provider) -> None:
    gcp.create(BUDGET, {**PROGRAMS[BUDGET], "thresholdRules": [{"thresholdPercent": percent}]})
    sent = google.requests_of("POST")[-1].body["thresholdRules"]
    assert sent == [{"thresholdPercent": percent, "spendBasis": "CURRENT_SPEND"}]


@pytest.mark.parametrize(("there", "shown"), [("US-CENTRAL1", "us-central1"), ("EU", "EU")])
def test_a_buckets_location_stays_as_it_is_written(there: str, shown: str, google: FakeGoogle, gcp: Provider) -> None:
    program = {**PROGRAMS[BUCKET], "location": "us-central1"}
    resource_id, made = gcp.create(BUCKET, program)
    google.things[f"/storage/v1/b/{resource_id}"]["location"] = there
    answer = gcp.read(BUCKET, resource_id, made, gcp.inputs(BUCKET, program))
    assert decode(answer.inputs)["location"] == shown
    assert decode(answer.properties)["location"] == there
