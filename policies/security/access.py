"""Who may call, and as whom a server runs: nobody unknown, and an account of its own. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from bezel.planner.base.problems import NOT_SET, Problem, shown
from policies.anywhere import describes_only, values
from policies.hardware import INSTANCE, SERVICE, TPU_VM, hardware_of
from policies.inputs import UNKNOWN, not_known
from policies.leases import Lease

if TYPE_CHECKING:
    from policies.anywhere import Value
    from policies.config import PolicyConfig
    from policies.inputs import Inputs

_GOOGLE = ("gcp:", "google-native:")
# IAM's words for everybody, and Kubernetes'.
_EVERYONE = re.compile(
    r"(?<![\w.-])(?:allUsers|allAuthenticatedUsers|principalSet://goog/public:all"
    r"|system:(?:anonymous|authenticated|unauthenticated))(?![\w.-])",
    re.IGNORECASE,
)
# Ready-made lists of Cloud Storage that hold everybody.
_PUBLIC_LIST = re.compile(r"public-?read(?:-?write)?|authenticated-?read", re.IGNORECASE)
# Inputs that open what they are set on, without a member.
_SWITCH = re.compile(r"^invokerIamDisabled$|^(?:allow|enable)\w*(?:PublicAccess|Unauthenticated|SystemAuthenticated)$")
_ANNOTATION = "run.googleapis.com/invoker-iam-disabled"
"""The same of the older API of Cloud Run, which has its switches among the annotations."""
# Below these, everybody is who gets nothing.
_REFUSED_TO = frozenset({"deniedPrincipals", "excludedPrincipals", "publicAccessPrevention"})
_MEMBERS = frozenset(
    {"defaultAcl", "iamMember", "member", "members", "policyData", "predefinedAcl", "roleEntities", "specialGroup"}
)
# Accounts that Google makes by itself, with rights over the whole project or with an owner that is not this stack.
_SHARED_ACCOUNT = re.compile(r"(\d+-compute@developer|.*@appspot|.*@cloudservices)\.gserviceaccount\.com|default")
RUN_JOB = "gcp:cloudrunv2/job:Job"
WORKER_POOL = "gcp:cloudrunv2/workerPool:WorkerPool"
_ACCOUNTS = {
    SERVICE: ("template", "serviceAccount"),
    WORKER_POOL: ("template", "serviceAccount"),
    RUN_JOB: ("template", "template", "serviceAccount"),
    INSTANCE: ("serviceAccount", "email"),
    TPU_VM: ("serviceAccount", "email"),
}


def no_public_invoker(token: str, inputs: Inputs, _config: PolicyConfig) -> Iterator[Problem]:
    """No grant to everybody, on whatever resource and by whatever input, and no service that asks for no grant."""
    if describes_only(token):
        return
    for value in values(inputs.values):
        yield from _granted(token, value)
    for value in values(inputs.values, about=True):
        if value.path[-1:] == (_ANNOTATION,) and str(value.value).lower() == "true":
            yield _open(value)
    if "iam" in token.lower() and not inputs.is_unknown("policyData"):
        yield from _unreadable(inputs)


def _granted(token: str, value: Value) -> Iterator[Problem]:
    """What one input grants to everybody, or may grant."""
    held = value.value
    if held is UNKNOWN:
        if _SWITCH.search(value.name) or _may_grant(token, value.name):
            yield not_known(value.key)
    elif _SWITCH.search(value.name) and str(held).lower() == "true":
        yield _open(value)
    elif isinstance(held, str) and not _REFUSED_TO & set(value.path):
        public = value.name.lower().endswith("acl") and _PUBLIC_LIST.fullmatch(held)
        for everyone in [held] if public else dict.fromkeys(_EVERYONE.findall(held)):
            yield Problem(
                value.key,
                everyone,
                "it grants the role to everybody on the internet, since anybody can have a Google account.",
                "name the callers in `bezel:access.invokers`, and set no `bezel:access.public`; of a bucket or an "
                "object grant it to the accounts that read it.",
            )


def _open(value: Value) -> Problem:
    return Problem(
        value.key,
        "true",
        "nobody is asked for an identity: the whole internet may use what stands behind it, at your cost.",
        "leave it out, and name the callers in `bezel:access.invokers`.",
    )


def _may_grant(token: str, name: str) -> bool:
    """Whether an input that a preview cannot know may name a member."""
    return token.startswith(_GOOGLE) and (name in _MEMBERS or (name == "entity" and ":storage/" in token))


def _unreadable(inputs: Inputs) -> Iterator[Problem]:
    """A policy in one text is read as JSON; what is none is refused."""
    policy = inputs.text("policyData")
    try:
        readable = policy is None or isinstance(json.loads(policy), Mapping)
    except (ValueError, RecursionError):
        readable = False
    if not readable:
        why = "it is no IAM policy that could be read."
        yield Problem(inputs.key("policyData"), "(text)", why, "write the policy as JSON.")


def own_service_account(token: str, inputs: Inputs, _config: PolicyConfig) -> Iterator[Problem]:
    """What runs code runs as an account that somebody made for it."""
    places = []
    if token in _ACCOUNTS:
        places = [(inputs, _ACCOUNTS[token])]
    elif isinstance(hardware := hardware_of(token, inputs), Lease):
        places = [account for node in hardware.nodes for account in _accounts(node.inputs)]
    for place, path in places:
        account = place.text(*path)
        if account is None or _SHARED_ACCOUNT.fullmatch(account):
            yield Problem(
                place.key(*path),
                shown(account) if account else NOT_SET,
                "it runs as an account that others share, by default one that may edit the whole project.",
                "make a service account for it (RuntimeIdentity does) and name its address here.",
            )


def _accounts(machine: Inputs) -> list[tuple[Inputs, tuple[str, ...]]]:
    """Where the accounts of a leased machine stand: one of a node, a list in the request for an instance."""
    listed = machine.each("serviceAccounts")
    return [(entry, ("email",)) for entry in listed] or [(machine, ("serviceAccount", "email"))]
