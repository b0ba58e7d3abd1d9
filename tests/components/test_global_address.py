"""One address for regions: its parts lead to each other, names are the provider's, and only HTTPS is open."""

from typing import Any

import pytest

from bezel.planner.address.domain import domain_problem
from bezel_components.base.argument_errors import ArgumentsError
from bezel_components.global_address import GlobalAddress, GlobalAddressArgs
from tests.support.components.fake_engine import Declarations, declare

ONE = {"us-east4": "chat"}
TWO = {"us-east4": "chat", "europe-west4": "chat"}
PROOF = {"name": "_acme-challenge.llm.acme.example.", "type": "CNAME", "data": "1.authorize.example."}


def declare_address(services: dict[str, str] = TWO, *, preview: bool = False, **more: Any) -> Declarations:
    def program() -> GlobalAddress:
        arguments = {"project": "acme-llm", "domain": "llm.acme.example", "services": services, **more}
        return GlobalAddress("address", GlobalAddressArgs(**arguments))

    return declare(program, preview=preview)


def test_each_part_leads_to_the_next_from_address_to_services() -> None:
    made = declare_address()
    rule, proxy = made.one("GlobalForwardingRule").inputs, made.one("TargetHttpsProxy").inputs
    assert (rule["ipAddress"], rule["target"]) == ("203.0.113.10", "address-proxy-id")
    assert (proxy["urlMap"], proxy["sslPolicy"]) == ("address-routes-id", "address-tls-id")
    assert made.one("URLMap").inputs["defaultService"] == "address-backend-id"
    backend = made.one("BackendService").inputs
    assert backend["backends"] == [{"group": "address-europe-west4-id"}, {"group": "address-us-east4-id"}]
    groups = {each.inputs["region"]: each.inputs["cloudRun"] for each in made.of("NetworkEndpointGroup")}
    assert groups == {region: {"service": "chat"} for region in TWO}
    assert rule["loadBalancingScheme"] == backend["loadBalancingScheme"] == "EXTERNAL_MANAGED"


def test_only_https_is_open_with_a_present_tls() -> None:
    """One rule, for port 443: a redirect from port 80 would get tokens in plain text."""
    made = declare_address()
    assert [rule.inputs["portRange"] for rule in made.of("GlobalForwardingRule")] == ["443"]
    assert not made.of("TargetHttpProxy")
    assert made.one("SSLPolicy").inputs["minTlsVersion"] == "TLS_1_2"


def test_a_proved_certificate_is_chosen_by_the_domain() -> None:
    made = declare_address()
    managed = made.one("certificate:Certificate").inputs["managed"]
    assert managed == {"domains": ["llm.acme.example"], "dnsAuthorizations": ["address-proof-id"]}
    entry = made.one("CertificateMapEntry").inputs
    assert (entry["map"], entry["hostname"]) == ("certificates-1a2b3c4", "llm.acme.example")
    assert entry["certificates"] == ["address-certificate-id"]
    path = "//certificatemanager.googleapis.com/address-certificates-id"
    assert made.one("TargetHttpsProxy").inputs["certificateMap"] == path
    assert made.waits_for(made.one("TargetHttpsProxy"), made.one("CertificateMapEntry"))


def test_the_records_are_made_in_a_zone_of_the_project() -> None:
    made = declare_address(zone="acme")
    records = {each.inputs["name"]: (each.inputs["type"], each.inputs["rrdatas"]) for each in made.of("RecordSet")}
    assert records == {
        "llm.acme.example.": ("A", ["203.0.113.10"]),
        PROOF["name"]: ("CNAME", ["1.authorize.example."]),
    }
    assert made.waits_for(made.by_name("address-record"), made.one("GlobalForwardingRule"))
    assert made.waits_for(made.one("certificate:Certificate"), made.by_name("address-proof-record"))


def test_without_a_zone_the_records_are_an_output_alone() -> None:
    made = declare_address()
    assert not made.of("RecordSet")
    outputs = made.one("address:GlobalAddress").outputs
    assert outputs is not None
    assert outputs["records"] == [{"name": "llm.acme.example.", "type": "A", "data": "203.0.113.10"}, PROOF]
    assert declare_address(preview=True).one("address:GlobalAddress").outputs["url"] == "https://llm.acme.example"  # type: ignore[index]


