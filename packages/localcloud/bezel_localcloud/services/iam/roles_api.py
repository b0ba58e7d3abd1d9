"""IAM v1: custom roles of the project.

A deleted role grants nothing, can be restored for 7 days, and keeps its name for 30 days more. Leaves out predefined
roles, of which localcloud knows only the permissions that it asks for (data/roles.toml), and permission tests.
Source: IAM's page on custom roles; texts as publicly reported.
"""

import re

from bezel_localcloud.access.permissions import ROLE
from bezel_localcloud.core.errors import ApiError, invalid
from bezel_localcloud.core.json_types import Json, b64, without_zeros
from bezel_localcloud.core.store import Store
from bezel_localcloud.http.update_mask import apply_mask
from bezel_localcloud.routing.router import Api, Call

api = Api("iam.googleapis.com", "Identity and Access Management (IAM) API")
_ROOT = "/iam/v1/projects/{project:id}/roles"
_ONE = _ROOT + "/{role:id}"
_PARENT, _NAME = "projects/{project}", "projects/{project}/roles/{role}"
_SETTABLE = frozenset({"title", "description", "includedPermissions", "stage"})
_RESTORABLE_SECONDS, _RESERVED_SECONDS = 7 * 86_400.0, 37 * 86_400.0
_PERMISSION = re.compile(r"[a-z][a-zA-Z0-9-]*(?:\.[a-zA-Z0-9-]+){2,}")
_LONGEST_TITLE, _LONGEST_DESCRIPTION, _MOST_PERMISSIONS = 100, 300, 3000
_DELETED_AT = "deletedAt"  # Unix seconds, in the store only


@api.route("POST", _ROOT, needs="iam.roles.create")
def create(call: Call) -> Json:
    """Create a role."""
    role_id, body, store = str(call.body.get("roleId", "")), call.body.get("role") or {}, call.cloud.store
    if not re.fullmatch(r"[a-zA-Z0-9_.]{3,64}", role_id):
        text = f"The role_id {role_id!r} is invalid: 3 to 64 letters, digits, underscores and periods."
        raise invalid(text, ("role_id", role_id))
    name = f"{call.name(_PARENT)}/roles/{role_id}"
    row = {key: value for key, value in body.items() if key in _SETTABLE}
    _check(row)
    with store.transaction():
        _purge(store, call.cloud.pace.now())
        current = store.get(ROLE, name)
        if current and current.get("deleted"):
            text = f"You can't create a role_id ({role_id}) which has been marked for deletion."
            raise ApiError("FAILED_PRECONDITION", text)
        call.check_absent(ROLE, name, f"A role named {role_id} in {call.name(_PARENT)} already exists.")
        return _put(call, {"name": name} | row)


@api.route("GET", _ROOT, needs="iam.roles.list", query="pageSize pageToken showDeleted view")
def list_roles(call: Call) -> Json:
    """Roles of the project, without their permissions unless the view is FULL."""
    _purge(call.cloud.store, call.cloud.pace.now())
    hidden = set() if call.query("view") == "FULL" else {"includedPermissions"}
    rows = call.cloud.store.rows(ROLE, call.name(_PARENT) + "/roles/")
    shown = [(name, row) for name, row in rows if call.flag("showDeleted") or not row.get("deleted")]
    listed = [
        (name, {key: value for key, value in _role_json(row).items() if key not in hidden}) for name, row in shown
    ]
    return call.page(listed, "roles", default=300, max_size=1000)


@api.route("GET", _ONE, needs="iam.roles.get", on=_NAME)
def get(call: Call) -> Json:
    """One role, also a deleted one."""
    return _role_json(_row_of(call))


@api.route("PATCH", _ONE, needs="iam.roles.update", on=_NAME, query="updateMask", body="role")
def patch(call: Call) -> Json:
    """Change the fields that the mask names (without one, all that can be changed)."""
    with call.cloud.store.transaction():
        old = _row_of(call)
        _check_etag(call.body.get("etag", ""), old)
        if old.get("deleted"):
            raise ApiError("FAILED_PRECONDITION", f"The role named {old['name']} is deleted: restore it first.")
        changed = apply_mask(old, call.body, call.mask() or ["*"], "iam.Role", _SETTABLE)
        _check(changed)
        return _put(call, {key: value for key, value in old.items() if key not in _SETTABLE} | changed)


@api.route("DELETE", _ONE, needs="iam.roles.delete", on=_NAME, query="etag")
def delete(call: Call) -> Json:
    """Mark a role as deleted: what policies grant by it has no effect."""
    with call.cloud.store.transaction():
        role = _row_of(call)
        _check_etag(call.query("etag"), role)
        if role.get("deleted"):
            raise ApiError("FAILED_PRECONDITION", f"The role named {role['name']} is already deleted.")
        return _put(call, role | {"deleted": True, _DELETED_AT: call.cloud.pace.now()})


@api.route("POST", f"{_ONE}:undelete", needs="iam.roles.undelete", on=_NAME)
def undelete(call: Call) -> Json:
    """Restore a role that was deleted at most 7 days ago."""
    with call.cloud.store.transaction():
        role = _row_of(call)
        _check_etag(call.body.get("etag", ""), role)
        if not role.get("deleted"):
            raise ApiError("FAILED_PRECONDITION", f"The role named {role['name']} is not deleted.")
        if call.cloud.pace.now() - role[_DELETED_AT] > _RESTORABLE_SECONDS:
            raise ApiError("FAILED_PRECONDITION", f"The role named {role['name']} was deleted more than 7 days ago.")
        return _put(call, {key: value for key, value in role.items() if key not in {"deleted", _DELETED_AT}})


def _check(role: Json) -> None:
    if len(role.get("title", "").encode()) > _LONGEST_TITLE:
        raise invalid(f"The title exceeds {_LONGEST_TITLE} bytes.", ("role.title", "is too long"))
    if len(role.get("description", "")) > _LONGEST_DESCRIPTION:
        raise invalid(
            f"The description exceeds {_LONGEST_DESCRIPTION} characters.", ("role.description", "is too long")
        )
    permissions = role.get("includedPermissions") or []
    if len(permissions) > _MOST_PERMISSIONS:
        raise invalid(f"A role has at most {_MOST_PERMISSIONS} permissions.", ("role.included_permissions", "too many"))
    for permission in permissions:
        if not _PERMISSION.fullmatch(permission):
            raise invalid(f"Permission {permission} is not valid.", ("role.included_permissions", permission))


def _put(call: Call, role: Json) -> Json:
    role = without_zeros(role)
    role["etag"] = b64(b"role-%08d" % call.cloud.store.next_number("role"))
    call.cloud.store.put(ROLE, role["name"], role)
    return _role_json(role)


def _role_json(role: Json) -> Json:
    hidden = {_DELETED_AT} | ({"stage"} if role.get("stage") == "ALPHA" else set())
    return {key: value for key, value in role.items() if key not in hidden}


def _row_of(call: Call) -> Json:
    name = call.name(_NAME)
    _purge(call.cloud.store, call.cloud.pace.now())
    return call.row_of(ROLE, name, f"The role named {name} was not found.")


def _check_etag(etag: str, role: Json) -> None:
    if etag not in {"", role["etag"]}:
        raise ApiError("ABORTED", f"There were concurrent changes of the role named {role['name']}: read it again.")


def _purge(store: Store, now: float) -> None:
    for name, role in store.rows(ROLE):
        if role.get("deleted") and now - role[_DELETED_AT] > _RESERVED_SECONDS:
            store.delete(ROLE, name)
