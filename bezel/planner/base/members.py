"""IAM members: the forms in which Google accepts callers of a service.

Pure. Leaves the existence of an account to Google, and everyone (`allUsers`) to `access.public`. Source: IAM,
"Principal identifiers" (v1 forms: user, group, serviceAccount, domain, principal, principalSet).
"""

from __future__ import annotations

import re

_DOMAIN = r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])"
EMAIL = re.compile(rf"(?=.{{1,254}}\Z)[A-Za-z0-9._%+'-]{{1,64}}@{_DOMAIN}", re.IGNORECASE)
# In a project's own domain 6 to 30 characters, a letter first (IAM, projects.serviceAccounts.create: accountId); Google
# names those in its other domains, e.g. PROJECT@appspot.gserviceaccount.com.
SERVICE_ACCOUNT = re.compile(
    r"[a-z][a-z0-9-]{4,28}[a-z0-9]@[a-z0-9.-]+\.iam\.gserviceaccount\.com"
    r"|[a-z0-9][a-z0-9-]{0,62}@(?!(?:[a-z0-9.-]+\.)?iam\.)(?:[a-z0-9.-]+\.)?gserviceaccount\.com"
)
_OF_ACCOUNTS = "gserviceaccount.com"
"""End of the address of every service account."""
_KUBERNETES = r"[a-z][a-z0-9-]+\.svc\.id\.goog\[[a-z0-9.-]+/[a-z0-9.-]+\]"
_POOL = r"//iam\.googleapis\.com/(?:projects/\d+/)?(?:locations/\S+|[\w/.-]+/\S+)"

_FORMS = {
    "user": (EMAIL, "user:NAME@DOMAIN"),
    "group": (EMAIL, "group:NAME@DOMAIN"),
    "serviceAccount": (
        re.compile(f"(?:{SERVICE_ACCOUNT.pattern}|{_KUBERNETES})"),
        "serviceAccount:NAME@PROJECT.iam.gserviceaccount.com",
    ),
    "domain": (re.compile(_DOMAIN, re.IGNORECASE), "domain:example.com"),
    "principal": (re.compile(_POOL), "principal://iam.googleapis.com/.../subject/SUBJECT"),
    "principalSet": (re.compile(_POOL), "principalSet://iam.googleapis.com/.../group/GROUP"),
}


def member_problem(member: str) -> tuple[str, str] | None:
    """What is wrong with a member, and its repair; None where Google accepts its form.

    Args:
        member: E.g. `serviceAccount:app@acme.iam.gserviceaccount.com`.
    """
    kind, colon, name = member.partition(":")
    if not colon or kind not in _FORMS:
        forms = ", ".join(form for _, form in _FORMS.values())
        return "IAM refuses it: it is not a member.", f"write one of {forms}."
    pattern, form = _FORMS[kind]
    if not pattern.fullmatch(name):
        length = "; NAME has 6 to 30 characters" if name.endswith(f".iam.{_OF_ACCOUNTS}") else ""
        return f"IAM refuses it: the part after {kind}: is not valid.", f"write {form}{length}."
    if kind in {"user", "group"} and name.endswith(_OF_ACCOUNTS):
        return f"IAM refuses it: this is a service account, not a {kind}.", f"write serviceAccount:{name}."
    return None
