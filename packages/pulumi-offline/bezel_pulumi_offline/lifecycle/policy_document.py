"""Document of an IAM policy, as the provider's look-up `getIAMPolicy` writes it without asking Google. Pure.

Bindings of one role and condition are one; bindings are in the order of role and condition, members in that of their
texts. Source: terraform-provider-google, data_source_google_iam_policy.go; fields in the order of the types of
cloudresourcemanager/v1, empty ones left out.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

_CONDITION = ("description", "expression", "location", "title")


def policy_document(bindings: Iterable[Mapping[str, Any]], audit_configs: Iterable[Mapping[str, Any]]) -> str:
    """The policy as JSON text.

    Args:
        bindings: `role`, `members`, and maybe a `condition`: `expression`, `title`, `description`.
        audit_configs: `service`, and `auditLogConfigs`, each of a `logType` with its `exemptedMembers`.
    """
    merged: dict[tuple[str, tuple[str, ...]], tuple[Mapping[str, Any], set[str]]] = {}
    for binding in bindings:
        condition = {name: value for name in _CONDITION if (value := (binding.get("condition") or {}).get(name))}
        parts = tuple(condition.get(name, "") for name in ("expression", "title", "description"))
        members = merged.setdefault((binding["role"], parts if condition else ()), (condition, set()))[1]
        members |= {*binding.get("members", ())}
    policy = {
        "auditConfigs": [
            {
                "auditLogConfigs": [
                    {"exemptedMembers": [*log.get("exemptedMembers", ())], "logType": log["logType"]}
                    for log in config["auditLogConfigs"]
                ],
                "service": config["service"],
            }
            for config in audit_configs
        ],
        "bindings": [
            {"condition": condition, "members": sorted(members), "role": role}
            for (role, _), (condition, members) in sorted(merged.items(), key=lambda item: item[0])
        ],
    }
    return _go_json(_without_empty(policy))


def _without_empty(value: Any) -> Any:
    """A document without its empty parts, as Go's `omitempty` writes it."""
    if isinstance(value, dict):
        return {name: kept for name, part in value.items() if (kept := _without_empty(part)) not in ("", [], {})}
    return [_without_empty(part) for part in value] if isinstance(value, list) else value


def _go_json(value: Any) -> str:
    """JSON as Go's encoder writes it: without spaces, with <, > and & as escapes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
