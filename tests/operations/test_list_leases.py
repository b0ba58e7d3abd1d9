"""The list of leases against localcloud's own APIs: every lease of this program with its price, and nobody else's."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from bezel.rest import RestError
from tests.support.cli.tpu_cloud import OTHER, running
from tests.support.operations.lease_cloud import LeaseCloud
from tests.support.rest.fake_google import Answer

pytestmark = pytest.mark.slow  # a whole cloud each


@pytest.fixture
def leases(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[LeaseCloud]:
    with running(tmp_path, monkeypatch, capsys) as cloud:
        yield LeaseCloud(cloud)


def test_every_lease_of_ours_is_listed_with_its_price_and_nobody_elses(leases: LeaseCloud) -> None:
    assert "no leases of this program" in leases.list().text()
    leases.cloud.lease("bezel-one")
    leases.cloud.lease("bezel-two", vm=True)
    leases.cloud.lease("research-box", ours=False)
    listing = leases.list()
    assert [(each.name, each.kind, each.state) for each in listing.leases] == [
        ("bezel-one", "queued_resource", "active"),
        ("bezel-two", "flex_start_vm", "active"),
    ]
    assert {each.usd_per_hour for each in listing.leases} == {listing.leases[0].usd_per_hour}
    assert listing.leases[0].usd_per_hour is not None
    assert leases.cloud.changing_calls == []


def test_a_zone_that_cannot_be_read_fails_the_list(leases: LeaseCloud) -> None:
    error = {"error": {"code": 403, "message": "Permission 'tpu.nodes.list' denied", "status": "PERMISSION_DENIED"}}
    leases.cloud.server.routes.insert(0, lambda call: Answer(403, error) if f"{OTHER}/nodes" in call.path else None)
    with pytest.raises(RestError, match=r"tpu\.nodes\.list"):
        leases.list()


def test_an_api_that_is_not_enabled_is_named(leases: LeaseCloud) -> None:
    leases.cloud.project.cloud.store.delete("api", "tpu.googleapis.com")
    assert any("has not enabled the API of queued_resource" in note for note in leases.list().notes)
