"""Configuration of a policy pack in an environment, as `bezel.toml` names it: whether the pack can use it.

Owns the names of the required packs' policies. Leaves out `bezel.toml` itself (`pipeline_file`).
"""

import ast
import json
import math
from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any

from bezel.engine.project.project import STACK_NAME
from bezel_base.errors import format_value

PACKS = "policies"
LARGEST = 256 * 1024
"""Bytes of a file; a stack or a policy takes a line."""


def is_pack(folder: Path, name: str) -> bool:
    """Whether a project has a policy pack of a name."""
    # The form first: the disk refuses other names in ways of its own, e.g. a long one.
    if not STACK_NAME.fullmatch(name) or not name.strip("."):
        return False
    return (folder / PACKS / name / "PulumiPolicy.yaml").is_file()


def find_defect(folder: Path, pack: str, name: str, environment: str) -> str:
    """Why a file cannot configure a pack in an environment; "" where it can."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or path.parts[:1] != (PACKS,) or "\0" in name:
        return f"it is not below {PACKS}/, where changes of limits are reviewed."
    try:
        file = (folder / path).resolve(strict=True)
        if not file.is_relative_to((folder / PACKS).resolve()):
            return f"it is a link out of {PACKS}/, where changes of limits are reviewed."
        if file.stat().st_size > LARGEST:
            return f"it is larger than {LARGEST // 1024} KiB."
        # As UTF-8 alone, which is all that the engine reads.
        content = json.loads(
            file.read_bytes().decode(), object_pairs_hook=_once, parse_constant=_finite, parse_float=_finite
        )
    except (OSError, ValueError, RecursionError) as error:
        return f"it cannot be read as JSON ({format_value(getattr(error, 'strerror', None) or str(error))})."
    if not isinstance(content, dict):
        return "expected an object: policy -> its keys."
    if not content:
        return "it holds no limit."
    known_policies = _policies(folder, pack)
    if unknown := [policy for policy in content if known_policies and policy not in known_policies]:
        return f"this pack has no policy {', '.join(map(format_value, unknown))}."
    if empty := [policy for policy, keys in content.items() if not isinstance(keys, dict) or not keys]:
        return f"expected an object with the keys of the policy in {', '.join(map(format_value, empty))}."
    weak = [
        policy for policy, keys in content.items() if keys.get(_LEVEL, "mandatory") not in ("mandatory", "remediate")
    ]
    if weak:
        return f"{_LEVEL} would let everything pass in {', '.join(map(format_value, weak))}."
    limited = {policy: keys.get("limits") for policy, keys in content.items() if "limits" in keys or pack == _LIMITED}
    lacking = [
        policy for policy, limits in limited.items() if not isinstance(limits, dict) or limits.get(environment) is None
    ]
    return f"it has no limit for {environment} in {', '.join(map(format_value, lacking))}." if lacking else ""


_LEVEL = "enforcementLevel"  # the engine's own key in the configuration of any policy
_LIMITED = "hardware_cost"
POLICIES = {
    _LIMITED: (
        *("hourly-ceiling", "monthly-ceiling", "most-instances", "allowed-accelerators", "always-on", "run-duration"),
        *("lease-ceiling", "provisioning-models", "stack-hourly-ceiling", "stack-monthly-ceiling"),
    ),
    "security": (
        *("no-public-invoker", "known-requests", "own-service-account", "image-by-digest", "no-plain-secret"),
        *("no-external-address", "no-open-address", "labels"),
    ),
}
"""Policies of the required packs, by their names in a configuration."""


def _policies(folder: Path, pack: str) -> set[str]:
    """Names that a configuration of a pack may have: those above, and rules that its `pack.py` adds; {} if unknown."""
    policies = set(POLICIES.get(pack, ()))
    try:
        tree = ast.parse((folder / PACKS / pack / "pack.py").read_bytes())
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return policies
    rules = [node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    rules += [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]
    return policies | {rule.replace("_", "-") for rule in rules} - {"all"}  # which the engine takes for every policy


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        ((twice, _),) = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"{twice} stands there twice")
    return content


def _finite(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise ValueError(f"expected a finite number, got {text}")
    return number
