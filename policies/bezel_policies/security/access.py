"""Rules of access: no public callers, and a dedicated service account for each server. Pure."""

import json
import re
from collections.abc import Iterator, Mapping

from bezel.resource_cost.hardware import INSTANCE, SERVICE, TPU_VM, hardware_of
from bezel.resource_cost.inputs import UNKNOWN, Inputs, camel, not_known, switch_value
from bezel.resource_cost.nested_values import Value, describes_only, values
from bezel.resource_cost.prices.leases import Lease
from bezel.resource_cost.requests.scheduled import JOB
from bezel_base.errors import NOT_SET, Problem
from bezel_policies.config import PolicyConfig
from bezel_policies.security.door import door_flaw, is_meant_as_door
from bezel_policies.security.identities import MEMBERS, SHARED_ACCOUNT, may_be_entity, unidentified_members
from bezel_policies.security.pool_condition import unpinned_providers

_GOOGLE = ("gcp:", "google-native:")
# Inputs that open a resource to everyone without a member.
_SWITCH = re.compile(r"^invokerIamDisabled$|^(?:allow|enable)\w*(?:PublicAccess|Unauthenticated|SystemAuthenticated)$")
_DOOR_SWITCH = "invokerIamDisabled"
_ANNOTATION = "run.googleapis.com/invoker-iam-disabled"
"""The same switch in Cloud Run's older API, which has it among the annotations."""
# Inputs that deny: a public member below them is harmless.
_REFUSED_TO = frozenset({"deniedPrincipals", "excludedPrincipals", "publicAccessPrevention"})
RUN_JOB = "gcp:cloudrunv2/job:Job"
SCHEDULED = JOB
WORKER_POOL = "gcp:cloudrunv2/workerPool:WorkerPool"
_ACCOUNTS = {
    SERVICE: ("template", "serviceAccount"),
    WORKER_POOL: ("template", "serviceAccount"),
    RUN_JOB: ("template", "template", "serviceAccount"),
    INSTANCE: ("serviceAccount", "email"),
    TPU_VM: ("serviceAccount", "email"),
}


def no_public_invoker(token: str, inputs: Inputs, _config: PolicyConfig) -> Iterator[Problem]:
    """Only known identities may call a service or read a bucket.

    Refuses grants to everyone, to whole sets of identities and to shared accounts, on any resource and by any input,
    services that need no grant, and pools that let in every repository of a forge. A door of keys needs none: it is
    judged by what it runs.
    """
    if describes_only(token):
        return
    yield from unpinned_providers(token, inputs)
    is_door = is_meant_as_door(token, inputs)
    for value in values(inputs.values):
        if is_door and value.path == (_DOOR_SWITCH,):
            yield from _open_door(value, inputs)
        else:
            yield from _grants_to_everyone(token, value)
    for value in values(inputs.values, about=True):
        if value.path[-1:] == (_ANNOTATION,) and switch_value(value.value):
            yield _open(value)
    if "iam" in token.lower() and not inputs.is_unknown("policyData"):
        yield from _unreadable(inputs)


def _grants_to_everyone(token: str, value: Value) -> Iterator[Problem]:
    """Grants to everyone by one input, also possible ones."""
    item, name = value.value, camel(value.name)
    if item is UNKNOWN:
        if _SWITCH.search(name) or _may_grant(token, name):
            yield not_known(value.key)
    elif _SWITCH.search(name) and switch_value(item):
        yield _open(value)
    elif isinstance(item, str) and _REFUSED_TO.isdisjoint(map(camel, value.path)):
        for member, says in unidentified_members(token, value):
            yield Problem(
                value.key,
                member,
                says,
                "list the callers in `bezel:access.invokers`, without `bezel:access.public`; on a bucket or an object "
                "grant it to the accounts that read it.",
            )


def _open(value: Value) -> Problem:
    return Problem(
        value.key,
        "true",
        "callers need no identity: the whole internet may use the service, at your cost.",
        "omit it, and list the callers in `bezel:access.invokers`.",
    )


def _open_door(value: Value, inputs: Inputs) -> Iterator[Problem]:
    """Refuse the switch of a door that is not the shipped one."""
    if value.value is UNKNOWN:
        yield not_known(value.key)
    elif switch_value(value.value) and (flaw := door_flaw(inputs)):
        yield Problem(
            value.key,
            "true",
            f"callers need no identity, and nothing says that they need a key: {flaw}.",
            "make the door with KeyDoor, by the version of Bezel that this pack has, or list the callers in "
            "`bezel:access.invokers` without `bezel:access.keys`.",
        )


def _may_grant(token: str, name: str) -> bool:
    """Whether an input that a preview cannot know may name a member."""
    return token.startswith(_GOOGLE) and ((name in MEMBERS and name != "domain") or may_be_entity(token, name))


def _unreadable(inputs: Inputs) -> Iterator[Problem]:
    """Refuse a policy document that is no JSON and cannot be checked."""
    policy = inputs.text("policyData")
    try:
        readable = policy is None or isinstance(json.loads(policy), Mapping)
    except (ValueError, RecursionError):
        readable = False
    if not readable:
        yield Problem(inputs.key("policyData"), "(text)", "expected an IAM policy.", "write the policy as JSON.")


def own_service_account(token: str, inputs: Inputs, _config: PolicyConfig) -> Iterator[Problem]:
    """Each resource that runs code, or sends requests by a schedule, has a service account of its own."""
    places: list[tuple[Inputs, tuple[str, ...]]] = []
    if token in _ACCOUNTS:
        places = [(inputs, _ACCOUNTS[token])]
    elif token == SCHEDULED:
        tokens = [("httpTarget", kind) for kind in ("oauthToken", "oidcToken")]
        places = [(inputs, (*path, "serviceAccountEmail")) for path in tokens if inputs.get(*path) is not None]
    if isinstance(hardware := hardware_of(token, inputs), Lease) and token not in _ACCOUNTS:
        places += [account for node in hardware.nodes for account in _accounts(node.inputs)]
    for place, path in places:
        account = place.text(*path)
        if account is None or SHARED_ACCOUNT.fullmatch(account):
            yield Problem(
                place.key(*path),
                account or NOT_SET,
                "it runs as a shared account, by default one that may edit the whole project.",
                "create a service account for it (RuntimeIdentity does), and set its address here.",
            )


def _accounts(machine: Inputs) -> list[tuple[Inputs, tuple[str, ...]]]:
    """Inputs of a leased machine's accounts: one for a node, a list in the request for an instance."""
    listed = machine.each("serviceAccounts")
    return [(entry, ("email",)) for entry in listed] or [(machine, ("serviceAccount", "email"))]
