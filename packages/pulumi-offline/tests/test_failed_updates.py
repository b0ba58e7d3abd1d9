"""A failed update leaves what was asked for in the state, as the published provider does: the next one only reads.

The Terraform SDK merges the planned values into the state whether the update ended well or not, unless the provider has
marked it as partial.
"""

from typing import Any

import pytest

from bezel_pulumi_offline.lifecycle.values import decode
from bezel_pulumi_offline.resources import TYPES
from bezel_pulumi_offline.resources.iam_members import MemberType
from bezel_pulumi_offline.resources.services import Enabled
from pulumi_offline_support.client import FailedError, Provider
from pulumi_offline_support.google import DROPPED, FakeGoogle
from pulumi_offline_support.programs import PROGRAMS, UPDATES, with_change

pytestmark = pytest.mark.slow  # whole processes

SERVICE = "gcp:cloudrunv2/service:Service"
NAT = "gcp:compute/routerNat:RouterNat"
ROLE = "gcp:projects/iAMCustomRole:IAMCustomRole"  # its name is read before it is made
RECORDS = "gcp:dns/recordSet:RecordSet"  # its create begins by reading the zone
WRITES = "(POST|PUT|PATCH) .*"
# Enabled APIs, members of policies and entries of a router are read before they are written.
READ_AFTERWARDS = sorted(
    kind for kind, row in TYPES.items() if row.operations is not Enabled and not isinstance(row, MemberType)
)
REFUSED = {"error": {"code": 400, "message": "no", "status": "INVALID_ARGUMENT"}}


def failed_update(gcp: Provider, kind: str, resource_id: str, made: dict[str, Any], wanted: dict[str, Any]) -> Any:
    """What the state gets of an update that fails."""
    with pytest.raises(FailedError) as failed:
        gcp.update(kind, resource_id, made, wanted, timeout=0.1)
    assert failed.value.text.startswith("updating urn:")
    assert failed.value.kept is not None, failed.value.text
    assert failed.value.kept.id == resource_id
    assert list(failed.value.kept.reasons) == [failed.value.text]
    return decode(failed.value.kept.properties)


@pytest.mark.parametrize("kind", sorted(UPDATES))
def test_what_was_refused_stands_in_the_state_until_the_next_read(kind: str, google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(kind, PROGRAMS[kind])
    wanted = with_change(PROGRAMS[kind], *UPDATES[kind])
    google.fail(WRITES, 400, REFUSED, times=99)
    state = failed_update(gcp, kind, resource_id, made, wanted)
    google.faults.clear()
    partial = TYPES[kind].partial
    assert bool(gcp.diff(kind, resource_id, state, wanted).diffs) is partial
    if partial:
        return

    google.requests.clear()
    read = gcp.update(kind, resource_id, state, wanted)
    assert {request.method for request in google.requests} == {"GET"}
    assert gcp.diff(kind, resource_id, read, wanted).diffs, "what is read is not what was asked for"
    after = gcp.update(kind, resource_id, read, wanted)
    assert not gcp.diff(kind, resource_id, after, wanted).diffs


@pytest.mark.parametrize("status", [400, 403, 409, 504, DROPPED])
def test_no_failure_of_an_update_is_distinguished_from_another(status: int, google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(SERVICE, PROGRAMS[SERVICE])
    wanted = with_change(PROGRAMS[SERVICE], "template.containers.0.args.1", "--seed=1")
    google.fail("PATCH .*", status, REFUSED, times=9)
    google.requests.clear()
    state = failed_update(gcp, SERVICE, resource_id, made, wanted)
    assert [request.method for request in google.requests] == ["PATCH"], "a failed update is not read"
    assert state["template"]["containers"][0]["args"][1] == "--seed=1"
    assert state["latestCreatedRevision"] == made["latestCreatedRevision"]


def test_a_secret_of_a_failed_update_is_sealed_in_the_state(google: FakeGoogle, gcp: Provider) -> None:
    kind = "gcp:secretmanager/secretVersion:SecretVersion"
    resource_id, made = gcp.create(kind, PROGRAMS[kind])
    google.fail(".*:disable", 400, REFUSED, times=9)
    with pytest.raises(FailedError) as failed:
        gcp.update(kind, resource_id, made, {**PROGRAMS[kind], "enabled": False})
    assert failed.value.kept is not None
    sealed = failed.value.kept.properties.fields["secretData"].struct_value.fields
    assert "value" in sealed


def test_a_resource_that_is_gone_keeps_its_old_state(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made = gcp.create(SERVICE, PROGRAMS[SERVICE])
    google.fail("GET .*/services/llm", 404, {"error": {"code": 404, "message": "gone", "status": "NOT_FOUND"}})
    with pytest.raises(FailedError, match="does not exist after its creation") as failed:
        gcp.update(SERVICE, resource_id, made, with_change(PROGRAMS[SERVICE], "deletionProtection", True))
    assert failed.value.kept is None


@pytest.mark.parametrize("kind", sorted(set(READ_AFTERWARDS) - {NAT, ROLE, RECORDS}))
def test_what_was_made_and_cannot_be_read_is_kept(kind: str, google: FakeGoogle, gcp: Provider) -> None:
    google.fail("GET .*", 403, REFUSED, times=99)
    with pytest.raises(FailedError) as failed:
        gcp.create(kind, PROGRAMS[kind])
    assert failed.value.kept is not None, failed.value.text
    google.faults.clear()
    updated = gcp.update(kind, failed.value.kept.id, decode(failed.value.kept.properties), PROGRAMS[kind])
    assert not gcp.diff(kind, failed.value.kept.id, updated, PROGRAMS[kind]).diffs
