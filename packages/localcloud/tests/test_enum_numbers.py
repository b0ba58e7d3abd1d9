"""Enum values by number: as responses hold them where asked, and what has no number."""

import pytest

from bezel_localcloud.http.enums import names_of, with_numbers
from bezel_localcloud.http.messages import scalar

SERVICE = {
    "ingress": "INGRESS_TRAFFIC_ALL",
    "launchStage": "GA",
    "labels": {"ingress": "INGRESS_TRAFFIC_ALL"},
    "traffic": [{"type": "TRAFFIC_TARGET_ALLOCATION_TYPE_LATEST", "percent": 100}],
    "template": {"executionEnvironment": "EXECUTION_ENVIRONMENT_GEN2", "timeout": "300s"},
}
NUMBERED = SERVICE | {
    "ingress": 1,
    "launchStage": 4,
    "traffic": [{"type": 1, "percent": 100}],
    "template": {"executionEnvironment": 2, "timeout": "300s"},
}


@pytest.mark.parametrize(
    ("message", "answer", "numbered"),
    [
        ("run.GoogleCloudRunV2Service", SERVICE, NUMBERED),
        ("run.GoogleCloudRunV2ListServicesResponse", {"services": [SERVICE]}, {"services": [NUMBERED]}),
        ("logging.LogEntry", {"severity": "ERROR"}, {"severity": 500}),
        ("secretmanager.Policy", {"bindings": [], "etag": "x"}, {"bindings": [], "etag": "x"}),
        ("artifactregistry.Repository", {"format": "APT"}, {"format": 5}),
        ("storage.Bucket", {"storageClass": "STANDARD"}, {"storageClass": "STANDARD"}),
        ("", {"state": "ENABLED"}, {"state": "ENABLED"}),
    ],
)
def test_enum_values_of_a_message_become_numbers_and_nothing_else(message, answer, numbered):
    assert with_numbers(answer, message) == numbered


@pytest.mark.parametrize(
    ("operation", "type_url", "result", "numbered"),
    [
        ("run.GoogleLongrunningOperation", "google.cloud.run.v2.Service", SERVICE, NUMBERED),
        (
            "artifactregistry.Operation",
            "google.devtools.artifactregistry.v1.Repository",
            {"format": "DOCKER", "mode": "REMOTE_REPOSITORY"},
            {"format": 1, "mode": 3},
        ),
        (
            "serviceusage.Operation",
            "google.api.serviceusage.v1.EnableServiceResponse",
            {"service": {"state": "ENABLED"}},
            {"service": {"state": 2}},
        ),
        ("run.GoogleLongrunningOperation", "google.protobuf.Empty", {}, {}),
    ],
)
def test_the_result_of_an_operation_is_numbered_by_its_own_type(operation, type_url, result, numbered):
    typed = {"@type": f"type.googleapis.com/{type_url}"}
    answer = {"name": "operations/x", "done": True, "metadata": typed | result, "response": typed | result}
    expected = answer | {"metadata": typed | numbered, "response": typed | numbered}
    assert with_numbers(answer, operation) == expected


def test_a_value_that_is_not_published_has_no_number():
    published = "enum:MODE_UNSPECIFIED|STANDARD_REPOSITORY|VIRTUAL_REPOSITORY|REMOTE_REPOSITORY|AOSS_REPOSITORY"
    names = names_of(f"{published}|ASSURED_OSS_REPOSITORY")
    assert names == {0: "MODE_UNSPECIFIED", 1: "STANDARD_REPOSITORY", 2: "VIRTUAL_REPOSITORY", 3: "REMOTE_REPOSITORY"}
    assert with_numbers({"launchStage": "NOT_A_STAGE"}, "run.GoogleCloudRunV2Service") == {"launchStage": "NOT_A_STAGE"}


def test_a_value_without_a_known_number_is_accepted_by_its_name():
    kind = "enum:MODE_UNSPECIFIED|STANDARD_REPOSITORY|VIRTUAL_REPOSITORY|REMOTE_REPOSITORY|AOSS_REPOSITORY"
    assert scalar("ASSURED_OSS_REPOSITORY", f"{kind}|ASSURED_OSS_REPOSITORY") == "ASSURED_OSS_REPOSITORY"
