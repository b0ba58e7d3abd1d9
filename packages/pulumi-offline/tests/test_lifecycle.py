"""Every resource type of the table lives its whole life: made, unchanged, refreshed, imported, deleted."""

import pytest

from bezel_pulumi_offline.lifecycle.values import decode
from bezel_pulumi_offline.resources import TYPES
from pulumi_offline_support.client import Provider
from pulumi_offline_support.google import FakeGoogle
from pulumi_offline_support.programs import PROGRAMS, STAYS


def test_every_type_of_the_table_is_tried() -> None:
    assert PROGRAMS.keys() == TYPES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_resource_is_made_and_then_unchanged_until_it_is_gone(kind: str, google: FakeGoogle, gcp: Provider) -> None:
    program = PROGRAMS[kind]
    google.polls = 1
    resource_id, made = gcp.create(kind, program)
    assert made["id"] == resource_id
    assert gcp.diff(kind, resource_id, made, program).changes == 1, "DIFF_NONE straight after the create"

    again = gcp.read(kind, resource_id, made, gcp.inputs(kind, program))
    assert again.id == resource_id
    actual = decode(again.properties)
    assert not gcp.diff(kind, resource_id, actual, program).diffs, "nothing differs after a refresh"
    assert decode(again.inputs).keys() >= program.keys()

    if kind != "gcp:storage/bucketObject:BucketObject":  # as with the published plugin, it has no import
        assert gcp.read(kind, resource_id).id == resource_id, "an import by id finds it"

    gcp.delete(kind, resource_id, actual)
    left = resource_id if kind in STAYS else ""
    assert gcp.read(kind, resource_id, actual).id == left, "what is gone has no id"
    gcp.delete(kind, resource_id, actual)


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROGRAMS)
def test_a_preview_asks_nobody_and_makes_nothing(kind: str, google: FakeGoogle, gcp: Provider) -> None:
    resource_id, foretold = gcp.create(kind, PROGRAMS[kind], preview=True)
    assert resource_id == ""
    assert foretold["id"] == "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
    assert google.requests == []


@pytest.mark.slow
@pytest.mark.parametrize("last", [{}, {"nextPageToken": ""}], ids=["without a token", "an empty token"])
def test_the_last_page_of_enabled_services_has_no_token_or_an_empty_one(
    last: dict[str, str], google: FakeGoogle, gcp: Provider
) -> None:
    service = {"name": "projects/1/services/run.googleapis.com"}
    google.enabled.add("run.googleapis.com")
    google.fail("GET .*/services", 200, {"nextPageToken": "2"})
    google.fail("GET .*/services", 200, {"services": [service], **last})
    gcp.create("gcp:projects/service:Service", {"service": "run.googleapis.com"})
    pages = [
        request.query.get("pageToken") for request in google.requests_of("GET") if request.path.endswith("/services")
    ]
    assert pages == [None, "2"], "two pages show that it is enabled, and nothing is read after that"
    assert not google.requests_of("POST"), "it is enabled"
