"""IAM policies of resources: read, and replace under the check of the etag, the same for every API."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bezel.localcloud.access import roles
from bezel.localcloud.errors import ApiError, invalid
from bezel.localcloud.layout import PROJECT
from bezel.localcloud.shapes import Json, b64

if TYPE_CHECKING:
    from bezel.localcloud.store import Store

_MEMBER = re.compile(
    r"allUsers|allAuthenticatedUsers|(serviceAccount|user|group|domain|principal|principalSet|projectOwner|projectEditor|projectViewer|deleted):\S+"
)
# Accounts of Google's own that exist without anyone having made them.
_GOOGLES = re.compile(r".*@([a-z0-9-]+\.)*gserviceaccount\.com")


def read_policy(store: Store, name: str) -> Json:
    """The policy of a resource; one never set has an etag too, so that the first write can be checked."""
    return store.policy(name) or {"version": 1, "etag": "ACAB"}


def write_policy(store: Store, name: str, policy: object) -> Json:
    """Replace the policy of a resource.

    Raises:
        ApiError: ABORTED if the etag is not the current one, INVALID_ARGUMENT for unknown roles and members.
    """
    if not isinstance(policy, dict):
        raise invalid("Policy is required.", ("policy", "must be given"))
    with store.transaction():
        current = read_policy(store, name)
        if policy.get("etag", current["etag"]) != current["etag"]:
            raise ApiError(
                "ABORTED",
                "There were concurrent policy changes. Please retry the whole read-modify-write with exponential "
                f"backoff. The request's ETag '{policy['etag']}' did not match the current policy's ETag "
                f"'{current['etag']}'.",
            )
        bindings = _merged(store, policy.get("bindings") or [])
        written: Json = {"version": 3 if any("condition" in b for b in bindings) else 1}
        written["etag"] = b64(b"etag-%08d" % store.next_number("policy"))
        if bindings:
            written["bindings"] = bindings
        store.put_policy(name, written)
    return written


def forget_member(store: Store, account: Json) -> None:
    """Mark a deleted service account in every policy; a new one of the same name does not get its grants."""
    gone = f"serviceAccount:{account['email']}"
    marked = f"deleted:{gone}?uid={account['uniqueId']}"
    for name, policy in store.policies():
        bindings = policy.get("bindings", [])
        if any(gone in binding["members"] for binding in bindings):
            for binding in bindings:
                binding["members"] = [marked if member == gone else member for member in binding["members"]]
            store.put_policy(name, policy)


def _merged(store: Store, bindings: list[Json]) -> list[Json]:
    merged: dict[tuple[str, str], Json] = {}
    for binding in bindings:
        role, members, condition = binding.get("role", ""), binding.get("members") or [], binding.get("condition")
        if role not in roles() and not re.fullmatch(r"(projects|organizations)/[^/]+/roles/\w+", role):
            raise invalid(f"Role {role} is not supported for this resource.", ("policy.bindings.role", role))
        for member in members:
            _check_member(store, member)
        if members:
            entry = merged.setdefault((role, repr(condition)), {"role": role, "members": []})
            entry["members"] = sorted({*entry["members"], *members})
            if condition:
                entry["condition"] = condition
    return [merged[key] for key in sorted(merged)]


def _check_member(store: Store, member: str) -> None:
    if not _MEMBER.fullmatch(member):
        raise invalid(f"The member {member} is of an unknown type. Please set a valid type prefix for the member.")
    kind, _, email = member.partition(":")
    if kind != "serviceAccount":
        return
    ours = email.endswith(f"@{PROJECT}.iam.gserviceaccount.com")
    if (ours and store.get("account", email) is None) or not _GOOGLES.fullmatch(email):
        raise invalid(f"Service account {email} does not exist.")
