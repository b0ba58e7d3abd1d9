"""Resources that a program declares, as far as the health check compares the cloud with them.

A check in the middle of a deploy has no state to read, and what is declared after it counts too: a schedule's account
acts as the server's. So everything is noted from the first resource on, and passed on once the program has ended.
Leaves out the comparison (`bezel.outside_changes`).
"""

import re
from collections.abc import Mapping
from typing import Any

import pulumi

from bezel.outside_changes.declared import ACCOUNT, TYPES
from bezel_components.runtime_identity import service_account_email

# Inputs that say what is declared, by the engine's names. A service's others are passed on by the check itself.
_KEYS = frozenset(
    {"project", "location", "region", "name", "role", "member", "condition", "bucket", "secretId", "serviceAccountId",
     "repository", "repositoryId", "accountId", "email", "service", "entries", "zones", "back_end", "body",
     "uniformBucketLevelAccess", "publicAccessPrevention", "allows", "sourceRanges", "sourceTags",
     "sourceServiceAccounts", "router", "targetTags", "targetServiceAccounts", "direction", "disabled"}
)  # fmt: skip
_LETTER = re.compile(r"_([a-z])")
# Of a machine's request: with other hardware or attributes a deploy makes the machine anew, and its hardware is paid
# once, by the request itself.
_OF_MACHINES = frozenset(
    {"tpu", "nodeSpec", "node", "serviceAccount", "serviceAccounts", "email", "scope", "scopes", "tags", "items",
     "scheduling", "maxRunDuration", "seconds"}
)  # fmt: skip


class DeclaredResources:
    """The resources that a program declares from its making on."""

    def __init__(self) -> None:
        self._entries: list[list[Any]] = []
        pulumi.runtime.register_stack_transformation(self._note)

    def output(self) -> pulumi.Output[list[list[Any]]]:
        """Type and inputs of each resource, those too that are declared later."""

        async def all_of_them() -> list[list[Any]]:
            return list(self._entries)  # nothing awaited runs before the program has declared everything

        return pulumi.Output.from_input(all_of_them())

    def _note(self, args: pulumi.ResourceTransformationArgs) -> None:
        if args.type_ not in TYPES:
            return
        inputs = {_camel(key): value for key, value in dict(args.props).items()}
        kept = {key: _plain(value) for key, value in inputs.items() if key in _KEYS and value is not None}
        if args.type_ == ACCOUNT:
            kept["email"] = service_account_email(str(kept["accountId"]), str(kept["project"]))
        if isinstance(body := kept.get("body"), Mapping):
            kept["body"] = _of_machine(body)
        self._entries.append([args.type_, kept])


def _of_machine(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _of_machine(part) for key, part in value.items() if key in _OF_MACHINES}
    return [_of_machine(each) for each in value] if isinstance(value, list | tuple) else value


def _plain(value: Any) -> Any:
    """A value without the SDK's classes of arguments."""
    if hasattr(value, "__dict__") and not isinstance(value, pulumi.Output | str | Mapping):
        return {_camel(key): _plain(part) for key, part in vars(value).items() if part is not None}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _camel(name: str) -> str:
    return name if name == "back_end" else _LETTER.sub(lambda match: match[1].upper(), name)
