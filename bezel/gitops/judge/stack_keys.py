"""Keys of a stack's file that judge it: its environment, which chooses the limits, and its own limits and prices. Pure.

Everything else in the file is judged. A file that cannot be read, or in which two spellings of a key leave open which
value the program gets, has one key that no other file shares, so it counts as changed.
"""

import hashlib
from collections.abc import Mapping

from bezel.gitops.judge.values import flat
from bezel.planner.base.environments import THROW_AWAY
from bezel.planner.base.problems import NAMESPACE
from bezel.planner.base.stack_file import StackFileError, read_stack_file, spellings
from bezel_catalog.option_values import as_structure

ENVIRONMENT = "environment"
_COST = "cost"
_LIMIT = "cost.max_"
UNREADABLE = "(cannot be read)"
_PREFIX = f"{NAMESPACE}:"


def judging_keys(content: bytes, project: str) -> dict[str, str]:
    """Key without the namespace -> value as text, e.g. `cost.max_hourly_usd` and `1.10`.

    Args:
        content: The stack's file.
        project: Name of the project, which is the namespace of keys without one.
    """
    try:
        read, _ = read_stack_file(content.decode(), "stack file")
        config = read.get("config") or {} if isinstance(read, Mapping) else {}
        spelled = {key: names for key, names in spellings(config, project).items() if key.startswith(_PREFIX)}
        values = {key.removeprefix(_PREFIX): as_structure(config[names[0]]) for key, names in spelled.items()}
    except (ValueError, AttributeError, TypeError, RecursionError, StackFileError):
        return _unreadable(content)
    if any(len(names) > 1 for names in spelled.values()):
        return _unreadable(content)
    keys = {ENVIRONMENT: str(values.get(ENVIRONMENT) or THROW_AWAY)}
    cost = values.get(_COST)
    return keys | dict(flat(cost, _COST)) if cost else keys


def of_new_stack(keys: Mapping[str, str]) -> dict[str, str]:
    """The keys that a stack had before it was made, as far as they judge.

    A new stack may choose its environment, whose protection on the forge holds for it, and limit itself. Prices of its
    own replace those of the catalogue.
    """
    return {key: value for key, value in keys.items() if key == ENVIRONMENT or key.startswith(_LIMIT)}


def _unreadable(content: bytes) -> dict[str, str]:
    return {UNREADABLE: hashlib.sha256(content).hexdigest()}
