"""What localcloud ships of Google's discovery documents is what the documents of the installed client say."""

import json

import pytest

from bezel_localcloud.http.messages import definitions, settable_fields
from bezel_localcloud.http.methods import served_methods
from bezel_localcloud.services.cloud_run.job_checks import UNSERVED
from tools.traffic import discovery_data


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("messages", discovery_data.request_messages),
        ("methods", discovery_data.served_methods),
        ("responses", discovery_data.response_messages),
    ],
)
def test_a_shipped_file_is_what_the_script_makes_of_the_documents(name, make):
    shipped = (discovery_data.DATA / f"{name}.json").read_text()
    assert json.loads(shipped) == make(), "run: .venv/bin/python -m tools.traffic.discovery_data"
    assert shipped == discovery_data.to_text(make())


def test_a_method_that_is_said_to_be_served_exists_at_google():
    for source in discovery_data.SOURCES:
        methods = {method["id"] for method in discovery_data.methods_of(discovery_data.document(source.document))}
        assert set(source.serves) <= methods


def test_every_request_of_a_served_method_has_its_definition():
    for method in served_methods().values():
        assert not method.request or method.request in definitions()


def test_what_may_be_set_of_a_service_is_what_is_not_output_only():
    settable = settable_fields("run.GoogleCloudRunV2Service")
    assert {"template", "traffic", "ingress", "labels"} <= settable
    assert settable.isdisjoint({"name", "etag", "uid", "uri", "generation", "latestReadyRevision"})


def test_what_would_start_executions_is_a_refused_field_of_a_job():
    assert {*UNSERVED} <= settable_fields("run.GoogleCloudRunV2Job")


def test_condensing_follows_every_reference_and_names_what_has_no_name():
    document = {
        "schemas": {
            "A": {
                "properties": {
                    "b": {"$ref": "B"},
                    "n": {"type": "integer", "format": "int32", "readOnly": True},
                    "inner": {"type": "object", "properties": {"x": {"type": "string", "format": "int64"}}},
                }
            },
            "B": {"properties": {"c": {"type": "array", "items": {"$ref": "C"}}}},
            "C": {"properties": {"m": {"type": "object", "additionalProperties": {"type": "string"}}}},
            "Unused": {},
        }
    }
    assert discovery_data.condense(document, ["A"], "x") == {
        "x.A": {"b": "@B", "inner": "@A.inner", "n": "!int32"},
        "x.A.inner": {"x": "int64"},
        "x.B": {"c": "[]@C"},
        "x.C": {"m": "{}string"},
    }
