"""Endpoint of a stack: the address and the commands of its access, without a request to anybody."""

from typing import Any

import pytest

from bezel.operations.endpoint.endpoint import Endpoint, EndpointArguments, endpoint
from bezel_base.errors import UserError
from tests.support.operations.deployed import Deployed, service_resource, state_of

URL = "https://llm.example"


def of(cloud: Deployed, *resources: dict[str, Any], url: str = URL) -> Endpoint:
    cloud.keep("dev", state_of(*(resources or (service_resource(),)), url=url, model="gemma"))
    found = endpoint(cloud.context, EndpointArguments(stack="dev"))
    assert cloud.server.calls == []
    return found


def check(**outputs: Any) -> dict[str, Any]:
    type_ = "pulumi-python:dynamic/smoke:HealthCheck"
    return {"urn": f"urn:pulumi:dev::bezel::{type_}::health", "type": type_, "custom": True, "outputs": outputs}


def test_a_private_service_is_called_with_a_token_and_clients_through_the_proxy(cloud: Deployed) -> None:
    found = of(cloud)
    assert (found.openai_base_url, found.is_public, found.audience) == (f"{URL}/v1", False, URL)
    assert found.curl == f'curl -H "Authorization: Bearer $(gcloud auth print-identity-token)" {URL}/v1/models'
    assert found.proxy == "bezel proxy dev"
    assert "identity token of audience" in found.text()


def test_a_public_service_is_called_without_a_token(cloud: Deployed) -> None:
    found = of(cloud, service_resource(invokerIamDisabled=True))
    assert (found.is_public, found.audience, found.proxy) == (True, None, None)
    assert found.curl == f"curl {URL}/v1/models"


def test_the_account_of_the_smoke_check_gets_a_token_of_the_service_s_audience(cloud: Deployed) -> None:
    found = of(cloud, service_resource(), check(audience="https://own.example", impersonate="caller@acme.example"))
    assert "--impersonate-service-account=caller@acme.example --audiences=https://own.example" in found.curl


def test_a_stack_without_an_address_has_no_endpoint(cloud: Deployed) -> None:
    with pytest.raises(UserError, match="no address"):
        of(cloud, url="")
