"""Table of every policy with its configuration, for docs/policies.md, generated from the policies themselves."""

from collections.abc import Iterator
from typing import Any

from pulumi_policy import Policy

from policies.hardware_cost import pack as hardware_cost
from policies.price import pack as price
from policies.security import pack as security


def policy_table() -> str:
    """Every policy of all packs with its keys, as Markdown."""
    rows = ["| pack | policy | what holds | key | value | default |", "|---|---|---|---|---|---|"]
    for pack in (hardware_cost, security, price):
        for policy in pack.POLICIES:
            rows += _rows(pack.NAME, policy)
    return "\n".join(rows) + "\n"


def _rows(pack: str, policy: Policy) -> Iterator[str]:
    schema = policy.config_schema
    if schema is None:
        yield f"| {pack} | `{policy.name}` | {policy.description} | | | |"
        return
    for key, about in schema.properties.items():
        default = "required" if key in (schema.required or ()) else _shown(about["default"])
        yield (
            f"| {pack} | `{policy.name}` | {policy.description} | `{key}` | {about['description']}{_bounds(about)} "
            f"| {default} |"
        )


def _bounds(about: dict[str, Any]) -> str:
    value = about.get("additionalProperties")
    if not isinstance(value, dict) or value.get("type") not in ("number", "integer"):
        return ""
    return ", above 0" if "exclusiveMinimum" in value else ", 0 or more"


def _shown(default: object) -> str:
    if default in ([], {}):
        return "none"
    return ", ".join(f"`{item}`" for item in default) if isinstance(default, list) else f"`{default}`"
