"""Tables of every policy and of every request that is understood, for docs/policies.md, made from the code itself."""

from collections.abc import Iterator
from typing import Any

from pulumi_policy import Policy

from bezel.resource_cost.requests.forms import FORMS
from bezel_base.text.markdown import table_row
from bezel_policies.hardware_cost import pack as hardware_cost
from bezel_policies.price import pack as price
from bezel_policies.security import pack as security


def policy_table() -> str:
    """Every policy of all packs with its keys, as Markdown."""
    rows = ["| pack | policy | what holds | key | value | default |", "|---|---|---|---|---|---|"]
    for pack in (hardware_cost, security, price):
        for policy in pack.POLICIES:
            rows += _rows(pack.NAME, policy)
    return "\n".join(rows) + "\n"


def request_table() -> str:
    """Every request to Google's APIs that is understood, as Markdown."""
    rows = ["| request | method | host | path | query |", "|---|---|---|---|---|"]
    for form in FORMS:
        hosts = ", ".join(f"`{host}`" for host in form.hosts)
        paths = ", ".join(f"`{path}`" for path in form.paths)
        query = ", ".join(f"`{name}`" for name in sorted(form.query)) or "none"
        rows.append(table_row((form.about, form.method, hosts, paths, query)))
    return "\n".join(rows) + "\n"


def policy_records() -> list[dict[str, Any]]:
    """Every policy of all packs with its keys, as data for `bezel explain`."""
    return [
        {
            "pack": pack.NAME,
            "policy": policy.name,
            "holds": policy.description,
            "keys": [
                {
                    "key": key,
                    "about": f"{about['description']}{_bounds(about)}",
                    "default": _default(policy, key, about),
                }
                for key, about in (policy.config_schema.properties if policy.config_schema else {}).items()
            ],
        }
        for pack in (hardware_cost, security, price)
        for policy in pack.POLICIES
    ]


def _default(policy: Policy, key: str, about: dict[str, Any]) -> str:
    schema = policy.config_schema
    return (
        "required" if schema and key in (schema.required or ()) else _format_default(about["default"]).replace("`", "")
    )


def _rows(pack: str, policy: Policy) -> Iterator[str]:
    schema = policy.config_schema
    if schema is None:
        yield f"{table_row((pack, f'`{policy.name}`', policy.description))} | | |"
        return
    for key, about in schema.properties.items():
        default = "required" if key in (schema.required or ()) else _format_default(about["default"])
        value = f"{about['description']}{_bounds(about)}"
        yield table_row((pack, f"`{policy.name}`", policy.description, f"`{key}`", value, default))


def _bounds(about: dict[str, Any]) -> str:
    value = about.get("additionalProperties")
    if not isinstance(value, dict) or value.get("type") not in ("number", "integer"):
        return ""
    return ", above 0" if "exclusiveMinimum" in value else ", 0 or more"


def _format_default(default: object) -> str:
    if default is None:
        return "not stated"
    if default in ([], {}):
        return "none"
    return ", ".join(f"`{item}`" for item in default) if isinstance(default, list) else f"`{default}`"
