"""Calls of google-cloud-dns, which is REST only: zones, record sets, changes."""

from typing import Any

from google.api_core.client_options import ClientOptions
from google.cloud import dns
from google_calls import PROJECT, Report, base

report = Report("google-cloud-dns")
# The client appends /dns/v1 by itself.
client = dns.Client(project=PROJECT, client_options=ClientOptions(api_endpoint=base("DNS").removesuffix("/dns")))
zone = client.zone("tried", "acme.example.", description="one")
HOST = "llm.acme.example."


def records() -> dict[tuple[str, str], tuple[int, list[str]]]:
    """Name and type -> TTL and data, of all record sets of the zone."""
    return {(one.name, one.record_type): (one.ttl, list(one.rrdatas)) for one in zone.list_resource_record_sets()}


def change(additions: list[Any], deletions: list[Any]) -> Any:
    """A change, created."""
    changes = zone.changes()
    for record in additions:
        changes.add_record_set(record)
    for record in deletions:
        changes.delete_record_set(record)
    changes.create()
    return changes


def zones() -> None:
    """Create, read, list."""
    report.call("ManagedZone.exists of none", zone.exists, lambda exists: exists is False)
    report.call("ManagedZone.create", zone.create)
    report.raises("ManagedZone.create again", "ALREADY_EXISTS", client.zone("tried", "acme.example.").create)
    report.call("ManagedZone.exists", zone.exists)
    report.call("ManagedZone.reload", zone.reload, lambda _: len(zone.name_servers) == 4 and zone.created)
    report.call(
        "Client.list_zones, pages of 1",
        lambda: list(client.list_zones(max_results=1)),
        lambda answer: [one.name for one in answer] == ["tried"],
    )
    report.raises(
        "ManagedZone.create without a dot",
        "INVALID_ARGUMENT",
        client.zone("odd", "acme.example", description="").create,
    )
    report.call("Client.quotas", client.quotas, lambda quotas: quotas["managedZones"] > 0)


def sets() -> None:
    """Add, replace, delete record sets; what is refused leaves all as it was."""
    record = zone.resource_record_set(HOST, "A", 300, ["203.0.113.7"])
    proof = zone.resource_record_set(f"_acme-challenge.{HOST}", "CNAME", 300, ["x.authorize.certificatemanager.goog."])
    made = report.call(
        "Changes.create", lambda: change([record, proof], []), lambda made: made.status in {"pending", "done"}
    )
    report.call("Changes.reload", made.reload, lambda _: len(made.additions) == 2)
    report.call("Changes.exists", made.exists)
    report.call(
        "ManagedZone.list_resource_record_sets", records, lambda answer: answer[HOST, "A"] == (300, ["203.0.113.7"])
    )
    newer = zone.resource_record_set(HOST, "A", 60, ["203.0.113.8"])
    report.raises("Changes.create of one that is there", "ALREADY_EXISTS", lambda: change([newer], []))
    report.call("Changes.create that replaces", lambda: change([newer], [record]))
    report.call("records after the change", records, lambda answer: answer[HOST, "A"] == (60, ["203.0.113.8"]))
    foreign = zone.resource_record_set("www.other.example.", "A", 60, ["203.0.113.8"])
    report.raises("Changes.create outside the zone", "INVALID_ARGUMENT", lambda: change([foreign], []))
    report.call("ManagedZone.list_changes", lambda: list(zone.list_changes()), lambda answer: len(answer) == 2)
    report.raises("ManagedZone.delete with records", "FAILED_PRECONDITION", zone.delete)
    report.call("Changes.create that deletes", lambda: change([], [newer, proof]))
    report.call("records after the deletion", records, lambda answer: {kind for _, kind in answer} == {"NS", "SOA"})


zones()
sets()
report.call("ManagedZone.delete", zone.delete)
report.raises("ManagedZone.reload of a deleted one", "NOT_FOUND", zone.reload)
