"""Endpoint of a stack: the address and the commands of its access, without a request to anybody."""

from typing import Any

import pytest

from bezel.operations.endpoint.endpoint import Endpoint, EndpointArguments, endpoint
from bezel_base.errors import UserError
from tests.support.operations.deployed import Deployed, service_resource, state_of

URL = "https://llm.example"


def of(cloud: Deployed, *resources: dict[str, Any], url: str = URL) -> Endpoint:
    cloud.keep("dev", state_of(*(resources or (service_resource(),)), url=url, model="gemma"))
    endpoint_of_stack = endpoint(cloud.context, EndpointArguments(stack="dev"))
    assert cloud.server.calls == []
    return endpoint_of_stack


def check(**outputs: Any) -> dict[str, Any]:
    type_ = "pulumi-python:dynamic/smoke:HealthCheck"
    return {"urn": f"urn:pulumi:dev::bezel::{type_}::health", "type": type_, "custom": True, "outputs": outputs}


def test_a_private_service_is_called_with_a_token_or_through_the_proxy(cloud: Deployed) -> None:
    endpoint_of_stack = of(cloud)
    assert (endpoint_of_stack.openai_base_url, endpoint_of_stack.is_public, endpoint_of_stack.audience) == (
        f"{URL}/v1",
        False,
        URL,
    )
    assert (
        endpoint_of_stack.curl == f'curl -H "Authorization: Bearer $(gcloud auth print-identity-token)" {URL}/v1/models'
    )
    assert endpoint_of_stack.proxy == "bezel proxy dev"
    assert "identity token of audience" in endpoint_of_stack.text()


def test_a_public_service_is_called_without_a_token(cloud: Deployed) -> None:
    endpoint_of_stack = of(cloud, service_resource(invokerIamDisabled=True))
    assert (endpoint_of_stack.is_public, endpoint_of_stack.audience, endpoint_of_stack.proxy) == (True, None, None)
    assert endpoint_of_stack.curl == f"curl {URL}/v1/models"


def test_the_smoke_check_s_account_gets_a_token_of_its_audience(cloud: Deployed) -> None:
    endpoint_of_stack = of(
        cloud, service_resource(), check(audience="https://own.example", impersonate="caller@acme.example")
    )
    assert "--impersonate-service-account=caller@acme.example --audiences=https://own.example" in endpoint_of_stack.curl


def test_a_stack_without_an_address_has_no_endpoint(cloud: Deployed) -> None:
    with pytest.raises(UserError, match="no address"):
        of(cloud, url="")
