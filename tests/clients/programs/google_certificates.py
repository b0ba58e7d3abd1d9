"""Calls of google-cloud-certificate-manager over REST: proofs, certificates, maps and their entries."""

from collections.abc import Callable
from typing import Any

from google.cloud import certificate_manager_v1 as manager
from google_calls import PARENT, Report, options

report = Report("google-cloud-certificate-manager")
client = manager.CertificateManagerClient(transport="rest", client_options=options("CERTIFICATE_MANAGER"))
LOCATION = f"{PARENT}/locations/global"
DOMAIN = "llm.acme.example"
PROOF, CERTIFICATE = f"{LOCATION}/dnsAuthorizations/tried", f"{LOCATION}/certificates/tried"
MAP = f"{LOCATION}/certificateMaps/tried"
ENTRY = f"{MAP}/certificateMapEntries/tried"
# kind -> its parent, its name, its body, what holds of it, in the order in which they are made
KINDS: dict[str, tuple[str, str, Any, Callable[[Any], Any]]] = {
    "dns_authorization": (
        LOCATION,
        PROOF,
        manager.DnsAuthorization(domain=DOMAIN, labels={"a": "b"}),
        lambda got: got.dns_resource_record.type_ == "CNAME" and got.domain == DOMAIN,
    ),
    "certificate": (
        LOCATION,
        CERTIFICATE,
        manager.Certificate(
            managed=manager.Certificate.ManagedCertificate(domains=[DOMAIN], dns_authorizations=[PROOF])
        ),
        lambda got: got.managed.state == manager.Certificate.ManagedCertificate.State.PROVISIONING,
    ),
    "certificate_map": (LOCATION, MAP, manager.CertificateMap(description="one"), lambda got: got.create_time),
    "certificate_map_entry": (
        MAP,
        ENTRY,
        manager.CertificateMapEntry(hostname=DOMAIN, certificates=[CERTIFICATE]),
        lambda got: got.state == manager.ServingState.ACTIVE and list(got.certificates) == [CERTIFICATE],
    ),
}


def plural(kind: str) -> str:
    """A kind in the name of its list."""
    return f"{kind.removesuffix('y')}ies" if kind.endswith("y") else f"{kind}s"


def make_all() -> None:
    """Create, create again, get, list, change."""
    for kind, (parent, name, body, check) in KINDS.items():
        create, update = getattr(client, f"create_{kind}"), getattr(client, f"update_{kind}")
        read, read_all = getattr(client, f"get_{kind}"), getattr(client, f"list_{plural(kind)}")
        request = {"parent": parent, f"{kind}_id": "tried", kind: body}
        report.call(f"create_{kind}", lambda create=create, request=request: create(request).result(), check)
        report.raises(f"create_{kind} again", "ALREADY_EXISTS", lambda create=create, request=request: create(request))
        report.call(f"get_{kind}", lambda read=read, name=name: read({"name": name}), check)
        report.call(
            f"list_{plural(kind)}",
            lambda read_all=read_all, parent=parent: list(read_all({"parent": parent, "page_size": 1})),
            lambda answer, name=name: [one.name for one in answer] == [name],
        )
        change = {kind: {"name": name, "description": "two"}, "update_mask": {"paths": ["description"]}}
        report.call(
            f"update_{kind}",
            lambda update=update, change=change: update(change).result(),
            lambda got: got.description == "two",
        )


def refusals() -> None:
    """What is wrong, and what is in use."""
    body = manager.Certificate(managed={"domains": [f"*.{DOMAIN}"]})
    request = {"parent": LOCATION, "certificate_id": "wild", "certificate": body}
    report.raises(
        "create_certificate of a wildcard without a proof",
        "INVALID_ARGUMENT",
        lambda: client.create_certificate(request),
    )
    missing = {"name": f"{LOCATION}/certificates/missing"}
    report.raises("get_certificate of none", "NOT_FOUND", lambda: client.get_certificate(missing))
    for kind, name in (("dns_authorization", PROOF), ("certificate", CERTIFICATE), ("certificate_map", MAP)):
        delete = getattr(client, f"delete_{kind}")
        report.raises(
            f"delete_{kind} of one in use",
            "FAILED_PRECONDITION",
            lambda delete=delete, name=name: delete({"name": name}),
        )
    pem = manager.Certificate(self_managed={"pem_certificate": "c", "pem_private_key": "k"})
    brought = {"parent": LOCATION, "certificate_id": "brought", "certificate": pem}
    report.call("create_certificate that the caller brings", lambda: client.create_certificate(brought))
    report.call("list_trust_configs", lambda: list(client.list_trust_configs({"parent": LOCATION})))


def places() -> None:
    """The location, and the operations of it."""
    report.call(
        "list_locations", lambda: client.list_locations({"name": PARENT}), lambda got: got.locations[0].location_id
    )
    report.call("get_location", lambda: client.get_location({"name": LOCATION}), lambda got: got.name == LOCATION)
    report.call(
        "list_operations", lambda: client.list_operations({"name": LOCATION}), lambda got: len(got.operations) > 3
    )


def delete_all() -> None:
    """Delete all of it, what nothing uses first."""
    for kind, (_, name, _, _) in reversed(KINDS.items()):
        delete, read = getattr(client, f"delete_{kind}"), getattr(client, f"get_{kind}")
        report.call(f"delete_{kind}", lambda delete=delete, name=name: delete({"name": name}).result())
        report.raises(f"get_{kind} of a deleted one", "NOT_FOUND", lambda read=read, name=name: read({"name": name}))


for part in (make_all, refusals, places, delete_all):
    part()
