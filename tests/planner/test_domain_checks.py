"""Checks of a domain against the project: what would leave half of an address, or take the name from another stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bezel.planner.address.domain_checks import check_owner, check_records, check_zone, names_to_read, record_notes

if TYPE_CHECKING:
    from bezel.planner import Problem

DOMAIN = "llm.acme.example"
ZONE = {"dnsName": "acme.example.", "visibility": "public"}


def record(kind: str, *data: str, name: str = f"{DOMAIN}.") -> dict[str, Any]:
    return {"name": name, "type": kind, "rrdatas": list(data)}


def is_said(problems: list[Problem], text: str) -> bool:
    """Whether there is one problem with a text, or none without one."""
    return len(problems) == bool(text) and all(text in each.consequence and each.repair for each in problems)


@pytest.mark.parametrize(
    ("zone", "text"),
    [
        (ZONE, ""),
        (ZONE | {"dnsName": f"{DOMAIN}."}, ""),
        (None, "acme-llm has no such zone"),
        (ZONE | {"dnsName": "other.example."}, f"{DOMAIN} is not below that"),
        (ZONE | {"dnsName": "me.example."}, f"{DOMAIN} is not below that"),
        (ZONE | {"visibility": "private"}, "it is private"),
    ],
)
def test_zone_holds_the_domain_where_google_sees_it(zone: dict[str, Any] | None, text: str) -> None:
    assert is_said(list(check_zone(DOMAIN, "acme", zone, "acme-llm")), text)


@pytest.mark.parametrize(
    ("records", "text"),
    [
        ([], ""),
        ([record("A", "192.0.2.1")], ""),
        ([record("CNAME", "web.acme.example.")], "an alias of web.acme.example."),
        ([record("CNAME", "web.acme.example.", name="web.acme.example.")], ""),
        ([record("CAA", '0 issue "pki.goog"')], ""),
        ([record("CAA", '0 issue "letsencrypt.org"', '0 issue "pki.goog; cansignhttpexchanges=yes"')], ""),
        ([record("CAA", '0 issue "letsencrypt.org"')], "allow letsencrypt.org to issue"),
        ([record("CAA", '0 issue ";"', name="acme.example.")], "allow no one to issue"),
        ([record("CAA", '0 issue ""', name="acme.example.")], "allow no one to issue"),
        ([record("CAA", '0 iodef "mailto:a@acme.example"')], ""),
        ([record("CAA", '0 issue "pki.goog"'), record("CAA", '0 issue "x.example"', name="acme.example.")], ""),
    ],
)
def test_records_that_refuse_an_address_or_its_certificate(records: list[dict[str, Any]], text: str) -> None:
    assert is_said(list(check_records(DOMAIN, "acme", records)), text)


@pytest.mark.parametrize(
    ("labels", "domain", "text"),
    [
        ({"stack": "dev"}, DOMAIN, ""),
        ({"stack": "prod"}, "other.acme.example", ""),
        ({}, DOMAIN, ""),
        ({"stack": "prod"}, DOMAIN, "the stack prod has this domain"),
    ],
)
def test_domain_of_another_stack_is_not_taken(labels: dict[str, str], domain: str, text: str) -> None:
    certificate = {"labels": labels, "managed": {"domains": [domain]}}
    assert is_said(list(check_owner(DOMAIN, [certificate, {}], "dev")), text)


def test_records_are_read_up_to_the_zone() -> None:
    assert list(names_to_read(DOMAIN, ZONE)) == [f"{DOMAIN}.", "acme.example."]
    assert list(names_to_read("example", ZONE)) == []


def test_callers_of_a_domain_that_moves_are_thought_of() -> None:
    (note,) = record_notes(DOMAIN, [record("A", "192.0.2.1"), record("A", "192.0.2.2", name="acme.example.")])
    assert "leads to 192.0.2.1 now" in note
    assert list(record_notes(DOMAIN, [record("TXT", "x")])) == []
