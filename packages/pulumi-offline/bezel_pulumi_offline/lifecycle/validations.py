"""Validations of the published provider: values that its Check refuses in a preview, before anything is sent.

The rules are data (resources/validations/*.json): `enums.json` is read from the SDK's documentation, `rules.json` is
written from the provider's source, which each entry names. Owns the rules and their messages, which are the published
provider's. Leaves kinds and required properties to check.py.
"""

import base64
import binascii
import ipaddress
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bezel_pulumi_offline.lifecycle.check import DEFAULTS
from bezel_pulumi_offline.lifecycle.fields import Field, Fields, Kind
from bezel_pulumi_offline.lifecycle.mapping import dig
from bezel_pulumi_offline.lifecycle.values import unknown

Failure = tuple[str, str]  # property, reason


@dataclass(frozen=True, slots=True)
class Validations:
    """The rules of one resource type.

    Attributes:
        values: Property (dotted, without indexes) -> one rule: its name in `_RULES`, and what it allows.
        together: Rules about several properties of one object: `of` is the object ("" for the resource), and one of
            `exactly_one`, `at_least_one`, `conflict` and `requires` lists the properties. With `planned` it is not
            Check's: the provider refuses the plan.
    """

    values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    together: Sequence[Mapping[str, Any]] = ()


def refused_values(
    fields: Fields, inputs: Mapping[str, Any], validations: Validations, name: str, dropped: Collection[str] = ()
) -> list[Failure]:
    """Return what the published provider refuses in checked inputs; values that are not known yet pass.

    Args:
        fields: The type's properties.
        inputs: The checked inputs.
        validations: The type's rules.
        name: The resource's name in the program, for the messages.
        dropped: Paths of properties that Check has refused already: a rule about one of them says nothing more.
    """
    failures = _object(_Object(fields, inputs, "", "", "", frozenset(dropped)), validations, planned=False)
    return [(path, f"{reason}. Examine values at '{name}.{path}'.") for path, reason in failures]


def refused_plan(
    fields: Fields, inputs: Mapping[str, Any], prior: Mapping[str, Any] | None, validations: Validations
) -> list[str]:
    """Return why the published provider refuses a plan whose inputs pass Check: in a preview, but not before.

    Args:
        fields: The type's properties.
        inputs: The checked inputs.
        prior: The outputs so far, or None on a create; they stand for what the program leaves out.
        validations: The type's rules.
    """
    left = {key: value for key, value in (prior or {}).items() if value and key not in inputs}
    return [
        reason for _, reason in _object(_Object(fields, left | dict(inputs), "", "", ""), validations, planned=True)
    ]


@dataclass(frozen=True, slots=True)
class _Object:
    """An object of the inputs: its properties and values, and its place in three spellings."""

    fields: Fields
    values: Mapping[str, Any]
    key: str  # as in the rules
    path: str  # Pulumi's, with indexes
    wire: str  # the published provider's
    dropped: frozenset[str] = frozenset()


def _object(item: _Object, validations: Validations, *, planned: bool) -> Iterator[Failure]:
    for declared in item.fields:
        value = item.values.get(declared.name)
        if value is None or unknown(value):
            continue
        key, path, wire = item.key + declared.name, item.path + declared.name, item.wire + declared.provider_name
        if not planned:
            yield from _value_failures(declared, validations.values.get(key), path, wire, value)
        if declared.kind is Kind.BLOCK and isinstance(value, Mapping):
            inner = _Object(declared.fields, value, f"{key}.", f"{path}.", f"{wire}.0.", item.dropped)
            yield from _object(inner, validations, planned=planned)
        elif declared.kind is Kind.BLOCKS and isinstance(value, list):
            for index, member in enumerate(value):
                if isinstance(member, Mapping):
                    at = f"{path}[{index}]."
                    place = _Object(declared.fields, member, f"{key}.", at, f"{wire}.{index}.", item.dropped)
                    yield from _object(place, validations, planned=planned)
    for rule in validations.together:
        if item.key == (f"{rule['of']}." if rule["of"] else "") and planned is rule.get("planned", False):
            yield from _together(rule, item)


def _value_failures(
    declared: Field, rule: Mapping[str, Any] | None, path: str, wire: str, value: Any
) -> Iterator[Failure]:
    """Check a value by its rule; what is one of some values in a list is each of its items."""
    if declared.kind is Kind.ITEMS and isinstance(value, list) and rule and "one_of" in rule:
        for index, member in enumerate(value):
            if not unknown(member):
                yield from ((f"{path}[{index}]", reason) for reason in _reasons(rule, f"{wire}.{index}", member))
    else:
        yield from ((path, reason) for reason in _reasons(rule, wire, value))


def _reasons(rule: Mapping[str, Any] | None, wire: str, value: Any) -> Iterator[str]:
    for name, allowed in (rule or {}).items():
        reason = _RULES[name](wire, value, allowed)
        if reason:
            yield reason


