"""Permissions that errors of an engine's run name as denied, each with the missing role.

A permission that Google denies is named with the role of the set-up (`bezel.foundation.permissions`) that holds it, and
the command that grants it. Pure but for `account_of`. Leaves out which diagnostics are errors (`reader`), and
which of them say the same (`bezel.engine.run.texts`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from bezel.foundation import permissions
from bezel.planner.team.series_labels import SECRETS_OF_STACKS
from bezel_base.errors import Problem
from bezel_base.json_documents import read_json
from bezel_base.text.shell import shell_word

_PERMISSION = r"[a-z][A-Za-z]*(?:\.[A-Za-z]+)+"
_PLACE = r"service account [^'\s]+|[^'\s(]+"
# As IAM, Compute Engine, and Cloud Storage say it.
_DENIED = tuple(
    re.compile(form)
    for form in (
        rf"Permission '?(?P<name>{_PERMISSION})'? denied (?:on|for) (?!resource \()(?:resource )?'?(?P<on>{_PLACE})",
        rf"Required '(?P<name>{_PERMISSION})' permission for '(?P<on>[^']+)'",
        rf"does not have (?P<name>{_PERMISSION}) access to (?P<on>the Google Cloud Storage \w+)",
    )
)
_IMPERSONATED = re.compile(r"/serviceAccounts/([^/:]+):generateAccessToken$")
_BUCKETS = "--weights-bucket"
# Roles of the set-up that hold for what its options name only.
_NAMED_BY = {
    permissions.PREVIEW_WEIGHTS: _BUCKETS,
    permissions.DEPLOY_WEIGHTS: _BUCKETS,
    permissions.DEPLOY_SECRETS: "--secret",
    **dict.fromkeys(permissions.OF_DOMAINS, "--domain"),
}


def missing_roles(texts: Iterable[str], account: str) -> list[str]:
    """A problem for each permission that errors name as denied: who lacks it on what, and the role that holds it.

    Args:
        texts: The errors.
        account: E-mail of the account that the run had; "" where it is unknown.
    """
    denials = dict.fromkeys(denied for text in texts for denied in _denied_permissions(text))
    return [str(_problem(name, place, account)) for name, place in denials]


def account_of(environ: Mapping[str, str]) -> str:
    """E-mail of the account that the environment's credentials are of; "" where they do not say."""
    if impersonated := environ.get("GOOGLE_IMPERSONATE_SERVICE_ACCOUNT", ""):
        return impersonated
    try:
        content = read_json(Path(environ["GOOGLE_APPLICATION_CREDENTIALS"]).read_text(encoding="utf-8"))
    except (KeyError, OSError, ValueError):
        return ""
    if not isinstance(content, dict):
        return ""
    match = _IMPERSONATED.search(str(content.get("service_account_impersonation_url", "")))
    return match[1] if match else str(content.get("client_email", ""))


def _denied_permissions(text: str) -> Iterator[tuple[str, str]]:
    for form in _DENIED:
        for match in form.finditer(text):
            yield match["name"], match["on"].rstrip(".")


def _problem(name: str, place: str, account: str) -> Problem:
    consequence = f"{account or 'the account of this run'} lacks it on {place}, so the step was refused."
    holding = _holding(name, account, of_stack_secret=f"/secrets/{SECRETS_OF_STACKS}" in place)
    if not holding:
        repair = (
            "no role of `bezel init` holds it: what the stack declares needs more. Grant a role of your own with it, "
            "or remove what needs it."
        )
        return Problem(name, None, consequence, repair)
    limited = (*permissions.LIMITED, *permissions.OF_STACK_SECRETS)
    role = next((item for item in holding if item in limited), holding[0])
    listed = " or ".join(item.id for item in holding)
    if option := _NAMED_BY.get(role):
        repair = f"the role {listed} holds it, for what `bezel init` names: run it again with {option} NAME"
        repair += ", for every bucket, a door's too." if option == _BUCKETS else "."
    elif role in limited:
        unlimited = "grant any role" if role in permissions.LIMITED else "read any secret"
        repair = (
            f"the role {listed} holds it, limited by a condition: run `bezel init` again, which grants it with that. "
            f"Without the condition the account could {unlimited}."
        )
    else:
        member = f"serviceAccount:{account or 'ACCOUNT'}"
        command = f"gcloud projects add-iam-policy-binding PROJECT --member={shell_word(member)}"
        repair = f"the role {listed} holds it; grant it again: `{command} --role=projects/PROJECT/roles/{role.id}`."
    return Problem(name, None, consequence, repair)


def _holding(name: str, account: str, *, of_stack_secret: bool) -> list[permissions.CustomRole]:
    """The roles of the set-up with a permission; only those that are for the account where it is of the set-up.

    Args:
        name: Name of the permission.
        account: E-mail of the account that lacks it.
        of_stack_secret: Whether it lacks it on a secret that a stack makes for itself.
    """
    # Cloud Run writes iam.serviceaccounts.actAs.
    roles = [role for role in permissions.ROLES if name.lower() in map(str.lower, role.permissions)]
    on_secrets = [role for role in roles if role in permissions.OF_STACK_SECRETS]
    roles = on_secrets if of_stack_secret and on_secrets else [role for role in roles if role not in on_secrets]
    reads = [role for role in permissions.ROLES if role.id.startswith(permissions.PREVIEW.id)]
    user = account.partition("@")[0]
    if user not in (permissions.PREVIEW_ACCOUNT, permissions.DEPLOY_ACCOUNT):
        return roles
    return [role for role in roles if (role in reads) is (user == permissions.PREVIEW_ACCOUNT)]
