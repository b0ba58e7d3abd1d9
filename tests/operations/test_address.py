"""Address of a stack: what its certificate's state means and asks for, and what a caller meets there."""

import socket
from typing import Any

import pytest

from bezel.operations.address.certificate import certificate_of, judged_certificate
from bezel.operations.address.reach import reach_of
from bezel.operations.context import Context
from bezel.operations.deployment.address import DeployedAddress, address_of
from tests.support.operations.deployed import Deployed, address_output
from tests.support.rest.fake_google import ACCESS_TOKEN, Answer

DOMAIN = "llm.acme.example"
FAILED = {"domain": DOMAIN, "state": "FAILED"}


def address() -> DeployedAddress:
    recorded = address_of(address_output())
    assert recorded is not None
    return recorded


@pytest.mark.parametrize("output", [None, "https://shop.example", {}, {"domain": ""}, ["domain"]])
def test_output_of_another_program_is_no_address(output: object) -> None:
    assert address_of(output) is None


@pytest.mark.parametrize(
    ("managed", "line", "repair"),
    [
        ({"state": "ACTIVE"}, "active", None),
        ({"state": "PROVISIONING"}, "provisioning", "tries again by itself"),
        (
            {
                "state": "PROVISIONING",
                "provisioningIssue": {"reason": "AUTHORIZATION_ISSUE", "details": "see the attempts"},
                "authorizationAttemptInfo": [
                    {
                        **FAILED,
                        "failureReason": "CONFIG",
                        "details": "No record.",
                        "troubleshooting": {"cname": {"name": f"_acme-challenge.{DOMAIN}.", "resolvedData": []}},
                    }
                ],
            },
            f"provisioning: {DOMAIN}: No record (_acme-challenge.{DOMAIN}. has no record)",
            f"set the record that proves the domain: _acme-challenge.{DOMAIN}. CNAME proof.authorize.example.",
        ),
        (
            {"state": "FAILED", "authorizationAttemptInfo": [{**FAILED, "failureReason": "CAA"}]},
            f"failed: {DOMAIN}: CAA",
            "CAA record of the domain that allows pki.goog",
        ),
        (
            {"state": "PROVISIONING", "provisioningIssue": {"reason": "RATE_LIMITED", "details": "Too many."}},
            "provisioning: Too many",
            "wait: the authority limits",
        ),
        ({}, "unknown", "tries again by itself"),
    ],
)
def test_state_of_a_certificate_says_what_to_do(managed: dict[str, Any], line: str, repair: str | None) -> None:
    certificate = judged_certificate(address(), managed, "dev")
    assert certificate.line() == line
    assert certificate.repair is None if repair is None else repair in str(certificate.repair)
    assert ("--target-replace" in str(certificate.repair)) == (managed.get("state") == "FAILED")


@pytest.mark.parametrize(
    ("answer", "state", "repair"),
    [
        (Answer(json={"managed": {"state": "ACTIVE"}}), "active", "None"),
        (
            Answer(404, json={"error": {"code": 404, "message": "gone"}}),
            "gone",
            "`pulumi up --refresh --stack dev` makes another",
        ),
        (Answer(403, json={"error": {"code": 403, "message": "denied"}}), "unknown", "certificatemanager.certs.get"),
    ],
)
def test_certificate_is_read_where_that_is_allowed(cloud: Deployed, answer: Answer, state: str, repair: str) -> None:
    path = f"/certificatemanager/v1/{address().certificate}"
    cloud.server.routes.insert(0, lambda call: answer if call.path == path else None)
    certificate = certificate_of(cloud.context, address(), "dev")
    assert certificate.state == state
    assert repair in str(certificate.repair)


def resolving(*addresses: str) -> Any:
    """A resolver that knows the domain."""
    return lambda _host, port, **_: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (each, port)) for each in addresses]


def raise_unresolved(*_: object, **__: object) -> Any:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


def of_google(cloud: Deployed) -> Context:
    """A context whose Certificate Manager is a fake, and whose Cloud Run is Google's."""
    names = ("GOOGLE_CERTIFICATE_MANAGER_CUSTOM_ENDPOINT", "PULUMI_BACKEND_URL")
    environ = {name: cloud.context.environ[name] for name in names} | {"GOOGLE_OAUTH_ACCESS_TOKEN": ACCESS_TOKEN}
    return Context(cloud.folder, environ)


def test_name_that_does_not_lead_to_the_address_gets_the_records(cloud: Deployed) -> None:
    with of_google(cloud) as context:
        nowhere = reach_of(context, address(), "dev", raise_unresolved)
        elsewhere = reach_of(context, address(), "dev", resolving("198.51.100.1"))
    assert nowhere.why == f"the DNS has no address of {DOMAIN} (Name or service not known)"
    assert elsewhere.why == f"{DOMAIN} leads to 198.51.100.1, not to 203.0.113.7"
    for each in (nowhere, elsewhere):
        assert each.repair.startswith(f"set the records of the domain: {DOMAIN}. A 203.0.113.7, _acme-challenge.")


@pytest.mark.parametrize("state", ["PROVISIONING", "ACTIVE"])
def test_address_without_tls_is_explained_by_its_certificate(cloud: Deployed, state: str) -> None:
    managed = Answer(json={"managed": {"state": state}})
    cloud.server.routes.insert(0, lambda call: managed if call.path.startswith("/certificatemanager/") else None)
    local = DeployedAddress(DOMAIN, "127.0.0.1", "projects/acme/locations/global/certificates/c")
    port = int(cloud.server.url.rpartition(":")[2])  # a server without TLS
    with of_google(cloud) as context:
        reach = reach_of(context, local, "dev", resolving("127.0.0.1"), port)
    assert "no connection with TLS" in reach.why
    assert ("its certificate is provisioning" in reach.why) == (state == "PROVISIONING")
    assert ("minutes to hours" if state == "PROVISIONING" else "its certificate is active") in reach.repair
