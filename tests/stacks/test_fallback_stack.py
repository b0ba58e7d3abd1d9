"""A lease with a fallback as resources: what is made before what, and who may call whom."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from bezel_components.config.subnet_ranges import usable_addresses
from bezel_components.identity_gateway import CONFIGURATION
from bezel_stacks.dispatch import deploy
from tests.stacks.test_lease_stack import plan
from tests.support.components.fake_engine import Declarations, declare

GATEWAY = "cloudrunv2/service:Service"
FALLBACK = {"accelerator": "nvidia-rtx-pro-6000", "region": "us-central1"}


@cache
def declare_both() -> Declarations:
    made = plan(fallback=FALLBACK)
    return declare(lambda: deploy(made), preview=False)


def resource_of(declared: Declarations, end: str) -> Any:
    (resource,) = [one for one in declared.all if one.name.endswith(end) and one.type.startswith(("gcp:", "pulumi"))]
    return resource


@pytest.mark.slow
def test_the_fallback_is_made_and_checked_before_a_lease_is_requested() -> None:
    declared = declare_both()
    service, gateway = resource_of(declared, "-fallback-service-service"), resource_of(declared, "-gateway-service")
    check, request = resource_of(declared, "-fallback-health"), declared.one("TpuRequest")
    assert declared.waits_for(gateway, service)
    assert declared.waits_for(resource_of(declared, "-gateway-fallback-invoker"), service)
    assert declared.waits_for(check, gateway)
    assert declared.waits_for(request, check)
    assert request.inputs["optional"] is True
    assert check.inputs["url"].endswith("/fallback")
    assert check.inputs["audience"] == check.inputs["url"].removesuffix("/fallback")


@pytest.mark.slow
def test_the_gateway_alone_may_call_the_fallback() -> None:
    declared = declare_both()
    grants = [one.inputs for one in declared.of("ServiceIamMember") if one.inputs["name"] == "bezel-moe-fallback"]
    assert [(grant["role"], grant["member"]) for grant in grants] == [
        ("roles/run.invoker", "serviceAccount:bezel-moe-gw@acme-llm.iam.gserviceaccount.com")
    ]
    service = resource_of(declared, "-fallback-service-service").inputs
    assert (service["location"], service["ingress"]) == ("us-central1", "INGRESS_TRAFFIC_ALL")
    assert service["template"]["scaling"] == {"minInstanceCount": 0, "maxInstanceCount": 1}
    assert not service.get("invokerIamDisabled")


@pytest.mark.slow
def test_the_gateway_knows_every_address_of_every_region_and_the_fallback() -> None:
    declared = declare_both()
    (container,) = resource_of(declared, "-gateway-service").inputs["template"]["containers"]
    text = next(one["value"] for one in container["envs"] if one["name"] == CONFIGURATION)
    ranges = [one.inputs["ipCidrRange"] for one in declared.of("Subnetwork") if "gateway" not in one.name]
    assert len(ranges) == 2
    for address in (address for each in ranges for address in usable_addresses(each)):
        assert f" {address}:8000 check inter 2s" in text
    assert "lua.fallback_identity https://" in text


@pytest.mark.slow
def test_a_lease_without_a_fallback_is_not_optional() -> None:
    declared = declare(lambda: deploy(plan()), preview=False)
    assert "optional" not in declared.one("TpuRequest").inputs
    assert declared.one("HealthCheck").inputs["leases"]
    assert [one.name for one in declared.all if "fallback" in one.name] == []
