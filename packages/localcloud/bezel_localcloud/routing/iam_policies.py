"""IAM policies of resources: read and replace under an etag check, the same for every API."""

import asyncio
import hashlib
import json
import re
from collections.abc import Callable

from bezel_localcloud.access.conditions import ConditionError, compile_condition
from bezel_localcloud.access.permissions import ROLE, roles
from bezel_localcloud.access.principals import POOL, pool_name, pool_of
from bezel_localcloud.core.errors import ApiError, NotServedError, invalid, permission_denied
from bezel_localcloud.core.json_types import Json, b64
from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER
from bezel_localcloud.core.store import Store
from bezel_localcloud.routing.router import Api, Call

_MEMBER = re.compile(
    r"allUsers|allAuthenticatedUsers|(serviceAccount|user|group|domain|principal|principalSet|projectOwner|projectEditor|projectViewer|deleted):\S+"
)
_VERSION = "options.requestedPolicyVersion"
# Source: IAM's page of quotas; the text is Google's. Its limit of a policy's size is not published in bytes.
_MOST_MEMBERS, _LARGEST_POLICY = 1500, 512 << 10
_MOST_TESTED = 100  # permissions in one request
# Google's own accounts, which exist in every project.
_GOOGLES = re.compile(r".*@([a-z0-9-]+\.)*gserviceaccount\.com")


def serve_policy(
    api: Api,
    path: str,
    on: str,
    needs: str,
    name_of: Callable[[Call], str],
    *,
    read: str = "GET",
    query: str = _VERSION,
) -> None:
    """Register the three methods of a resource's policy: get, set, and test of the caller's permissions.

    Args:
        api: The resource's API.
        path: Path of the resource.
        on: The resource that the permissions are needed on.
        needs: Prefix of the permissions, such as "run.services".
        name_of: Returns the name of the resource, or raises NOT_FOUND.
        read: HTTP method of getIamPolicy.
        query: Query parameter with the requested version, "" where the body has it.
    """

    @api.route(read, f"{path}:getIamPolicy", needs=f"{needs}.getIamPolicy", on=on, query=query)
    def get_policy(call: Call) -> Json:
        in_body = (call.body.get("options") or {}).get("requestedPolicyVersion", "")
        return read_policy(call.cloud.store, name_of(call), call.query(_VERSION, str(in_body)))

    @api.route("POST", f"{path}:setIamPolicy", needs=f"{needs}.setIamPolicy", on=on)
    def set_policy(call: Call) -> Json:
        name = name_of(call)
        check_limit(call, f"{needs}.setIamPolicy", call.name(on), name, call.body)
        return write_policy(call.cloud.store, name, call.body)

    @api.route("POST", f"{path}:testIamPermissions")
    async def test_permissions(call: Call) -> Json:
        return await held_permissions(call, name_of(call), call.body.get("permissions") or [])


def check_limit(call: Call, permission: str, resource: str, name: str, request: Json) -> None:
    """Check that the caller may change the grants of these roles: a condition of its own grant may limit them.

    Args:
        call: The request.
        permission: That of setIamPolicy.
        resource: What the permission is needed on.
        name: Name of the resource whose policy is replaced.
        request: {"policy": ..., "updateMask": ...}.

    Raises:
        ApiError: PERMISSION_DENIED; INVALID_ARGUMENT for a policy that is too large to be looked at.
    """
    _check_size(request.get("policy") or {})
    bindings = (request.get("policy") or {}).get("bindings") or []
    before, after = (_members(each) for each in (_current(call.cloud.store, name).get("bindings", []), bindings))
    modified = frozenset(role for role, *_ in before ^ after)
    if modified and not call.cloud.access.allows(call.caller or None, permission, resource, modified):
        raise permission_denied(permission, resource)


def _members(bindings: list[Json]) -> set[tuple[str, str, str]]:
    members = set()
    for binding in bindings:
        role, condition = binding.get("role", ""), repr(binding.get("condition"))
        members |= {(role, member, condition) for member in binding.get("members") or []}
    return members


