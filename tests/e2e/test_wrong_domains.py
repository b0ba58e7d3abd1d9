"""A domain that cannot be served stops before anything is made; rights that are missing stop only the address."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bezel_localcloud.core.files.locks import using
from tests.support.e2e.regions import DOMAIN, PROJECT, SMOKE, ZONE, RegionsStack

if TYPE_CHECKING:
    from tests.support.e2e.rehearsal import Rehearsal

ZONES = f"/dns/v1/{PROJECT}/managedZones"
ADDRESS = {"domain": DOMAIN, "zone": ZONE}
ISSUERS = {"name": "acme.example.", "type": "CAA", "ttl": 300, "rrdatas": ['0 issue "letsencrypt.org"']}


@pytest.mark.wide
@pytest.mark.timeout(300)
def test_a_wrong_domain_makes_nothing_and_missing_rights_no_records(rehearsal: Rehearsal) -> None:
    stack = RegionsStack(rehearsal)
    stack.prepare(address=ADDRESS)
    with rehearsal.api() as api:
        assert api.post(f"{ZONES}/{ZONE}/changes", json={"additions": [ISSUERS]}).is_success
        for zone, text in ((ZONE, "allow letsencrypt.org to issue its certificate"), ("acne", "has no such zone")):
            refused = stack.up(**{"address.zone": zone})
            assert (refused.code, text in refused.text, "Repair: " in refused.text) == (1, True, True), refused.text
        assert (stack.services(), stack.balancers()["balancers"]) == (set(), [])
        assert api.post(f"{ZONES}/{ZONE}/changes", json={"deletions": [ISSUERS]}).is_success

    stack.fault("server-errors", status=403, path="/dns/*/changes", method="POST", count=0)
    denied = stack.up(address=ADDRESS)
    assert (denied.code, "answer at their own URLs" in denied.text) == (1, True), denied.text
    assert denied.text.count(f"`bezel init --domain {DOMAIN}`") == 1
    assert stack.describe("us-east4")["terminalCondition"]["state"] == "CONDITION_SUCCEEDED"
    stack.mend()
    stack.deploy()

    other = RegionsStack(rehearsal, "l4-e2b")
    other._set({"smoke": SMOKE, "address": ADDRESS, "cost.max_hourly_usd": 8})
    taken = other.up()
    assert (taken.code, f"the stack {stack.name} has this domain" in taken.text) == (1, True), taken.text
    with using(rehearsal.cloud):
        assert rehearsal.local("down", "l4-e2b").code == 0
    stack.destroy()
