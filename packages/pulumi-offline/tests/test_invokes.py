"""The look-ups: what the SDK's result classes want, from what Google has."""

import zlib

import pytest

from pulumi_offline_support.client import FailedError, Provider
from pulumi_offline_support.google import FakeGoogle
from pulumi_offline_support.programs import PROGRAMS


@pytest.mark.parametrize("arguments", [{}, {"projectId": "bezel-local"}])
def test_a_project_by_its_id_or_the_default(arguments: dict[str, str], gcp: Provider) -> None:
    project = gcp.invoke("gcp:organizations/getProject:getProject", arguments)
    assert (project["projectId"], project["number"]) == ("bezel-local", "123456789012")


def test_a_project_that_is_not_there_is_said(gcp: Provider) -> None:
    with pytest.raises(FailedError, match="Error reading projects/other: googleapi: Error 404"):
        gcp.invoke("gcp:organizations/getProject:getProject", {"projectId": "other"})


@pytest.mark.parametrize("name", ["runtime", "runtime@bezel-local.iam.gserviceaccount.com"])
def test_an_account_by_its_id_or_address(name: str, gcp: Provider) -> None:
    gcp.create("gcp:serviceaccount/account:Account", PROGRAMS["gcp:serviceaccount/account:Account"])
    account = gcp.invoke("gcp:serviceaccount/getAccount:getAccount", {"accountId": name})
    assert account["member"] == "serviceAccount:runtime@bezel-local.iam.gserviceaccount.com"
    assert account["displayName"] == "Runtime"


def test_the_providers_settings_without_its_token(gcp: Provider, google: FakeGoogle) -> None:
    configuration = gcp.invoke("gcp:organizations/getClientConfig:getClientConfig", {})
    assert (configuration["project"], configuration["accessToken"]) == ("bezel-local", "")
    assert google.requests == []


@pytest.mark.parametrize(
    ("arguments", "document"),
    [
        ({}, "{}"),
        (
            {"bindings": [{"role": "b", "members": ["y", "x"]}, {"role": "a", "members": ["z"]}]},
            '{"bindings":[{"members":["z"],"role":"a"},{"members":["x","y"],"role":"b"}]}',
        ),
        (
            {"bindings": [{"role": "a", "members": ["x"]}, {"role": "a", "members": ["x", "w"]}]},
            '{"bindings":[{"members":["w","x"],"role":"a"}]}',
        ),
        (
            {
                "bindings": [
                    {"role": "a", "members": ["x"], "condition": {"expression": "1 < 2"}},
                    {"role": "a", "members": ["w"]},
                ]
            },
            (
                '{"bindings":[{"members":["w"],"role":"a"},'
                '{"condition":{"expression":"1 \\u003c 2"},"members":["x"],"role":"a"}]}'
            ),
        ),
        (
            {"auditConfigs": [{"service": "allServices", "auditLogConfigs": [{"logType": "DATA_READ"}]}]},
            '{"auditConfigs":[{"auditLogConfigs":[{"logType":"DATA_READ"}],"service":"allServices"}]}',
        ),
    ],
)
def test_policy_document_is_written_without_a_request(
    arguments: dict[str, object], document: str, gcp: Provider, google: FakeGoogle
) -> None:
    answer = gcp.invoke("gcp:organizations/getIAMPolicy:getIAMPolicy", arguments)
    assert (answer["policyData"], answer["id"]) == (document, str(zlib.crc32(document.encode())))
    assert google.requests == []