def read_policy(store: Store, name: str, version: str = "") -> Json:
    """Return the policy of a resource; one never set has an etag too, so that the first write can be checked.

    Args:
        store: Store of the policies.
        name: Name of the resource.
        version: `requestedPolicyVersion` of the request. Only version 3 shows conditions; other versions show unusable
            roles in their place, as Google does, so that no client mistakes a grant for unconditional.

    Raises:
        ApiError: INVALID_ARGUMENT for a version that does not exist.
    """
    if version not in {"", "0", "1", "3"}:
        text = f"Requested policy version {version} is none of 0, 1 and 3."
        raise invalid(text, ("options.requested_policy_version", version))
    current = _current(store, name)
    if version == "3" or current["version"] < 3:
        return current
    return current | {"version": 1, "bindings": [_without_condition(binding) for binding in current["bindings"]]}


def write_policy(store: Store, name: str, request: Json, *, stale: ApiError | None = None) -> Json:
    """Replace the policy of a resource, or the parts that the mask names.

    Args:
        store: Store of the policies.
        name: Name of the resource.
        request: {"policy": ..., "updateMask": ...}.
        stale: Error for an etag that is not the current one, where the API has an error of its own.

    Raises:
        ApiError: ABORTED if the etag is not the current one; INVALID_ARGUMENT for unknown roles, members and versions,
            for conditions without version 3, for too many members, and for a mask of anything else.
    """
    policy = request.get("policy")
    if policy is None:
        raise invalid("Policy is required.", ("policy", "must be given"))
    mask = {path for path in request.get("updateMask", "").split(",") if path} or {"bindings", "etag"}
    if not mask <= {"bindings", "etag", "version", "auditConfigs", "audit_configs"}:
        raise invalid(
            "The update mask names a field that a policy does not have.", ("update_mask", ",".join(sorted(mask)))
        )
    _check_size(policy)
    with store.transaction():
        current = _current(store, name)
        if policy.get("etag", "") not in {"", current["etag"]}:
            raise stale or _concurrent(policy["etag"], current["etag"])
        new_bindings = _merge_bindings(store, policy.get("bindings") or [])
        _check_version(policy, current, new_bindings)
        bindings = new_bindings if "bindings" in mask else current.get("bindings", [])
        written: Json = {"version": 3 if any("condition" in b for b in bindings) else 1}
        written["etag"] = b64(b"etag-%08d" % store.next_number("policy"))
        audits = policy if {"auditConfigs", "audit_configs"} & mask else current
        if bindings:
            written["bindings"] = bindings
        if audits.get("auditConfigs"):
            written["auditConfigs"] = audits["auditConfigs"]
        store.put_policy(name, written)
    return written


def _check_size(policy: Json) -> None:
    members = sum(len(binding.get("members") or []) for binding in policy.get("bindings") or [])
    if members > _MOST_MEMBERS:
        text = f"The number of members in the policy ({members:,}) is larger than the maximum allowed size "
        raise invalid(f"{text}{_MOST_MEMBERS:,}.", ("policy.bindings", "too many members"))
    size = len(json.dumps(policy))
    if size > _LARGEST_POLICY:
        text = f"The policy has {size} bytes; localcloud keeps at most {_LARGEST_POLICY}."
        raise invalid(text, ("policy", "is too large"))


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


def _current(store: Store, name: str) -> Json:
    return store.policy(name) or {"version": 1, "etag": "ACAB"}


def _without_condition(binding: Json) -> Json:
    if "condition" not in binding:
        return binding
    mark = hashlib.sha256(json.dumps(binding["condition"], sort_keys=True).encode()).hexdigest()[:20]
    return {"role": f"{binding['role']}_withcond_{mark}", "members": binding["members"]}


def _concurrent(sent_etag: str, current: str) -> ApiError:
    return ApiError(
        "ABORTED",
        "There were concurrent policy changes. Please retry the whole read-modify-write with exponential "
        f"backoff. The request's ETag '{sent_etag}' did not match the current policy's ETag '{current}'.",
    )


def _check_version(policy: Json, current: Json, bindings: list[Json]) -> None:
    version = policy.get("version", 0)
    if version not in {0, 1, 3}:
        raise invalid(f"Policy version {version} is none of 0, 1 and 3.", ("policy.version", str(version)))
    if version == 3:
        return
    if any("condition" in binding for binding in bindings):
        text = "A policy with conditional role bindings must specify version 3; set policy.version to 3."
        raise invalid(text, ("policy.version", "must be 3"))
    if current["version"] == 3 and policy.get("etag"):
        text = "The current policy has conditional role bindings: read it and write it with version 3."
        raise invalid(text, ("policy.version", "must be 3"))


