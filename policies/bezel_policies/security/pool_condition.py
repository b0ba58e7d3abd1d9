"""Conditions of identity pools: whether a provider lets in the jobs of one repository only. Pure.

A forge that serves everybody signs tokens for every repository of the world, so a provider without a condition lets all
of them in. The condition is an expression of CEL. It counts if, whatever else holds, a claim that names the repository
has a value that stands in the expression: by `==`, `in [...]` or `startsWith` up to the end of the repository's name.
A reusable workflow can be called from everywhere, and a pipeline's short name is anybody's: they count with the owner.
Source of the claims: the documents on OpenID Connect of GitHub, GitLab, Bitbucket, CircleCI, Buildkite and Terraform.
"""

import re
from collections.abc import Iterator, Mapping

from bezel.resource_cost.inputs import Inputs
from bezel.resource_cost.nested_values import mappings
from bezel_base.errors import NOT_SET, Problem

_PROVIDERS = re.compile(r"(?:gcp|google-native):iam/.*Provider|.*:(?:IAM)?Work(?:loadIdentity|force)PoolProvider")
# Issuers of a workforce pool that know everybody; others are an organization's own.
_PUBLIC_ISSUER = re.compile(
    r"(?:https?://)?(?:accounts\.google\.com|login\.microsoftonline\.com/(?:common|organizations|consumers"
    r"|9188040d-6c67-4c5b-b112-36a304b66dad)|login\.live\.com|appleid\.apple\.com|(?:www\.)?facebook\.com"
    r"|www\.linkedin\.com|token\.actions\.githubusercontent\.com|gitlab\.com|(?:api\.)?bitbucket\.org"
    r"|oidc\.circleci\.com|agent\.buildkite\.com|app\.terraform\.io|slack\.com|id\.twitch\.tv)(?:/.*)?",
    re.IGNORECASE,
)
_LONGEST, _DEEPEST = 4096, 32  # Google takes 4096 characters
PINNING = (
    "repository", "repository_id", "workflow_ref", "sub", "project_path", "project_id", "ci_config_ref_uri",
    "repositoryUuid", "terraform_workspace_id", "terraform_project_id", "pipeline_id", "vcs_origin",
)  # fmt: skip
"""Claims of a token that name one repository, or what only one repository has."""
_SHARED = frozenset({"job_workflow_ref", "pipeline_slug"})
_OWNERS = frozenset({"repository_owner", "repository_owner_id", "organization_slug", "organization_id"})
# Of an organization's people, in a workforce pool.
_OF_PEOPLE = frozenset({"hd", "tid", "email", "oid"})
_CIRCLE = r"oidc\.circleci\.com/(?:project-id|vcs-origin)"
_CLAIMS = "|".join((*PINNING, *sorted(_SHARED | _OWNERS | _OF_PEOPLE)))
_TEXT = r"""(?:'[^'*\\]+'|"[^"*\\]+")"""
_CLAIM = (
    rf"(?:(?P<holder>assertion|attribute)"
    rf"(?:\.(?P<dotted>{_CLAIMS})|\[(?P<quote>['\"])(?P<keyed>{_CLAIMS}|{_CIRCLE})(?P=quote)\])"
    r"|(?P<subject>google\.subject))"
)
_EQUAL = re.compile(rf"\s*{_CLAIM}\s*==\s*(?P<texts>{_TEXT})\s*")
_TURNED = re.compile(rf"\s*(?P<texts>{_TEXT})\s*==\s*{_CLAIM}\s*")
_ONE_OF = re.compile(rf"\s*{_CLAIM}\s+in\s+\[\s*(?P<texts>{_TEXT}(?:\s*,\s*{_TEXT})*)\s*,?\s*\]\s*")
_BEGINS = re.compile(rf"\s*{_CLAIM}\.startsWith\(\s*(?P<texts>{_TEXT})\s*\)\s*")
# How a text begins that names a whole repository: `startsWith('acme/shop')` also lets in `acme/shop-fork`.
_REPOSITORY = r"[\w.-]+/[\w.-]+"
_SUBJECT_BEGINS = re.compile(
    rf"(?:repo|repository):{_REPOSITORY}:|workflow_ref:{_REPOSITORY}/|(?:repository|project)_id:\d+:"
    rf"|project_path:{_REPOSITORY}(?:/[\w.-]+)*:|org/[^/:]+/project/[^/:]+/|\{{[\da-f-]+\}}:"
    r"|organization:[^:]+:(?:pipeline|project):[^:]+:"
)
_WORKFLOW_BEGINS = re.compile(rf"{_REPOSITORY}/")
_FILE_BEGINS = re.compile(rf"[\w.-]+/{_REPOSITORY}(?:/[\w.-]+)*//")
_BEGINNINGS = {
    "sub": _SUBJECT_BEGINS,
    "workflow_ref": _WORKFLOW_BEGINS,
    "job_workflow_ref": _WORKFLOW_BEGINS,
    "ci_config_ref_uri": _FILE_BEGINS,
}
# Subjects that a forge writes as `NAME:VALUE:NAME:VALUE`, and names among them that are a repository's.
_WRITTEN_SUBJECT = re.compile(
    r"(?:actor|base_ref|enterprise|environment|event_name|head_ref|job_workflow|organization|ref|repo|repository|run"
    r"|runner|sha|workflow|project|namespace|user|pull_request|context|iss|aud)(?:_\w+)?:.*"
)
_NAMES_REPOSITORY = re.compile(
    rf"(?:.*:)?(?:(?:repo|repository):{_REPOSITORY}|workflow_ref:{_REPOSITORY}/.*|project_path:{_REPOSITORY}.*"
    r"|(?:repository|project)_id:\d+)(?::.*)?|organization:[^:]+:(?:pipeline|project):[^:]+(?::.*)?"
)
_ONE, _OF_ANYBODY, _OWNER, _ORGANIZATION = "repository", "workflow", "owner", "organization"
_ANY = "accounts.google.com"
"""Stands for an issuer that is not known: it may be public."""
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\|\||&&|[()\[\]{}]|.""", re.DOTALL)


def unpinned_providers(token: str, inputs: Inputs) -> Iterator[Problem]:
    """The problems of pools' providers that let in more than one repository, or everybody whom a public issuer knows.

    A provider is known by its type, and inside of a resource of another type by its issuer, e.g. in a request's body.
    """
    for path, mapping in mappings(inputs.values):
        provider = Inputs(mapping, path)
        named = _PROVIDERS.fullmatch(token) is not None
        if not (named or _issuer(mapping)) or (provider.is_unknown("oidc") and not named):
            continue
        if not provider.is_unknown("oidc") and provider.get("oidc") is None:
            continue  # an account of AWS, or an identity provider of one's own by SAML or X.509
        people = any("workforce" in name.lower() for name in (token, *map(str, mapping)))
        if people and _PUBLIC_ISSUER.fullmatch(_issuer(mapping) or _ANY) is None:
            continue
        condition = provider.text("attributeCondition")
        if condition is None or not is_pinned(condition, _mapping(provider), of_people=people):
            yield _unpinned_problem(provider.key("attributeCondition"), condition, of_people=people)


def _unpinned_problem(key: str, condition: str | None, *, of_people: bool) -> Problem:
    if of_people:
        return Problem(
            key,
            condition or NOT_SET,
            "this issuer knows people of every organization, and each of them becomes an identity of the pool.",
            "compare a claim that names the organization with a text, e.g. `assertion.hd == 'example.com'`; "
            "join other conditions by `&&`.",
        )
    return Problem(
        key,
        condition or NOT_SET,
        "a token of any repository of this forge becomes an identity of the pool.",
        "compare a claim that names the repository with a text, e.g. `assertion.repository_id == '123456789'`; "
        "join other conditions by `&&`.",
    )


def _issuer(provider: Mapping[str, object]) -> str | None:
    """The issuer of a provider by OpenID Connect, a public one for one that is not known yet; None without one."""
    oidc = Inputs(provider.get("oidc"))
    issuer = _ANY if oidc.is_unknown("issuerUri") else oidc.get("issuerUri")
    return issuer.strip() if isinstance(issuer, str) else None


def _mapping(inputs: Inputs) -> dict[str, str]:
    attributes = inputs.get("attributeMapping")
    return (
        {str(name): str(value).strip() for name, value in attributes.items()} if isinstance(attributes, Mapping) else {}
    )


def is_pinned(condition: str, mapping: Mapping[str, str], *, of_people: bool = False) -> bool:
    """Whether an expression holds for tokens only of repositories, or of people's organizations, that stand in it.

    Args:
        condition: of the provider.
        mapping: attribute -> expression, which says what `attribute.NAME` is.
        of_people: the provider is a workforce pool's, whose tokens also name an organization.
    """
    pinned = _pinned_claims(condition, mapping, 0)
    return _ONE in pinned or (of_people and _ORGANIZATION in pinned)


def _pinned_claims(condition: str, mapping: Mapping[str, str], depth: int) -> frozenset[str]:
    """What has a value that stands in an expression, whenever the expression holds."""
    if len(condition) > _LONGEST or depth > _DEEPEST:
        return frozenset()
    for operator in ("||", "&&"):
        parts = _split(condition, operator)
        if parts is None:
            return frozenset()
        if len(parts) > 1:
            each = [_pinned_claims(part, mapping, depth + 1) for part in parts]
            if operator == "||":
                return frozenset.intersection(*each)
            together = frozenset.union(*each)
            return together | {_ONE} if {_OF_ANYBODY, _OWNER} <= together else together
    inner = condition.strip()
    if inner.startswith("(") and inner.endswith(")"):
        return _pinned_claims(inner[1:-1], mapping, depth + 1)
    for form in (_EQUAL, _TURNED, _ONE_OF, _BEGINS):
        if match := form.fullmatch(condition):
            texts = [text[1:-1] for text in re.findall(_TEXT, match["texts"])]
            return _of_claim(_claim(match, mapping), texts, begin=form is _BEGINS)
    return frozenset()


def _claim(match: re.Match[str], mapping: Mapping[str, str]) -> str | None:
    """The token's claim that is compared; None where an attribute is not mapped to the claim of its name."""
    if match["subject"]:
        return "sub" if mapping.get("google.subject") == "assertion.sub" else None
    name = match["dotted"] or match["keyed"]
    return name if match["holder"] == "assertion" or mapping.get(f"attribute.{name}") == f"assertion.{name}" else None


