"""What a service serves against what was declared for it: every field in which the two differ. Pure.

Declared are inputs of a Cloud Run service in the engine's words, served is the service as run v2 describes it. What was
not declared is the platform's to choose and is not compared, but for lists: whatever else stands in one differs too. A
variable's value is never shown, and of an argument nothing that its name calls a secret.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

# Where the engine's name for a list is not run v2's.
_WIRE = {"commands": "command", "dependsOns": "dependsOn", "envs": "env", "traffics": "traffic"}
# The platform may answer with a path where a name was declared.
_NAMES = frozenset({"network", "secret", "subnetwork"})
_SECRET = re.compile(r"(--?[\w.-]*(?:key|token|secret|password|credential)[\w.-]*)[= ].*", re.IGNORECASE | re.DOTALL)
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|[KMGT]i?)?")
_UNITS = {"": 1.0, "m": 1e-3} | {
    letter + suffix: float(base**power)
    for power, letter in enumerate("KMGT", 1)
    for suffix, base in (("", 1000), ("i", 1024))
}
_LONGEST = 80


def differences(declared: Mapping[str, Any], service: Mapping[str, Any]) -> list[str]:
    """Each differing field: where it is, what serves and what is declared.

    Args:
        declared: Inputs of the service, e.g. `template` and `traffics`, with the engine's names.
        service: As the API describes it.
    """
    return [f"{path.removeprefix('template.')}: {text}" for path, text in _compared("", declared, service)]


def _compared(path: str, wanted: Any, found: Any) -> Iterator[tuple[str, str]]:
    if isinstance(wanted, Mapping):
        found = found[0] if isinstance(found, list) and found else found  # `ports` is a list of one
        known = found if isinstance(found, Mapping) else {}
        for key, value in wanted.items():
            name = str(_WIRE.get(key, key))
            yield from _compared(f"{path}.{name}" if path else name, value, known.get(name))
    elif path.endswith(".env"):
        yield from _variables(path, wanted or (), found or ())
    elif isinstance(wanted, list) and any(isinstance(item, Mapping) for item in wanted):
        yield from _members(path, wanted, found if isinstance(found, list) else [])
    elif isinstance(wanted, list):
        if wanted != (found or []):
            yield path, _lists(wanted, found or [])
    elif not _same(path.rpartition(".")[2], wanted, found):
        yield path, _told([_shown(found)], [_shown(wanted)])


def _variables(path: str, wanted: Sequence[Any], found: Sequence[Any]) -> Iterator[tuple[str, str]]:
    planned, there = ({str(item.get("name")): item for item in items} for items in (wanted, found))
    for name in sorted(planned.keys() | there.keys()):
        where = f"{path}[{name}]"
        if name not in there:
            yield where, "is missing"
        elif name not in planned:
            yield where, "is not planned"
        elif any(_compared("", planned[name], there[name])):
            yield where, "has another value than planned"


def _members(path: str, wanted: Sequence[Any], found: Sequence[Any]) -> Iterator[tuple[str, str]]:
    """Members in their order, each called by its name where it has one."""
    for index in range(max(len(wanted), len(found))):
        item = wanted[index] if index < len(wanted) else None
        there = found[index] if index < len(found) else None
        name = (item or there or {}).get("name", index)
        if item is None or there is None:
            yield f"{path}[{name}]", "is missing" if there is None else "is not planned"
        else:
            yield from _compared(f"{path}[{name}]", item, there)


def _lists(wanted: Sequence[Any], found: Sequence[Any]) -> str:
    only_found = [_shown(item) for item in found if item not in wanted]
    only_wanted = [_shown(item) for item in wanted if item not in found]
    return _told(only_found, only_wanted) if only_found or only_wanted else "in another order than planned"


def _told(found: Sequence[str], wanted: Sequence[str]) -> str:
    return f"{' '.join(found) or 'nothing'} serves, {' '.join(wanted) or 'nothing'} is planned"


def _shown(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = _SECRET.sub(r"\1=[hidden]", " ".join(str(value).split()))
    return "nothing" if value in (None, "") else text if len(text) <= _LONGEST else f"{text[:_LONGEST]} [...]"


def _same(name: str, wanted: Any, found: Any) -> bool:
    if wanted == found or (not wanted and not found):
        return True  # what is zero is left out of an answer
    if not (isinstance(wanted, str) and isinstance(found, str)):
        return False
    if name in _NAMES:
        return wanted.rpartition("/")[2] == found.rpartition("/")[2]
    quantities = _quantity(wanted), _quantity(found)
    return None not in quantities and quantities[0] == quantities[1]


def _quantity(text: str) -> float | None:
    """A quantity of Kubernetes, such as 4, 4000m or 16Gi."""
    found = _QUANTITY.fullmatch(text)
    return float(found[1]) * _UNITS[found[2] or ""] if found else None
