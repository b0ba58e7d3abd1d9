"""The grant that docs/leases.md shows lets an account grant one role and no other."""

import json
from pathlib import Path

import pytest

from localcloud_support.client import PARENT, RUNTIME

MEMBER = f"serviceAccount:{RUNTIME}"


def documented_limit():
    """The condition of the grant for an account that deploys leases with alerts."""
    text = (Path(__file__).parents[2] / "docs" / "leases.md").read_text()
    return json.loads(text.partition("<<'END'\n")[2].partition("END\n")[0])


@pytest.mark.slow
def test_an_account_that_may_grant_one_role_grants_and_takes_no_other(cloud):
    """As docs/leases.md says for the account that deploys."""
    path = f"/crm/v1/{PARENT}"
    before = cloud.post(f"{path}:getIamPolicy", {"options": {"requestedPolicyVersion": 3}}).json()
    limit = {"role": "roles/resourcemanager.projectIamAdmin", "members": [MEMBER], "condition": documented_limit()}
    other = {"role": "roles/logging.viewer", "members": [MEMBER]}
    bindings = [*before.get("bindings", []), limit, other]
    assert cloud.post(f"{path}:setIamPolicy", {"policy": {"version": 3, "bindings": bindings}}).is_success
    runtime = cloud.as_account(RUNTIME)
    try:
        shown = runtime.post(f"{path}:getIamPolicy", {"options": {"requestedPolicyVersion": 3}}).json()
        for role, kept, status in (
            ("roles/logging.logWriter", bindings, 200),
            ("roles/owner", bindings, 403),
            ("roles/logging.logWriter", [one for one in bindings if one != other], 403),
        ):
            policy = {"version": 3, "bindings": [*kept, {"role": role, "members": [MEMBER]}]}
            assert runtime.post(f"{path}:setIamPolicy", {"policy": policy}).status_code == status
        assert limit in shown["bindings"]
    finally:
        policy = {"version": 3, "bindings": before.get("bindings", [])}
        assert cloud.post(f"{path}:setIamPolicy", {"policy": policy}).is_success
