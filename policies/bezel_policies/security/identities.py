"""Members of access policies that are no known identities: everyone, whole sets of identities, shared accounts. Pure.

A known identity is a user, a group, a service account made for its use, or the identities of a pool that one group
or the value of an attribute selects, which in a pool of jobs names a repository. Sources: IAM, "Principal identifiers";
Cloud Storage, "Predefined ACLs" and scopes of access lists; BigQuery, `Dataset.access`; IAM, "Types of service
accounts: default service accounts".
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from bezel.resource_cost.inputs import camel
from bezel.resource_cost.nested_values import Value
from bezel_policies.security.pool_condition import PINNING, subject_names_repository

MEMBERS = frozenset(
    {
        "defaultAcl", "domain", "iamMember", "identities", "member", "members", "policyData", "predefinedAcl",
        "principal", "principals", "roleEntities", "specialGroup",
    }
)  # fmt: skip
"""Inputs that hold members, of any type of resource."""
SHARED_ACCOUNT = re.compile(
    r"(?:.*/)?(?:(?:\d+-compute@developer|.*@appspot|\d+@cloudservices|\d+@cloudbuild)\.gserviceaccount\.com|default)"
)
"""Accounts that Google creates by itself, with rights over the whole project or owned outside of a stack."""
_EVERYONE = re.compile(
    r"(?<![\w.-])(?:allUsers|allAuthenticatedUsers|principalSet://goog/public:all"
    r"|system:(?:anonymous|authenticated|unauthenticated))(?![\w.-])",
    re.IGNORECASE,
)
_SET = re.compile(r"principalSet://[^\s\"',;)\]}]+", re.IGNORECASE)
_PRINCIPAL = re.compile(r"principal://[^\s\"',;)}]+", re.IGNORECASE)
_POOL = r"principalSet://iam\.googleapis\.com/(?:projects/[^/*]+/)?locations/global/"
# Attributes that select the jobs of one repository; `access` is computed by the pipeline's own provider.
_OF_REPOSITORY = "|".join((*(name.lower() for name in PINNING), "access"))
_KNOWN_SET = re.compile(
    rf"{_POOL}(?:workloadIdentityPools/[^/*]+/(?:group/[^*]+|attribute\.(?:{_OF_REPOSITORY})/[^*]+)"
    # Of people: whatever their organization writes of them, but not what all of them have.
    r"|workforcePools/[^/*]+/(?:group/[^*]+|attribute\.(?!(?:aud|azp|iss|hd|tid|client_id)/)\w+/[^*]+))",
    re.IGNORECASE,
)
_SUBJECT = re.compile(r".*/workloadIdentityPools/[^/]+/subject/(.+)", re.IGNORECASE)
_PROJECT = re.compile(r"(?<![\w.-])project(?:Owner|Editor|Viewer):[\w.:-]+", re.IGNORECASE)
_SHARED = re.compile(
    r"serviceAccount:(?:\d+-compute@developer|[\w.:-]+@appspot|\d+@cloudservices|\d+@cloudbuild)\.gserviceaccount\.com",
    re.IGNORECASE,
)
# Only where members stand: elsewhere these words mean other things.
_DOMAIN = re.compile(r"(?:[A-Z]+:)?domain[:-][\w.-]+", re.IGNORECASE)
_PROJECT_LIST = re.compile(r"(?:[A-Z]+:)?project-(?:owners|editors|viewers)-[\w-]+|project(?:Owners|Writers|Readers)")
_ENTITY = re.compile(r"(?:[A-Z]+:)?(?:user-)?([^:]+)")
_PUBLIC_LIST = re.compile(r"public-?read(?:-?write)?|authenticated-?read", re.IGNORECASE)
"""Cloud Storage's predefined access lists that include everyone."""
_INTERNET = "it grants the role to the whole internet: anyone can have a Google account."
_WHOLE = "it stands for every identity of a pool, a project or an organization, also those that come later."
_EDITORS = "it stands for everyone who has a basic role on the project, also those who get it later."
_SHARED_SAYS = "it is a shared account: whatever runs as it in the project gets the role, too."
_DOMAIN_SAYS = "it stands for everybody in an organization, also those who come later."


class Unidentified(NamedTuple):
    """A member that is no known identity, and what it stands for, as a sentence."""

    member: str
    says: str


def unidentified_members(token: str, value: Value) -> Iterator[Unidentified]:
    """The members in an input that are no known identities.

    Args:
        token: the resource's type.
        value: the input: one text.
    """
    text, name = str(value.value), camel(value.name)
    yield from _anywhere(text)
    if name.lower().endswith("acl") and _PUBLIC_LIST.fullmatch(text):
        yield Unidentified(text, _INTERNET)
    if name in MEMBERS or may_be_entity(token, name):
        yield from _among_members(text, of_dataset=name == "domain" and "accesses" in value.path)


def _anywhere(text: str) -> Iterator[Unidentified]:
    """Members that no other text looks like."""
    sets = [member for member in _SET.findall(text) if not _KNOWN_SET.fullmatch(member) and not _EVERYONE.match(member)]
    sets += [member for member in _PRINCIPAL.findall(text) if not _is_one(member)]
    for members, says in (
        (_EVERYONE.findall(text), _INTERNET),
        (sets, _WHOLE),
        (_PROJECT.findall(text), _EDITORS),
        (_SHARED.findall(text), _SHARED_SAYS),
    ):
        for member in dict.fromkeys(members):
            yield Unidentified(member, says)


def _is_one(principal: str) -> bool:
    """Whether a principal is one identity: no pattern, and no subject that jobs of many repositories have."""
    subject = _SUBJECT.fullmatch(principal)
    return "*" not in principal and (subject is None or subject_names_repository(subject[1]))


def _among_members(text: str, *, of_dataset: bool) -> Iterator[Unidentified]:
    """Members that are such only where members stand."""
    entity = _ENTITY.fullmatch(text)
    if entity and "@" in entity[1] and SHARED_ACCOUNT.fullmatch(entity[1]):
        yield Unidentified(text, _SHARED_SAYS)
    if _DOMAIN.fullmatch(text) or (of_dataset and text):
        yield Unidentified(text, _DOMAIN_SAYS)
    if _PROJECT_LIST.fullmatch(text):
        yield Unidentified(text, _EDITORS)


def may_be_entity(token: str, name: str) -> bool:
    """Whether an input is the member of an access list of Cloud Storage."""
    return name == "entity" and ":storage/" in token
