"""Inputs are completed as the recorded provider completes them, and every mistake is named at once."""

import pytest

from bezel.standin_providers.lifecycle.values import SECRET, SIGNATURE, UNKNOWN, decode
from tests.support.standin_providers.client import Provider

SERVICE = "gcp:cloudrunv2/service:Service"
BUCKET = "gcp:storage/bucket:Bucket"
VERSION = "gcp:secretmanager/secretVersion:SecretVersion"


def test_a_default_is_filled_in_and_noted_as_one(gcp: Provider) -> None:
    inputs = gcp.inputs(BUCKET, {"name": "models", "location": "US"})
    assert inputs["storageClass"] == "STANDARD"
    assert inputs["__defaults"] == ["storageClass"]


def test_what_the_program_says_is_no_default(gcp: Provider) -> None:
    inputs = gcp.inputs(BUCKET, {"name": "models", "location": "US", "storageClass": "NEARLINE"})
    assert inputs["storageClass"] == "NEARLINE"
    assert inputs["__defaults"] == []


def test_a_nameless_bucket_gets_a_name_that_stays(gcp: Provider) -> None:
    first = gcp.inputs(BUCKET, {"location": "US"})
    assert first["name"].startswith("thing-")
    assert len(first["name"]) == len("thing-") + 7
    assert "name" in first["__defaults"]
    kept = gcp.check(BUCKET, {"location": "US"}, olds={**first, "name": "thing-0000000"})
    assert decode(kept.inputs)["name"] == "thing-0000000"


def test_a_name_of_the_programs_is_not_kept_once_it_is_gone(gcp: Provider) -> None:
    olds = gcp.inputs(BUCKET, {"location": "US", "name": "mine"})
    assert decode(gcp.check(BUCKET, {"location": "US"}, olds=olds).inputs)["name"] != "mine"


def test_every_missing_property_is_named(gcp: Provider) -> None:
    failures = gcp.check(SERVICE, {"template": {"volumes": [{"gcs": {}}]}}).failures
    assert {failure.property for failure in failures} == {
        "location",
        "template.volumes[0].name",
        "template.volumes[0].gcs.bucket",
    }


def test_an_unknown_property_is_refused_by_name(gcp: Provider) -> None:
    (failure,) = gcp.check(BUCKET, {"location": "US", "versioning": {"enabledd": True, "enabled": True}}).failures
    assert failure.property == "versioning.enabledd"
    assert "PROVIDER=real" in failure.reason


def test_a_value_of_another_kind_is_refused_without_being_shown(gcp: Provider) -> None:
    (failure,) = gcp.check(VERSION, {"secret": "s", "secretData": ["planted"]}).failures
    assert "planted" not in failure.reason
    assert "text" in failure.reason


@pytest.mark.parametrize(("given", "meant"), [("8", 8), (8.0, 8), ("true", True), (True, True)])
def test_a_value_is_put_into_its_kind(given: object, meant: object, gcp: Provider) -> None:
    kind = "maxInstanceRequestConcurrency" if meant == 8 else "sessionAffinity"
    inputs = gcp.inputs(SERVICE, {"location": "a", "template": {kind: given}})
    assert inputs["template"][kind] == meant
    assert type(inputs["template"][kind]) is type(meant)


def test_an_unknown_value_passes_at_any_depth(gcp: Provider) -> None:
    template = {"containers": [{"image": UNKNOWN, "envs": UNKNOWN}], "volumes": UNKNOWN, "timeout": UNKNOWN}
    inputs = gcp.inputs(SERVICE, {"location": UNKNOWN, "template": template})
    assert inputs["template"]["volumes"] == UNKNOWN
    assert inputs["template"]["containers"][0]["image"] == UNKNOWN


def test_secret_properties_come_back_closed(gcp: Provider) -> None:
    checked = gcp.check(VERSION, {"secret": "s", "secretData": "planted"})
    envelope = checked.inputs.fields["secretData"].struct_value.fields
    assert envelope[SIGNATURE].string_value == SECRET
    assert "secret" in checked.inputs.fields
    assert checked.inputs.fields["secret"].string_value == "s"
