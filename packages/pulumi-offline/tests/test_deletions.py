"""Deletions of buckets and dashboards that Google refuses: what the published provider tries and says.

Source: GoogleCloudPlatform/magic-modules, mmv1/third_party/terraform/services/storage/resource_storage_bucket.go.tmpl,
resourceStorageBucketDelete; hashicorp/terraform-provider-google-beta, resource_monitoring_dashboard.go.
"""

from typing import Any

import pytest

from pulumi_offline_support.client import FailedError, Provider
from pulumi_offline_support.google import FakeGoogle
from pulumi_offline_support.programs import PROGRAMS

BUCKET = "gcp:storage/bucket:Bucket"
OBJECT = "gcp:storage/bucketObject:BucketObject"
DASHBOARD = "gcp:monitoring/dashboard:Dashboard"
NO = {"error": {"code": 403, "message": "no"}}
FULL = {"error": {"code": 409, "message": "The bucket you tried to delete is not empty."}}


def refusal(call: Any, *arguments: Any) -> str:
    with pytest.raises(FailedError) as failed:
        call(*arguments)
    return failed.value.text


@pytest.mark.parametrize("refused", ["GET .*/anywhereCaches/", "GET .*/o"])
def test_an_empty_bucket_that_cannot_be_listed_is_deleted(refused: str, google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(BUCKET, PROGRAMS[BUCKET])
    google.fail(refused, 403, NO)
    gcp.delete(BUCKET, resource_id, made)
    assert f"/storage/v1/b/{resource_id}" not in google.things


def test_a_full_bucket_that_cannot_be_listed_says_both(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(BUCKET, PROGRAMS[BUCKET])
    google.fail("GET .*/o", 403, NO)
    google.fail("DELETE .*", 409, FULL)
    why = "could not delete non-empty bucket due to error when listing contents: googleapi: Error 403: no"
    assert f"* {why}" in refusal(gcp.delete, BUCKET, resource_id, made)


def test_a_content_that_cannot_be_deleted_says_so(google: FakeGoogle, gcp: Provider) -> None:
    program = {**PROGRAMS[BUCKET], "forceDestroy": True}
    resource_id, made = gcp.create(BUCKET, program)
    gcp.create(OBJECT, {**PROGRAMS[OBJECT], "bucket": resource_id})
    google.fail("DELETE .*/o/.*", 403, NO)
    google.fail("DELETE .*/b/[^/]+", 409, FULL)
    why = "could not delete non-empty bucket due to error when deleting contents: googleapi: Error 403: no"
    assert f"* {why}" in refusal(gcp.delete, BUCKET, resource_id, made)
    gcp.delete(BUCKET, resource_id, made)
    assert not any(key.startswith("/storage/v1/b/") for key in google.things)


def test_a_refused_deletion_of_a_bucket_is_googles_error_alone(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(BUCKET, PROGRAMS[BUCKET])
    google.fail("DELETE .*", 403, NO)
    assert "* googleapi: Error 403: no" in refusal(gcp.delete, BUCKET, resource_id, made)


def test_a_refused_deletion_of_a_dashboard_names_it(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(DASHBOARD, PROGRAMS[DASHBOARD])
    google.fail("DELETE .*", 403, NO)
    text = f'Error when reading or editing MonitoringDashboard "{resource_id}": googleapi: Error 403: no'
    assert text in refusal(gcp.delete, DASHBOARD, resource_id, made)
    gcp.delete(DASHBOARD, resource_id, made)
    gcp.delete(DASHBOARD, resource_id, made)