def _merge_bindings(store: Store, bindings: list[Json]) -> list[Json]:
    merged: dict[tuple[str, str], Json] = {}
    for binding in bindings:
        role, members, condition = binding.get("role", ""), binding.get("members") or [], binding.get("condition")
        _check_role(store, role)
        for member in members:
            _check_member(store, member)
        if condition is not None:
            _check_condition(condition)
        if members:
            entry = merged.setdefault((role, repr(condition)), {"role": role, "members": []})
            entry["members"] = sorted({*entry["members"], *members})
            if condition is not None:
                entry["condition"] = condition
    return [merged[key] for key in sorted(merged)]


def _check_role(store: Store, role: str) -> None:
    if role in roles():
        return
    custom = re.fullmatch(r"(projects|organizations)/([^/]+)/roles/[\w.]+", role)
    if custom is None:
        raise invalid(f"Role {role} is not supported for this resource.", ("policy.bindings.role", role))
    if custom[1] == "projects" and store.get(ROLE, role) is None:
        text = f"Role ({role}) does not exist in the resource's hierarchy."
        raise invalid(text, ("policy.bindings.role", role))


def _check_condition(condition: Json) -> None:
    field = "policy.bindings.condition"
    if not condition.get("expression"):
        raise invalid("A condition needs an expression.", (f"{field}.expression", "is required"))
    try:
        compile_condition(condition["expression"])
    except ConditionError as error:
        text = f"localcloud does not evaluate this part of a condition: {error}. It knows request.time with "
        text += (
            "comparisons, date(), timestamp(), duration(), getHours() and its like; resource.name, resource.type and "
        )
        text += "resource.service with == and !=, startsWith(), endsWith() and extract(); and "
        text += (
            "api.getAttribute('iam.googleapis.com/modifiedGrantsByRole', []).hasOnly([...]); joined by &&, || and !."
        )
        raise NotServedError(text) from None


def _check_member(store: Store, member: str) -> None:
    if not _MEMBER.fullmatch(member):
        raise invalid(f"The member {member} is of an unknown type. Please set a valid type prefix for the member.")
    kind, _, email = member.partition(":")
    if kind in {"principal", "principalSet"}:
        _check_pool(store, member)
    if kind != "serviceAccount":
        return
    ours = email.endswith(f"@{PROJECT}.iam.gserviceaccount.com")
    if (ours and store.get("account", email) is None) or not _GOOGLES.fullmatch(email):
        raise invalid(f"Service account {email} does not exist.")


def _check_pool(store: Store, member: str) -> None:
    """Check that a principal is of an existing pool, which its member names by the project's number."""
    pool = pool_of(member)
    shown = pool or member
    ours = pool and pool.startswith(f"projects/{PROJECT_NUMBER}/")
    if not ours or store.get(POOL, pool_name(shown.rpartition("/")[2])) is None:
        text = f"Identity Pool does not exist ({shown}). Please check that you specified a valid resource name as "
        raise invalid(text + "returned in the `name` attribute in the configuration API.")


async def held_permissions(call: Call, name: str, requested: list[str]) -> Json:
    """Response of every testIamPermissions: the requested permissions that the caller has on a resource.

    Raises:
        ApiError: INVALID_ARGUMENT for a permission with a wildcard, and for too many of them.
    """
    if len(requested) > _MOST_TESTED:
        text = f"{len(requested)} permissions are more than a request can test: at most {_MOST_TESTED}."
        raise invalid(text, ("permissions", "too many"))
    if wild := [permission for permission in requested if "*" in permission]:
        raise invalid(f"Permissions with wildcards are not allowed: {', '.join(wild)}.", ("permissions", wild[0]))
    permissions = []
    for permission in requested:
        if call.cloud.access.allows(call.caller or None, permission, name):
            permissions.append(permission)
        await asyncio.sleep(0)  # large policies above the resource take a while each time
    return {"permissions": permissions} if permissions else {}
