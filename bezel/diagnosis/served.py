"""Comparison of a served Cloud Run service with its declared inputs, field by field. Pure.

The declared inputs have the engine's names, the served service is in run v2's description. The platform chooses
undeclared fields, which are not compared, except in lists: an additional member is a difference. A variable's value is
never shown, nor the value of an argument whose name marks it as a secret.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bezel_base.credentials.names import option_names_secret
from bezel_base.credentials.private_keys import HIDDEN
from bezel_base.text.redaction import redact

# Lists that the engine and run v2 name differently.
_WIRE = {"commands": "command", "dependsOns": "dependsOn", "envs": "env", "traffics": "traffic"}
# The platform may return a path where a name was declared.
_NAMES = frozenset({"network", "secret", "subnetwork"})
_OPTION = re.compile(r"(--?[\w.-]+)[= ]")
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|[KMGT]i?)?")
_UNITS = {"": 1.0, "m": 1e-3} | {
    letter + suffix: float(base**power)
    for power, letter in enumerate("KMGT", 1)
    for suffix, base in (("", 1000), ("i", 1024))
}
_LONGEST = 80


def differences(declared: Mapping[str, Any], service: Mapping[str, Any]) -> list[str]:
    """Each differing field: its path, its served value and its declared value.

    Args:
        declared: Inputs of the service, e.g. `template` and `traffics`, with the engine's names.
        service: The service in the API's description.
    """
    return [f"{path.removeprefix('template.')}: {text}" for path, text in _differences("", declared, service)]


def _differences(path: str, wanted: Any, actual: Any) -> Iterator[tuple[str, str]]:
    if isinstance(wanted, Mapping):
        actual = actual[0] if isinstance(actual, list) and actual else actual  # `ports` is a list of one
        fields = actual if isinstance(actual, Mapping) else {}
        for key, value in wanted.items():
            name = str(_WIRE.get(key, key))
            yield from _differences(f"{path}.{name}" if path else name, value, fields.get(name))
    elif path.endswith(".env"):
        yield from _variables(path, wanted or (), actual or ())
    elif isinstance(wanted, list) and any(isinstance(item, Mapping) for item in wanted):
        yield from _members(path, wanted, actual if isinstance(actual, list) else [])
    elif isinstance(wanted, list):
        if wanted != (actual or []):
            yield path, _lists(wanted, actual or [])
    elif not _same(path.rpartition(".")[2], wanted, actual):
        yield path, _comparison([_format_value(actual)], [_format_value(wanted)])


def _variables(path: str, wanted: Sequence[Any], actual: Sequence[Any]) -> Iterator[tuple[str, str]]:
    planned, there = ({str(item.get("name")): item for item in items} for items in (wanted, actual))
    for name in sorted(planned.keys() | there.keys()):
        where = f"{path}[{name}]"
        if name not in there:
            yield where, "is missing"
        elif name not in planned:
            yield where, "is not planned"
        elif any(_differences("", planned[name], there[name])):
            yield where, "has another value than planned"


def _members(path: str, wanted: Sequence[Any], actual: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Compare members in their order, each identified by its name where it has one."""
    for index in range(max(len(wanted), len(actual))):
        item = wanted[index] if index < len(wanted) else None
        there = actual[index] if index < len(actual) else None
        name = (item or there or {}).get("name", index)
        if item is None or there is None:
            yield f"{path}[{name}]", "is missing" if there is None else "is not planned"
        else:
            yield from _differences(f"{path}[{name}]", item, there)


def _lists(wanted: Sequence[Any], actual: Sequence[Any]) -> str:
    only_found = [text for item, text in _items(actual) if item not in wanted]
    only_wanted = [text for item, text in _items(wanted) if item not in actual]
    return _comparison(only_found, only_wanted) if only_found or only_wanted else "in another order than planned"


def _items(items: Sequence[Any]) -> Iterator[tuple[Any, str]]:
    """Each item of a list and its text; what follows the option of a secret as a word of its own is hidden."""
    previous = ""
    for item in items:
        is_hidden = previous.startswith("-") and option_names_secret(previous) and not str(item).startswith("-")
        yield item, HIDDEN if is_hidden else _format_value(item)
        previous = str(item)


def _comparison(actual: Sequence[str], wanted: Sequence[str]) -> str:
    return f"{' '.join(actual) or 'nothing'} serves, {' '.join(wanted) or 'nothing'} is planned"


def _format_value(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = " ".join(str(value).split())
    option = _OPTION.match(text)
    # As a whole: a secret may have quotes and brackets of its own, at which another reader would end it.
    text = f"{option[1]}={HIDDEN}" if option and option_names_secret(option[1]) else redact(text)
    return "nothing" if value in (None, "") else text if len(text) <= _LONGEST else f"{text[:_LONGEST]} [...]"


def _same(name: str, wanted: Any, actual: Any) -> bool:
    if wanted == actual or (not wanted and not actual):
        return True  # responses leave out zero values
    if not (isinstance(wanted, str) and isinstance(actual, str)):
        return False
    if name in _NAMES:
        return wanted.rpartition("/")[2] == actual.rpartition("/")[2]
    quantities = _quantity(wanted), _quantity(actual)
    return None not in quantities and quantities[0] == quantities[1]


def _quantity(text: str) -> float | None:
    """Parse a quantity of Kubernetes, such as 4, 4000m or 16Gi."""
    match = _QUANTITY.fullmatch(text)
    return float(match[1]) * _UNITS[match[2] or ""] if match else None
