"""State file of a stack: reads its outputs and pending operations, and restores a truncated one.

Starting the engine takes a third of a second, which every deploy would pay for `pulumi stack output --json` and one
after a failure for `pulumi stack export` as well. The layout is that of engine 3.259 (state version 3).

On a full disk the engine replaces the file by what it could write of it. Then the previous file, which the engine
keeps beside it, is restored. Leaves out every other change of a state: those are the engine's.
"""

import json
from pathlib import Path
from typing import Any

from bezel.atomic_write import write_whole
from bezel.errors import UserError

STACK = "pulumi:pulumi:Stack"
# Marks a value that is not plain, and names its kind (sdk/go/common/resource/sig in Pulumi's sources).
SIGNATURE, SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"


def outputs_in(state: Path, project: str, stack: str) -> dict[str, Any] | None:
    """The outputs of a stack, each secret as `[secret]`; None where there is no such stack.

    Args:
        state: The folder of the file backend.
        project: The project's name.
        stack: The stack's name.

    Raises:
        UserError: The file exists and cannot be read.
    """
    latest = _latest(state, project, stack)
    if latest is None:
        return None
    of_stack = (one.get("outputs") for one in latest.get("resources") or () if one["type"] == STACK)
    return {name: _masked(value) for name, value in (next(of_stack, None) or {}).items()}


def pending_in(state: Path, project: str, stack: str) -> bool:
    """Whether the state holds an operation that began and never ended; arguments and errors as of `outputs_in`."""
    return bool((_latest(state, project, stack) or {}).get("pending_operations"))


def restore(state: Path, project: str, stack: str) -> bool:
    """Replace a truncated state by the previous one; return whether it did. Arguments as of `outputs_in`.

    Not to be called while an engine runs on the stack: it writes the file again.

    Raises:
        UserError: The previous state is truncated as well.
        OSError: The file cannot be written.
    """
    file = _file(state, project, stack)
    if not file.exists() or _is_state(file):
        return False
    before = file.with_name(f"{file.name}.bak")
    if not _is_state(before):
        kept = state / ".pulumi" / "backups" / project / stack
        raise UserError(
            f"{file} is no state of the engine, and neither is {before.name} beside it: both were cut, so nobody knows "
            f"what {stack} has made.\n"
            f"  Repair: free some space on that disk, put the newest whole file of {kept} in its place, and run "
            f"`.venv/bin/bezel local recover {stack}`. What was made since that file is not in it: look into the cloud."
        )
    write_whole(file, before.read_bytes(), mode=0o600)
    # They describe the truncated file; without them the engine takes the defaults.
    file.with_name(f"{file.name}.attrs").unlink(missing_ok=True)
    return True


def _file(state: Path, project: str, stack: str) -> Path:
    return state / ".pulumi" / "stacks" / project / f"{stack}.json"


def _is_state(file: Path) -> bool:
    try:
        latest = json.loads(file.read_text())["checkpoint"]["latest"]
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return latest is None or (isinstance(latest, dict) and isinstance(latest.get("resources") or [], list))


def _latest(state: Path, project: str, stack: str) -> dict[str, Any] | None:
    file = _file(state, project, stack)
    if not file.exists():
        return None
    try:
        return json.loads(file.read_text())["checkpoint"]["latest"] or {}
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"{file} is no state of the engine ({error!r}), so nobody knows what {stack} has made: "
            f"`.venv/bin/bezel local recover {stack}` puts back the one before it."
        ) from None


def _masked(value: Any) -> Any:
    if isinstance(value, list):
        return [_masked(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get(SIGNATURE) == SECRET:
        return "[secret]"
    return {name: _masked(item) for name, item in value.items()}
