"""Checks of a domain against the project: its zone, the records there, and other stacks' addresses of the name. Pure.

Without them a deploy would fail at its end, with services that run and half of an address, or take the name from
another stack: a record of the same name and type is replaced without a question. Facts: Cloud DNS's pages on zones and
records, Certificate Manager's on CAA records (November 2026); RFC 8659 (the nearest CAA records of a name hold).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bezel.planner.base.names import label
from bezel.planner.base.problems import setting
from bezel_base.errors import Problem
from bezel_base.text.shell import shell_word

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

ISSUER = "pki.goog"
"""Authority of Google's managed certificates, as CAA records name it."""


def check_zone(domain: str, name: str, zone: Mapping[str, Any] | None, project: str) -> Iterator[Problem]:
    """Check that the records of an address can be made in its zone, and that Google sees them there.

    Args:
        domain: of the address.
        name: of its zone.
        zone: as Cloud DNS describes it; None where the project has none of this name.
        project: id of the project.
    """
    key, listing = setting("address.zone"), f"`gcloud dns managed-zones list --project={shell_word(project)}`"
    if zone is None:
        yield Problem(
            key,
            name,
            f"{project} has no such zone: the records of {domain} cannot be made.",
            f"name the zone of the domain ({listing} lists the zones), or omit it and set the records elsewhere.",
        )
        return
    top = str(zone.get("dnsName") or "").rstrip(".")
    if domain != top and not domain.endswith(f".{top}"):
        yield Problem(
            key,
            name,
            f"it holds {top}, and {domain} is not below that: Cloud DNS refuses the records.",
            f"name the zone of the domain: {listing} lists them.",
        )
    elif zone.get("visibility") == "private":
        yield Problem(
            key,
            name,
            f"it is private: Google cannot see the proof in it, so no certificate of {domain} is issued.",
            f"name a public zone: {listing} lists them.",
        )


def names_to_read(domain: str, zone: Mapping[str, Any]) -> Iterator[str]:
    """The names whose records `check_records` judges: the domain and those above it in the zone."""
    top = str(zone.get("dnsName") or "").rstrip(".")
    labels = domain.split(".")
    above = (".".join(labels[number:]) for number in range(len(labels)))
    yield from (f"{name}." for name in above if name == top or name.endswith(f".{top}"))


def check_records(domain: str, zone: str, records: Sequence[Mapping[str, Any]]) -> Iterator[Problem]:
    """Check the records of a zone that refuse an address, or its certificate.

    Args:
        domain: of the address.
        zone: name of its zone.
        records: those of `names_to_read`, as Cloud DNS describes them.
    """
    edit = f"`gcloud dns record-sets list --zone={shell_word(zone)}` lists them"
    for data in _data(records, f"{domain}.", "CNAME"):
        yield Problem(
            setting("address.domain"),
            domain,
            f"the zone {zone} has it as an alias of {data}: Cloud DNS refuses an A record beside a CNAME.",
            f"remove the CNAME record ({edit}), or take another domain.",
        )
    labels = domain.split(".")
    names = (f"{'.'.join(labels[number:])}." for number in range(len(labels)))
    nearest = next(filter(None, (list(_data(records, name, "CAA")) for name in names)), [])
    issuers = [data.partition(" issue ")[2].strip(' "').partition(";")[0] for data in nearest if " issue " in data]
    if issuers and ISSUER not in map(str.strip, issuers):
        yield Problem(
            setting("address.domain"),
            domain,
            f"the CAA records in the zone {zone} allow {', '.join(filter(None, issuers)) or 'no one'} to issue "
            "its certificate, and not Google: it would never be issued, and no caller could connect.",
            f'add the CAA record `0 issue "{ISSUER}"` beside them ({edit}).',
        )


def check_owner(domain: str, certificates: Iterable[Mapping[str, Any]], stack: str) -> Iterator[Problem]:
    """Check that no other stack of the project has the domain.

    Args:
        domain: of the address.
        certificates: of the project, as Certificate Manager describes them.
        stack: name of the stack.
    """
    owners = {
        str(each["labels"]["stack"])
        for each in certificates
        if domain in (each.get("managed") or {}).get("domains", ()) and "stack" in (each.get("labels") or {})
    }
    for owner in sorted(owners - {label(stack)}):
        yield Problem(
            setting("address.domain"),
            domain,
            f"the stack {owner} has this domain: its callers would be led to the servers of {stack} instead.",
            f"take another domain, or remove the address from {owner} and deploy that first.",
        )


def record_notes(domain: str, records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """What callers of a domain notice that leads elsewhere now.

    Args:
        domain: of an address that the stack does not have yet.
        records: as in `check_records`.
    """
    if data := list(_data(records, f"{domain}.", "A")):
        yield (
            f"{domain} leads to {', '.join(data)} now: at the end of this deploy its A record is replaced, and "
            "callers cannot connect until the certificate is issued, minutes to hours later. Without a gap: omit "
            f"`{setting('address.zone')}`, set the CNAME that the deploy prints, and the A record once the certificate "
            "is active."
        )


def _data(records: Iterable[Mapping[str, Any]], name: str, kind: str) -> Iterator[str]:
    for record in records:
        if (record.get("name"), record.get("type")) == (name, kind):
            yield from map(str, record.get("rrdatas") or ())
