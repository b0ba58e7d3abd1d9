"""Inputs are completed as the recorded provider completes them, and every mistake is named at once."""

from typing import Any

import pytest
from pulumi.runtime.proto import provider_pb2 as pb

from bezel_pulumi_offline.lifecycle.resource import ResourceType
from bezel_pulumi_offline.lifecycle.values import SECRET, SIGNATURE, UNKNOWN, decode
from bezel_pulumi_offline.resources import TYPES
from pulumi_offline_support.client import Provider
from pulumi_offline_support.programs import PROGRAMS, with_change

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


NAMED = [kind for kind in TYPES.values() if kind.autoname]


@pytest.mark.parametrize("kind", NAMED, ids=lambda kind: kind.pulumi_type)
def test_a_name_that_the_program_no_longer_sets_stays(kind: ResourceType, gcp: Provider) -> None:
    token, name = kind.pulumi_type, kind.autoname
    named = {**PROGRAMS[token], name: "mine_1" if name == "roleId" else "mine-1"}
    olds = gcp.inputs(token, named)
    nameless = {key: value for key, value in named.items() if key != name}
    kept = decode(gcp.check(token, nameless, olds=olds).inputs)
    assert kept[name] == named[name]
    assert name in kept["__defaults"], "it is no longer the program's"
    forbidden = pb.CheckRequest.AutonamingOptions(mode=pb.CheckRequest.AutonamingOptions.DISABLE)
    assert decode(gcp.check(token, nameless, olds=olds, autonaming=forbidden).inputs)[name] == named[name]


@pytest.mark.parametrize("kind", NAMED, ids=lambda kind: kind.pulumi_type)
def test_a_name_that_the_program_changes_does_not_stay(kind: ResourceType, gcp: Provider) -> None:
    token, name = kind.pulumi_type, kind.autoname
    olds = gcp.inputs(token, {**PROGRAMS[token], name: "mine_1" if name == "roleId" else "mine-1"})
    other = {**PROGRAMS[token], name: "other_2" if name == "roleId" else "other-2"}
    assert decode(gcp.check(token, other, olds=olds).inputs)[name] == other[name]


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


@pytest.mark.parametrize(
    ("kind", "path", "single"),
    [
        (SERVICE, "customAudiences", "https://a"),
        (SERVICE, "template.containers.0.args", 7),
        (SERVICE, "template.containers", {"image": "a"}),
        ("gcp:compute/firewall:Firewall", "targetTags", "node"),
        ("gcp:compute/firewall:Firewall", "allows", {"protocol": "tcp"}),
        ("gcp:monitoring/alertPolicy:AlertPolicy", "notificationChannels", "projects/p/notificationChannels/1"),
    ],
)
def test_a_single_value_is_a_list_of_one(kind: str, path: str, single: Any, gcp: Provider) -> None:
    alone = gcp.inputs(kind, with_change(PROGRAMS[kind], path, single))
    assert alone == gcp.inputs(kind, with_change(PROGRAMS[kind], path, [single]))


@pytest.mark.parametrize("item", [{}, {"a": "b"}, ["a"], None], ids=str)
@pytest.mark.parametrize("path", ["customAudiences", "template.containers.0.args", "template.containers.0.envs"])
def test_an_item_of_another_kind_is_refused(path: str, item: Any, gcp: Provider) -> None:
    items = [{"name": "A"}, [item]] if path.endswith("envs") else ["a", item]
    failures = gcp.check(SERVICE, with_change(PROGRAMS[SERVICE], path, items)).failures
    assert [failure.property.rsplit(".", 1)[-1] for failure in failures] == [f"{path.rsplit('.', 1)[-1]}[1]"]


def test_a_maps_value_of_another_kind_is_refused(gcp: Provider) -> None:
    for value in ({}, ["a"]):
        (failure,) = gcp.check(SERVICE, {**PROGRAMS[SERVICE], "labels": {"app": value}}).failures
        assert failure.property == "labels.app"
    assert not gcp.check(SERVICE, {**PROGRAMS[SERVICE], "labels": {"app": 7, "b": True, "c": UNKNOWN}}).failures


@pytest.mark.parametrize(("written", "meant"), [("8", 8), (8.0, 8), ("true", True), (True, True)])
def test_a_value_is_put_into_its_kind(written: object, meant: object, gcp: Provider) -> None:
    kind = "maxInstanceRequestConcurrency" if meant == 8 else "sessionAffinity"
    inputs = gcp.inputs(SERVICE, {"location": "a", "template": {kind: written}})
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