def _together(rule: Mapping[str, Any], item: _Object) -> Iterator[Failure]:
    """Check several properties of one object: an unknown value may be set or not, so it passes."""
    (kind,) = rule.keys() & _GROUPS.keys()
    names = rule[kind]
    if not item.dropped.isdisjoint(item.path + name for name in names):
        return
    provider_names = {name: item.wire + _provider_path(item.fields, name) for name in names}
    # Where one of some is wanted, a default that Check has filled in is none that the program gives.
    filled = item.values.get(DEFAULTS, ()) if kind == "at_least_one" else ()
    values = {name: dig(item.values, name.split(".")) for name in names}
    present = [name for name in names if values[name] is not None and name not in filled]
    sure = [name for name in present if not unknown(values[name])]
    reason = _GROUPS[kind](provider_names, names, present, sure)
    if reason:
        yield item.path + (sure or names)[0], rule.get("text") or reason


def _provider_path(fields: Fields, name: str) -> str:
    """The published provider's name of a property, which may be one of an object inside."""
    first, _, rest = name.partition(".")
    declared = next(item for item in fields if item.name == first)
    return f"{declared.provider_name}.0.{_provider_path(declared.fields, rest)}" if rest else declared.provider_name


_Group = Callable[[Mapping[str, str], Sequence[str], Sequence[str], Sequence[str]], str]


def _exactly_one(wires: Mapping[str, str], names: Sequence[str], present: Sequence[str], sure: Sequence[str]) -> str:
    every, head = _list(wires, names), "Invalid combination of arguments. "
    if not present:
        return f'{head}"{wires[names[0]]}": one of `{every}` must be specified'
    if len(sure) > 1:
        specified = _list(wires, sure)
        return f'{head}"{wires[sure[0]]}": only one of `{every}` can be specified, but `{specified}` were specified.'
    return ""


def _at_least_one(wires: Mapping[str, str], names: Sequence[str], present: Sequence[str], sure: Sequence[str]) -> str:
    del sure
    text = f'Missing required argument. "{wires[names[0]]}": one of `{_list(wires, names)}` must be specified'
    return "" if present else text


def _conflict(wires: Mapping[str, str], names: Sequence[str], present: Sequence[str], sure: Sequence[str]) -> str:
    """The first property conflicts with each of the others."""
    del present
    others = [name for name in sure if name != names[0]]
    text = f'Conflicting configuration arguments. "{wires[names[0]]}": conflicts with '
    return text + wires[others[0]] if names[0] in sure and others else ""


def _requires(wires: Mapping[str, str], names: Sequence[str], present: Sequence[str], sure: Sequence[str]) -> str:
    """The first property requires all of the others."""
    text = f'Missing required argument. "{wires[names[0]]}": all of `{_list(wires, names)}` must be specified'
    return text if names[0] in sure and len(present) < len(names) else ""


_GROUPS: dict[str, _Group] = {
    "exactly_one": _exactly_one,
    "at_least_one": _at_least_one,
    "conflict": _conflict,
    "requires": _requires,
}


def _list(wires: Mapping[str, str], names: Sequence[str]) -> str:
    return ",".join(sorted(wires[name] for name in names))


def _one_of(wire: str, value: Any, allowed: Sequence[str]) -> str:
    listed = " ".join(json.dumps(item) for item in allowed)
    return "" if value in allowed else f"expected {wire} to be one of [{listed}], got {value}"


def _matches(wire: str, value: Any, pattern: str) -> str:
    # A dollar sign of Go's is the end of the text; Python's would allow a line break after it.
    matched = re.search(re.sub(r"\$(?=$|\))", r"\\Z", pattern), str(value))
    return "" if matched else f'"{wire}" ({json.dumps(value)}) doesn\'t match regexp {json.dumps(pattern)}'


def _between(wire: str, value: Any, bounds: Sequence[int]) -> str:
    least, most = bounds
    inside = not isinstance(value, (int, float)) or least <= value <= most
    return "" if inside else f"expected {wire} to be in the range ({least} - {most}), got {value}"


def _length(wire: str, value: Any, bounds: Sequence[int]) -> str:
    least, most = bounds
    text = f"expected length of {wire} to be in the range ({least} - {most}), got {value}"
    return "" if least <= len(str(value).encode()) <= most else text  # the provider counts bytes


def _count(wire: str, value: Any, bounds: Sequence[int]) -> str:
    least, most = bounds
    if not isinstance(value, list) or least <= len(value) <= most:
        return ""
    if len(value) < least:
        text = f"Attribute {wire} requires {least} item minimum, but config has only {len(value)} declared."
        return f"Not enough list items. {text}"
    return f"Too many list items. Attribute {wire} supports {most} item maximum, but config has {len(value)} declared."


def _label_keys(wire: str, value: Any, pattern: str) -> str:
    del wire
    wrong = [key for key in value if not re.fullmatch(pattern, key)] if isinstance(value, Mapping) else []
    page = "https://cloud.google.com/storage/docs/tags-and-labels#bucket-labels"
    return "; ".join(f"{json.dumps(key)} is an invalid label key. See {page}" for key in wrong)


