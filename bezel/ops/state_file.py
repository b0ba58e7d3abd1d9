"""What the file says in which the engine keeps the state of a stack: its outputs, and whether a change has no end.

Starting the engine takes a third of a second, which every deploy would pay for `pulumi stack output --json` and one
after a failure for `pulumi stack export` as well. The layout is that of engine 3.259 (state version 3). Leaves out
whatever changes a state: that is the engine's.
"""

import json
from pathlib import Path
from typing import Any

from bezel.told import UserError

STACK = "pulumi:pulumi:Stack"
# Marks what is no plain value, and says which kind it is (sdk/go/common/resource/sig in Pulumi's sources).
SIGNATURE, SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"


def outputs_in(state: Path, project: str, stack: str) -> dict[str, Any] | None:
    """What a stack has put out, each secret as `[secret]`; None where there is no such stack.

    Args:
        state: The folder of the file backend.
        project: The project's name.
        stack: The stack's name.

    Raises:
        UserError: The file is there and cannot be read.
    """
    latest = _latest(state, project, stack)
    if latest is None:
        return None
    of_stack = (one.get("outputs") for one in latest.get("resources") or () if one["type"] == STACK)
    return {name: _masked(value) for name, value in (next(of_stack, None) or {}).items()}


def pending_in(state: Path, project: str, stack: str) -> bool:
    """Whether the state holds an operation that began and never ended; arguments and errors as of `outputs_in`."""
    return bool((_latest(state, project, stack) or {}).get("pending_operations"))


def _latest(state: Path, project: str, stack: str) -> dict[str, Any] | None:
    file = state / ".pulumi" / "stacks" / project / f"{stack}.json"
    if not file.exists():
        return None
    try:
        return json.loads(file.read_text())["checkpoint"]["latest"] or {}
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{file} is no state of the engine ({error!r}), so nobody knows what {stack} has made. "
            f"Put back the one before it, {file.name}.bak, and deploy again."
        ) from None


def _masked(value: Any) -> Any:
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get(SIGNATURE) == SECRET:
        return "[secret]"
    return {name: _masked(item) for name, item in value.items()}
