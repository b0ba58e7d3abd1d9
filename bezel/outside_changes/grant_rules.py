"""Grants in an IAM policy that no program declares. Pure.

Every grant of a resource's own policy counts, whatever its role: a role holds any permissions, custom ones too, and
`run.routes.invoke` is in many. Google's own defaults are left out: the three of a bucket for the project's basic roles.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from bezel.outside_changes.change import NOT_SET, OutsideChange
from bezel.outside_changes.declared import Grant
from bezel_base.text.shell import shell_word

EVERYONE = frozenset({"allUsers", "allAuthenticatedUsers"})
_LEGACY = "roles/storage.legacy"
_BASIC = ("projectOwner:", "projectEditor:", "projectViewer:")


def grants_in(policy: Mapping[str, Any]) -> Iterator[Grant]:
    """The grants of a policy of version 3, without those of deleted members, which have no effect."""
    for binding in policy.get("bindings") or ():
        expression = str((binding.get("condition") or {}).get("expression") or "")
        for member in binding.get("members") or ():
            if not str(member).startswith("deleted:"):
                yield Grant(str(binding.get("role") or ""), str(member), expression)


def undeclared_grants(policy: Mapping[str, Any], declared: Iterable[Grant]) -> list[Grant]:
    """The grants of a resource's policy that are not declared, sorted."""
    comparable = {_comparable(grant) for grant in declared}
    return sorted(
        grant for grant in set(grants_in(policy)) if _comparable(grant) not in comparable and not _default(grant)
    )


def undeclared_of_members(
    policy: Mapping[str, Any], declared: Iterable[Grant], members: Collection[str]
) -> list[Grant]:
    """The undeclared grants of some members, and those of everyone, e.g. in the policy of a shared project."""
    concerned = {member.casefold() for member in members} | {member.casefold() for member in EVERYONE}
    return [grant for grant in undeclared_grants(policy, declared) if grant.member.casefold() in concerned]


def grant_change(resource: str, command: str, grant: Grant) -> OutsideChange:
    """The change that a grant is.

    Args:
        resource: What the grant is on, in words.
        command: The command that removes a grant there, without its role and member.
        grant: The grant.
    """
    removed = f"{command} --role={shell_word(grant.role)} --member={shell_word(grant.member)}"
    removed += f" --condition={shell_word(f'expression={grant.condition}')}" if grant.condition else ""
    under = f" if {grant.condition}" if grant.condition else ""
    return OutsideChange(resource, grant.role, f"{grant.member}{under}", NOT_SET, "access", f"`{removed}`.")


def _comparable(grant: Grant) -> Grant:
    """E-mail addresses are compared without case, as Google does."""
    return grant._replace(member=grant.member.casefold(), condition=grant.condition.strip())


def _default(grant: Grant) -> bool:
    return grant.role.startswith(_LEGACY) and grant.member.startswith(_BASIC)