def _cidr(wire: str, value: Any, allowed: object) -> str:
    del allowed
    try:
        ipaddress.ip_network(str(value), strict=False)
    except ValueError:
        return f'"{wire}" is not a valid IP CIDR range: invalid CIDR address: {value}'
    return "" if "/" in str(value) else f'"{wire}" is not a valid IP CIDR range: invalid CIDR address: {value}'


def _member(wire: str, value: Any, allowed: object) -> str:
    del allowed
    if str(value).startswith("deleted"):
        return f"invalid value for {wire} (Terraform does not support IAM members for deleted principals)"
    match = re.search("(.+:.+|projectOwners|projectReaders|projectWriters|allUsers|allAuthenticatedUsers)", str(value))
    page = "https://cloud.google.com/billing/docs/reference/rest/v1/Policy#Binding"
    return "" if match else f"invalid value for {wire} (IAM members must have one of the values outlined here: {page})"


def _pool_id(wire: str, value: Any, allowed: object) -> str:
    """Check the id of a workload identity pool, or of a provider of one; each reason is a line of its own."""
    del allowed
    text, size = str(value), len(str(value).encode())
    reasons = [f'"{wire}" ({json.dumps(text)}) can not start with "gcp-"'] if text.startswith("gcp-") else []
    if not re.fullmatch("[0-9a-z-]+", text):
        reasons.append(f'"{wire}" must contain only lowercase letters (a-z), numbers (0-9), or dashes (-)')
    if size < 4:
        reasons.append(f'"{wire}" cannot be smaller than 4 characters')
    if size > 32:
        reasons.append(f'"{wire}" cannot be greater than 32 characters')
    return "; ".join(reasons)


def _rotation_period(wire: str, value: Any, allowed: object) -> str:
    del wire, allowed
    match = re.fullmatch(r"([0-9.]*[0-9])s", str(value))
    if match is None:
        return f"Invalid rotation period format: {value}" if value else ""
    fraction = match[1].partition(".")[2]
    if "." in fraction:
        return f'strconv.ParseFloat: parsing "{match[1]}": invalid syntax'
    reasons = ["Rotation period must be greater than one day"] if float(match[1]) < 86_400 else []
    reasons += ["Rotation period cannot have more than 9 fractional digits"] if len(fraction) > 9 else []
    return "; ".join(reasons)


def _base64(wire: str, value: Any, allowed: object) -> str:
    del wire, allowed
    try:
        base64.b64decode(re.sub(r"[\r\n]", "", str(value)), validate=True)  # Go passes over line ends
    except (binascii.Error, ValueError):
        functions = "base64encode() or filebase64() to supply a valid base64 string"
        text = (
            f"could not decode {json.dumps(value)} as a valid base64 value. Please use the terraform base64 functions"
        )
        return f"{text} such as {functions}"
    return ""


def _json(wire: str, value: Any, allowed: object) -> str:
    del allowed
    try:
        json.loads(str(value), parse_constant=_no_json)
    except (ValueError, RecursionError) as error:
        return f"{json.dumps(wire)} contains an invalid JSON: {error}"
    return ""


def _no_json(text: str) -> float:
    raise ValueError(f"invalid character {text[0]!r} looking for beginning of value")


def _http_headers(wire: str, value: Any, pattern: str) -> str:
    named = [key for key in value if key == "Content-Length" or re.search(pattern, key)]
    return "; ".join(f"Cannot set the {key} header on {wire}" for key in named)


def _service(wire: str, value: Any, banned: Sequence[str]) -> str:
    if value in banned:
        return f"expected {wire} to not match any of [{' '.join(banned)}], got {value}"
    return "" if "." in str(value) else f"expected {value} to be a domain like serviceusage.googleapis.com"


def _not_empty(wire: str, value: Any, allowed: object) -> str:
    del allowed
    return "" if value else f"expected {json.dumps(wire)} to not be an empty string, got {value}"


def _trailing_dot(wire: str, value: Any, allowed: object) -> str:
    del allowed
    if not value:
        return f"the empty string is not a valid {wire} field value"
    text = f'doesn\'t end with ".", {wire} field must end with trailing dot, for example test.example.com. (note the '
    return "" if str(value).endswith(".") else f'"{wire}" ({json.dumps(value)}) {text}trailing dot)'


_RULES: dict[str, Callable[[str, Any, Any], str]] = {
    "one_of": _one_of,
    "matches": _matches,
    "between": _between,
    "length": _length,
    "count": _count,
    "label_keys": _label_keys,
    "cidr": _cidr,
    "member": _member,
    "pool_id": _pool_id,
    "rotation_period": _rotation_period,
    "service": _service,
    "base64": _base64,
    "json": _json,
    "http_headers": _http_headers,
    "not_empty": _not_empty,
    "trailing_dot": _trailing_dot,
}
