"""The look-ups: what the SDK's result classes want, from what Google has."""

import pytest

from pulumi_offline_support.client import FailedError, Provider
from pulumi_offline_support.google import FakeGoogle
from pulumi_offline_support.programs import PROGRAMS


@pytest.mark.parametrize("arguments", [{}, {"projectId": "bezel-local"}])
def test_a_project_by_its_id_or_the_default(arguments: dict[str, str], gcp: Provider) -> None:
    found = gcp.invoke("gcp:organizations/getProject:getProject", arguments)
    assert (found["projectId"], found["number"]) == ("bezel-local", "123456789012")


def test_a_project_that_is_not_there_is_said(gcp: Provider) -> None:
    with pytest.raises(FailedError, match="Error reading projects/other: googleapi: Error 404"):
        gcp.invoke("gcp:organizations/getProject:getProject", {"projectId": "other"})


@pytest.mark.parametrize("name", ["runtime", "runtime@bezel-local.iam.gserviceaccount.com"])
def test_an_account_by_its_id_or_address(name: str, gcp: Provider) -> None:
    gcp.create("gcp:serviceaccount/account:Account", PROGRAMS["gcp:serviceaccount/account:Account"])
    found = gcp.invoke("gcp:serviceaccount/getAccount:getAccount", {"accountId": name})
    assert found["member"] == "serviceAccount:runtime@bezel-local.iam.gserviceaccount.com"
    assert found["displayName"] == "Runtime"


def test_the_providers_settings_without_its_token(gcp: Provider, google: FakeGoogle) -> None:
    found = gcp.invoke("gcp:organizations/getClientConfig:getClientConfig", {})
    assert (found["project"], found["accessToken"]) == ("bezel-local", "")
    assert google.requests == []