def _of_claim(claim: str | None, texts: list[str], *, begin: bool) -> frozenset[str]:
    """What a claim names that has one of these texts, or begins with it."""
    if claim is None:
        return frozenset()
    if begin and not (claim in _BEGINNINGS and all(map(_BEGINNINGS[claim].match, texts))):
        return frozenset()
    if claim == "sub" and not all(map(subject_names_repository, texts)):
        return frozenset()
    if claim in _SHARED:
        return frozenset({_OF_ANYBODY})
    if claim in _OWNERS:
        return frozenset({_OWNER})
    return frozenset({_ORGANIZATION if claim in _OF_PEOPLE else _ONE})


def subject_names_repository(subject: str) -> bool:
    """Whether a token's subject is of one repository, or of one identity that no forge writes."""
    return not _WRITTEN_SUBJECT.fullmatch(subject) or _NAMES_REPOSITORY.fullmatch(subject) is not None


def _split(expression: str, operator: str) -> list[str] | None:
    """Parts between an operator outside of brackets and texts; None where brackets do not match."""
    parts, level = [""], 0
    for word in _TOKEN.findall(expression):
        level += (word in "([{") - (word in ")]}")
        if level < 0:
            return None
        if word == operator and level == 0:
            parts.append("")
        else:
            parts[-1] += word
    return parts if level == 0 else None
