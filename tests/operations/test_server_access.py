"""Access to a deployment's server: as its smoke check has it, and never a guess of an address."""

import pytest

from bezel.operations.deployment.server_access import access_of
from bezel_base.errors import UserError
from tests.support.operations.deployed import Deployed, service_resource, state_of

CHECK = {
    "urn": "urn:pulumi:dev::bezel::pulumi-python:dynamic/smoke:HealthCheck::health",
    "type": "pulumi-python:dynamic/smoke:HealthCheck",
    "outputs": {
        "audience": "https://llm.example/",
        "public": True,
        "impersonate": "caller@acme.iam.gserviceaccount.com",
    },
}


def test_the_smoke_checks_audience_and_identity_are_used(cloud: Deployed) -> None:
    cloud.keep(
        "dev", state_of(service_resource(), CHECK, url="https://tag---llm.example", model="gemma", simulated=True)
    )
    access = access_of(cloud.context.deployment("dev"))
    assert (access.url, access.audience) == ("https://tag---llm.example", "https://llm.example")
    assert (access.public, access.impersonate) == (True, "caller@acme.iam.gserviceaccount.com")
    assert (access.model, access.simulated) == ("gemma", True)


def test_without_a_check_the_address_is_the_audience_and_a_token_is_needed(cloud: Deployed) -> None:
    cloud.keep("dev", state_of(service_resource(), url="https://llm.example/"))
    access = access_of(cloud.context.deployment("dev"))
    assert (access.url, access.audience, access.public) == ("https://llm.example", "https://llm.example", False)


@pytest.mark.parametrize(("disabled", "public"), [(True, True), (False, False)])
def test_a_service_that_checks_no_caller_needs_no_token(cloud: Deployed, disabled: bool, public: bool) -> None:
    cloud.keep("dev", state_of(service_resource(invokerIamDisabled=disabled), url="https://llm.example"))
    assert access_of(cloud.context.deployment("dev")).public is public


def test_a_deployment_without_an_address_is_refused_with_the_repair(cloud: Deployed) -> None:
    cloud.keep("dev", state_of(service_resource()))
    with pytest.raises(UserError, match="--url"):
        access_of(cloud.context.deployment("dev"))
