"""Principals of workload identity federation: the caller behind a federated token, and the members that include it.

Owns the names. Leaves out how a token is exchanged (`bezel_localcloud.services.iam.sts`) and what a role grants.
Source: IAM's page on principal identifiers, November 2026.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Self

from bezel_localcloud.core.paths import PROJECT, PROJECT_NUMBER

POOL = "workloadIdentityPool"
"""Kind of the rows of pools in the store."""
_HOST = "iam.googleapis.com"
_POOL = r"projects/[^/]+/locations/global/workloadIdentityPools/[^/]+"
_MEMBER = re.compile(
    rf"principal://{_HOST}/(?P<pool>{_POOL})/subject/.+"
    rf"|principalSet://{_HOST}/(?P<pools>{_POOL})/(?:group/.+|attribute\.[a-z0-9_]+/.+|\*)"
)


class FederatedPrincipal(str):
    """The name of an outside identity, `principal://...`: a caller, as the e-mail of a service account is one.

    Attributes:
        sets: The members of policies that include it, beside itself.
    """

    __slots__ = ("sets",)
    sets: frozenset[str]

    @classmethod
    def of(cls, pool: str, subject: str, groups: Sequence[str], attributes: Mapping[str, str]) -> Self:
        """The principal of an identity.

        Args:
            pool: Id of its pool.
            subject: Its `google.subject`.
            groups: Its `google.groups`.
            attributes: Its own attributes, by their names without "attribute.".
        """
        name = pool_name(pool, number=True)
        sets = [f"{name}/group/{group}" for group in groups]
        sets += [f"{name}/attribute.{key}/{value}" for key, value in attributes.items()]
        return cls.with_sets(f"principal://{_HOST}/{name}/subject/{subject}", [*sets, f"{name}/*"])

    @classmethod
    def with_sets(cls, name: str, sets: Sequence[str]) -> Self:
        """The principal of a token's claims; `sets` are paths without scheme and host."""
        principal = cls(name)
        principal.sets = frozenset(f"principalSet://{_HOST}/{path}" for path in sets)
        return principal

    @property
    def paths(self) -> list[str]:
        """Its sets as `with_sets` takes them."""
        return sorted(member.removeprefix(f"principalSet://{_HOST}/") for member in self.sets)

    @property
    def pool(self) -> str:
        """Name of its pool in the store."""
        return pool_name(self.split("/")[8])


def pool_name(pool: str, *, number: bool = False) -> str:
    """Name of a pool: with the project's id as the store has it, or with its number as Google shows it."""
    return f"projects/{PROJECT_NUMBER if number else PROJECT}/locations/global/workloadIdentityPools/{pool}"


def pool_of(member: str) -> str | None:
    """The pool that a member of a policy belongs to, as the member names it; None for a member of another kind."""
    match = _MEMBER.fullmatch(member)
    return match and (match["pool"] or match["pools"])
