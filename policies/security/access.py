"""Who may call, and as whom a server runs: nobody unknown, and an account of its own. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from bezel.planner.problems import NOT_SET, Problem, shown
from policies.hardware import GOOGLE, INSTANCE, SERVICE, TPU_VM, hardware_of
from policies.leases import Lease

if TYPE_CHECKING:
    from policies.config import PolicyConfig
    from policies.inputs import Inputs

EVERYONE = frozenset({"allUsers", "allAuthenticatedUsers"})
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
    """No grant to everybody, on whatever resource, and no service that asks for no grant."""
    if not token.startswith(GOOGLE):
        return
    if inputs.get("invokerIamDisabled") is True:
        yield Problem(
            inputs.key("invokerIamDisabled"),
            "true",
            "Cloud Run then asks nobody for an identity: the whole internet may use the accelerator at your cost.",
            "leave it out, and name the callers in `bezel:access.invokers`.",
        )
    if "iam" not in token.lower():
        return
    for key, member in _members(inputs):
        if member in EVERYONE:
            yield Problem(
                key,
                member,
                "it grants the role to everybody on the internet, since anybody can have a Google account.",
                "name the callers in `bezel:access.invokers`, and set no `bezel:access.public`.",
            )


def _members(inputs: Inputs) -> Iterator[tuple[str, str]]:
    if member := inputs.text("member"):
        yield inputs.key("member"), member
    for entry in inputs.each("members"):
        yield entry.key(), entry.text() or ""
    policy = inputs.text("policyData")
    if policy is None:
        return
    try:
        document = json.loads(policy)
        bindings = document.get("bindings", []) if isinstance(document, Mapping) else []
        for binding in bindings:
            for member in binding.get("members", []):
                yield inputs.key("policyData"), str(member)
    except (ValueError, AttributeError):
        refused = "it is no IAM policy that could be read."
        raise inputs.refusal("(text)", refused, "write the policy as JSON.", "policyData") from None


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