def test_a_failing_region_is_left_out_but_never_the_last_one() -> None:
    for count, share in ((2, 50), (3, 66), (5, 80)):
        services = {f"us-east{number}": "chat" for number in range(1, count + 1)}
        detection = declare_address(services).one("BackendService").inputs["outlierDetection"]
        assert (detection["consecutiveErrors"], detection["maxEjectionPercent"]) == (5, share)
    assert "outlierDetection" not in declare_address(ONE).one("BackendService").inputs


def test_no_name_is_fixed_and_nothing_is_deleted_first() -> None:
    """A fixed name would be deleted before its successor is made, while it is in use."""
    made = declare_address(zone="acme")
    parts = [each for each in made.all if each.type.startswith("gcp:")]
    assert len(parts) == 14
    assert not [each.name for each in parts if "name" in each.inputs and not each.type.endswith("RecordSet")]
    assert not [each.name for each in parts if each.deleted_first]
    assert {each.parent for each in parts} == {made.one("address:GlobalAddress").urn}


def test_labels_are_on_what_can_have_them() -> None:
    made = declare_address(labels={"stack": "prod"})
    labelled = {each.type.rpartition(":")[2] for each in made.all if each.inputs.get("labels") == {"stack": "prod"}}
    assert labelled == {
        "GlobalAddress", "GlobalForwardingRule", "DnsAuthorization", "Certificate", "CertificateMap",
        "CertificateMapEntry",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("domain", "repair"),
    [
        ("*.acme.example", "write the host alone"),
        ("https://llm.acme.example", "write the host alone"),
        ("llm.acme.example:443", "write the host alone"),
        ("llm.acme.example/v1", "write the host alone"),
        ("llm.acme.example.", "remove the last dot"),
        ("LLM.acme.example", "lower case"),
        ("bücher.example", "punycode"),
        ("llm_1.acme.example", "labels of letters"),
        ("-llm.acme.example", "labels of letters"),
        ("llm..example", "labels of letters"),
        ("", "labels of letters"),
        ("a" * 64 + ".example", "labels of letters"),
        (".".join(["a" * 60] * 4), "labels of letters"),
        ("localhost", "top-level domain"),
        ("203.0.113.10", "top-level domain"),
    ],
)
def test_a_domain_without_a_certificate_is_refused_with_the_repair(domain: str, repair: str) -> None:
    problem = domain_problem(domain)
    assert problem is not None
    assert repair in problem
    with pytest.raises(ArgumentsError, match=r"GlobalAddressArgs\.domain"):
        declare_address(domain=domain)


def test_hosts_that_a_certificate_can_name_are_taken() -> None:
    hosts = ("llm.acme.example", "acme.example", "xn--bcher-kva.example", "3.llm-a.acme.example", "a" * 63 + ".example")
    assert [host for host in hosts if domain_problem(host)] == []


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"services": {}}, "services"),
        ({"services": {"useast4": "chat"}}, "'useast4' is not a region"),
        ({"services": {"us-east4": "https://chat.run.app"}}, "without its URL"),
        ({"services": {"us-east4": "Chat"}}, "not a valid name of a Cloud Run service"),
        ({"zone": "acme.example."}, "gcloud dns managed-zones list"),
        ({"zone": "projects/other/managedZones/acme"}, "can have no zone of the name"),
        ({"certificate": "mine"}, "this argument does not exist"),
    ],
)
def test_other_wrong_arguments_name_value_and_repair(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentsError, match=text):
        declare_address(**wrong)


@pytest.mark.parametrize("name", ["Address", "my_address", "a" * 32, "address-"])
def test_a_name_that_google_would_refuse_is_refused_before(name: str) -> None:
    arguments = GlobalAddressArgs(project="acme-llm", domain="llm.acme.example", services=ONE)
    with pytest.raises(ArgumentsError, match="GlobalAddress name"):
        declare(lambda: GlobalAddress(name, arguments))
