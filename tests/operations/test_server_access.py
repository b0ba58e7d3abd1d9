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


def served_component(name: str, url: str, **outputs: object) -> dict[str, object]:
    """A component of a program of somebody's own."""
    urn = f"urn:pulumi:dev::shop::bezel:services:VllmService::{name}"
    return {"urn": urn, "type": "bezel:services:VllmService", "outputs": {"url": url, "model": "gemma", **outputs}}


def package_check(url: str, **outputs: object) -> dict[str, object]:
    """A health check of the Pulumi package."""
    urn = f"urn:pulumi:dev::shop::bezel:smoke:HealthCheck::{url}"
    return {"urn": urn, "type": "bezel:smoke:HealthCheck", "outputs": {"url": url, **outputs}}


def test_server_of_an_own_program_is_that_of_its_component(cloud: Deployed) -> None:
    component = served_component("chat", "https://chat.example", simulated=True)
    check = package_check("https://chat.example", public=True)
    cloud.keep("dev", state_of(service_resource(), component, check, address="https://shop.example"))
    access = access_of(cloud.context.deployment("dev"))
    assert (access.url, access.model, access.simulated) == ("https://chat.example", "gemma", True)
    assert access.public is True


def test_one_of_several_servers_is_chosen_by_an_output(cloud: Deployed) -> None:
    components = [served_component(name, f"https://{name}.example") for name in ("chat", "draft")]
    checks = [package_check("https://chat.example"), package_check("https://draft.example", public=True)]
    cloud.keep("dev", state_of(*components, *checks, url="https://draft.example"))
    access = access_of(cloud.context.deployment("dev"))
    assert (access.url, access.public) == ("https://draft.example", True)


def test_several_servers_are_named_where_none_is_chosen(cloud: Deployed) -> None:
    components = [served_component(name, f"https://{name}.example") for name in ("chat", "draft")]
    cloud.keep("dev", state_of(*components))
    with pytest.raises(UserError, match=r"(?s)chat \(https://chat.example\), draft .* --url https://chat.example"):
        access_of(cloud.context.deployment("dev"))
