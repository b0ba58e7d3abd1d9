"""Conditions of workload identity pools: whether a provider lets in the jobs of one repository only. Pure.

A forge that serves everybody signs tokens for every repository of the world, so a provider without a condition lets all
of them in. The condition is an expression of CEL. It counts if, whatever else holds, a claim that names the repository
has a value that stands in the expression: by `==`, `in [...]` or `startsWith` up to the end of the repository's name.
Source of the claims: the documents on OpenID Connect of GitHub, GitLab, Bitbucket, CircleCI, Buildkite and Terraform.
"""

import re
from collections.abc import Iterator, Mapping

from bezel.errors import NOT_SET, Problem
from bezel.resource_cost.inputs import Inputs

PROVIDER = "gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider"
_LONGEST, _DEEPEST = 4096, 32  # Google takes 4096 characters
_CLAIMS = (
    r"repository|repository_id|job_workflow_ref|workflow_ref|sub|project_path|project_id|ci_config_ref_uri"
    r"|repositoryUuid|terraform_workspace_id|terraform_project_id|pipeline_slug|pipeline_id|vcs_origin"
)
_TEXT = r"""(?:'[^'*\\]+'|"[^"*\\]+")"""
_CLAIM = (
    rf"(?:(?P<holder>assertion|attribute)(?:\.(?P<dotted>{_CLAIMS})|\[(?P<quote>['\"])(?P<keyed>{_CLAIMS})(?P=quote)\])"
    r"|(?P<subject>google\.subject))"
)
_EQUAL = re.compile(rf"\s*(?:{_CLAIM}\s*==\s*{_TEXT})\s*")
_TURNED = re.compile(rf"\s*(?:{_TEXT}\s*==\s*{_CLAIM})\s*")
_ONE_OF = re.compile(rf"\s*{_CLAIM}\s+in\s+\[\s*{_TEXT}(?:\s*,\s*{_TEXT})*\s*,?\s*\]\s*")
# Whole names alone: `startsWith('acme/shop')` also lets in `acme/shop-fork`.
_BEGINS = re.compile(rf"\s*{_CLAIM}\.startsWith\(\s*['\"][^'\"*\\]*[\w.-]+/[\w.-]+[:/@][^'\"*\\]*['\"]\s*\)\s*")
_TOKEN = re.compile(r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\|\||&&|[()\[\]{}]|.""", re.DOTALL)


def unpinned_provider(inputs: Inputs) -> Iterator[Problem]:
    """The problem of a pool's provider that lets in more than one repository."""
    if inputs.get("oidc") is None:
        return  # an account of AWS, or an identity provider of one's own by SAML or X.509
    condition = inputs.text("attributeCondition")
    if condition is None or not is_pinned(condition, _mapping(inputs)):
        yield Problem(
            inputs.key("attributeCondition"),
            condition or NOT_SET,
            "a token of any repository of this forge becomes an identity of the pool.",
            "compare a claim that names the repository with a text, e.g. `assertion.repository_id == '123456789'`; "
            "join other conditions by `&&`.",
        )


def _mapping(inputs: Inputs) -> dict[str, str]:
    held = inputs.get("attributeMapping")
    return {str(name): str(value).strip() for name, value in held.items()} if isinstance(held, Mapping) else {}


def is_pinned(condition: str, mapping: Mapping[str, str], depth: int = 0) -> bool:
    """Whether an expression holds for tokens of repositories only that stand in it.

    Args:
        condition: of the provider.
        mapping: attribute -> expression, which says what `attribute.NAME` is.
        depth: of the brackets around it.
    """
    if len(condition) > _LONGEST or depth > _DEEPEST:
        return False
    for operator, enough in (("||", all), ("&&", any)):
        parts = _split(condition, operator)
        if parts is None:
            return False
        if len(parts) > 1:
            return enough(is_pinned(part, mapping, depth + 1) for part in parts)
    inner = condition.strip()
    if inner.startswith("(") and inner.endswith(")"):
        return is_pinned(inner[1:-1], mapping, depth + 1)
    return any(_of_claim(found, mapping) for form in _FORMS if (found := form.fullmatch(condition)))


_FORMS = (_EQUAL, _TURNED, _ONE_OF, _BEGINS)


def _of_claim(found: re.Match[str], mapping: Mapping[str, str]) -> bool:
    """Whether the compared name is the token's own claim, or an attribute that is mapped to it."""
    if found["subject"]:
        return mapping.get("google.subject") == "assertion.sub"
    name = found["dotted"] or found["keyed"]
    return found["holder"] == "assertion" or mapping.get(f"attribute.{name}") == f"assertion.{name}"


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
