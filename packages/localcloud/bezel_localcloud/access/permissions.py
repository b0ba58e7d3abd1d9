"""Permission test: predefined and custom roles, and the policies of a resource and of its parents."""

import json
import tomllib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from bezel_localcloud.access.checks import note_permission
from bezel_localcloud.access.conditions import ConditionError, holds
from bezel_localcloud.access.principals import FederatedPrincipal
from bezel_localcloud.core.clock import PlatformClock
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.paths import PROJECT
from bezel_localcloud.core.store import Store

PROJECT_NAME = f"projects/{PROJECT}"
ROLE = "role"
"""Kind of the rows of custom roles in the store."""
_BASIC = {"projectOwner": "roles/owner", "projectEditor": "roles/editor", "projectViewer": "roles/viewer"}


@cache
def roles() -> dict[str, tuple[str, ...]]:
    """Permission patterns of each role that can be granted."""
    table = tomllib.loads((Path(__file__).parents[1] / "data" / "roles.toml").read_text(encoding="utf-8"))
    return {role: tuple(patterns) for role, patterns in table.items()}


@lru_cache(maxsize=4096)
def _role_has(role: str, permission: str) -> bool:
    return any(fnmatchcase(permission, pattern) for pattern in roles().get(role, ()))


class Access:
    """Tests permissions against the policies in a store."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def allows(self, email: str | None, permission: str, resource: str, modified: frozenset[str] = frozenset()) -> bool:
        """Whether a caller (e-mail or federated principal; None: unauthenticated) has a permission on a resource.

        The policies of the resource, of its parent (a version's secret, an object's bucket) and of the project count;
        a billing account is not part of the project. `modified` has the roles whose grants the request changes.
        """
        granted = any(self._grants(name, email, permission, resource, modified) for name in _with_parents(resource))
        note_permission(email, permission, granted=granted)
        return granted

    def _grants(self, name: str, email: str | None, permission: str, resource: str, modified: frozenset[str]) -> bool:
        return any(
            self._holds(binding.role, permission)
            and self._is_member(email, binding)
            and _applies(binding.content, resource, modified)
            for binding in self._bindings(name)
        )

    def _bindings(self, name: str) -> Sequence["_Binding"]:
        text = self._store.policy_text(name)
        return _kept_bindings(text) if len(text) <= _LONGEST_KEPT else _bindings(text)

    def _holds(self, role: str, permission: str) -> bool:
        if not role.startswith("projects/"):
            return _role_has(role, permission)
        custom = self._store.get(ROLE, role) or {}
        effective = not custom.get("deleted") and custom.get("stage") != "DISABLED"
        return effective and permission in custom.get("includedPermissions", [])

    def _is_member(self, email: str | None, binding: "_Binding") -> bool:
        members = binding.members
        if "allUsers" in members:
            return True
        if email is None:
            return False
        if isinstance(email, FederatedPrincipal):  # allAuthenticatedUsers are Google's own accounts
            return not {email, *email.sets}.isdisjoint(members)
        direct_members = (f"serviceAccount:{email}", f"user:{email}")
        if "allAuthenticatedUsers" in members or not members.isdisjoint(direct_members):
            return True
        return bool(binding.basic_roles) and any(
            project.role in binding.basic_roles and not project.members.isdisjoint(direct_members)
            for project in self._bindings(PROJECT_NAME)
        )


class _Binding(NamedTuple):
    """A binding of a policy as it is tested.

    Attributes:
        basic_roles: Roles on the project whose members it includes, as `projectOwner:` does.
        content: The whole binding, which is not to be changed.
    """

    role: str
    members: frozenset[str]
    basic_roles: frozenset[str]
    content: Json


def _bindings(text: str) -> Sequence[_Binding]:
    """The bindings of a policy as it is stored, "" for none."""
    return [
        _Binding(binding["role"], members, frozenset(filter(None, map(_basic_role, members))), binding)
        for binding in (json.loads(text).get("bindings", []) if text else ())
        for members in (frozenset(binding.get("members", [])),)
    ]


def _basic_role(member: str) -> str | None:
    kind, _, project = member.partition(":")
    return _BASIC.get(kind) if project == PROJECT else None


# A policy is read at each test, and parsed again where its text is another one.
_kept_bindings = lru_cache(maxsize=256)(_bindings)
_LONGEST_KEPT = 1 << 16  # characters


def _applies(binding: Json, resource: str, modified: frozenset[str]) -> bool:
    condition = binding.get("condition")
    if condition is None:
        return True
    try:
        return holds(condition.get("expression", ""), resource, PlatformClock.now(), modified)
    except ConditionError:  # written before conditions were checked: it grants nothing
        return False


_MOST_PARTS = 100  # of a resource with a policy: a caller's name can have thousands of slashes


def _with_parents(resource: str) -> list[str]:
    bucket, inside, _ = resource.partition("/objects/")
    if inside and bucket.startswith("projects/_/buckets/"):  # the slashes of an object's name are no parents
        return [resource, bucket, PROJECT_NAME]
    parts = resource.split("/")
    ends = [len(parts), *range(min(len(parts) - 1, _MOST_PARTS), 1, -1)]
    parents = ["/".join(parts[:end]) for end in ends]
    return parents if parts[0] == "billingAccounts" else list(dict.fromkeys([*parents, PROJECT_NAME]))
