"""Files in a state folder: a stack's outputs and pending operations, and the repair of truncated files.

Starting the engine takes a third of a second, which every deploy would pay for `pulumi stack output --json` and one
after a failure for `pulumi stack export` as well. The layout is that of engine 3.274 (state version 3).

On a full disk the engine replaces the state file by what it could write of it. Then the previous file, which the engine
keeps beside it, is restored. Leaves out every other change of a state: those are the engine's.

The engine replaces a state file in one step, but writes the attributes beside it (`NAME.attrs`: type and checksum) in
place: killed in between, it leaves them empty, and every later command ends in `failed to load checkpoint: EOF`.
Without the file it takes the defaults (gocloud.dev, blob/fileblob, attrs.go). A lock that a full disk truncated names
no process and has no owner: the engine that could not write it has given up. The same is true of a lock that still has
its temporary name (`.tmp`) after 2 s: an engine writes its few bytes in no time. Leaves out complete locks
(`bezel.engine.locks.stale_locks`).
"""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem, UserError
from bezel_base.json_documents import read_json
from bezel_base.text.shell import shell_word

STACK = "pulumi:pulumi:Stack"
# Marks a value that is not plain, and names its kind (sdk/go/common/resource/sig in Pulumi's sources).
SIGNATURE, SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"
_WRITING_SECONDS = 2.0  # an engine may still be about to rename a lock


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
    of_stack = (item.get("outputs") for item in latest.get("resources") or () if item["type"] == STACK)
    return {name: mask_secrets(value) for name, value in (next(of_stack, None) or {}).items()}


def is_stack(state: Path, project: str, stack: str) -> bool:
    """Whether the folder has such a stack; arguments as of `outputs_in`."""
    return _file(state, project, stack).exists()


def salt_in(state: Path, project: str, stack: str) -> str:
    """The line of a stack file with the salt of the state's secrets; "" where the state has none.

    Arguments and errors as of `outputs_in`.
    """
    provider = (_latest(state, project, stack) or {}).get("secrets_providers") or {}
    salt = (provider.get("state") or {}).get("salt")
    return f"encryptionsalt: {salt}" if salt else ""


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
        backups = state / ".pulumi" / "backups" / project / stack
        raise UserError(
            Problem(
                str(file),
                None,
                f"it is truncated, and so is {before.name} beside it, so the resources of {stack} are unknown.",
                f"free some space on that disk, replace the file by the newest complete one of {backups}, and run "
                f"`.venv/bin/bezel local recover {shell_word(stack)}`. Look in the cloud for resources that are newer "
                "than it.",
            )
        )
    write_whole(file, before.read_bytes(), mode=0o600)
    # They describe the truncated file; without them the engine takes the defaults.
    file.with_name(f"{file.name}.attrs").unlink(missing_ok=True)
    return True


def latest_of(text: bytes | str) -> dict[str, Any]:
    """The latest state in the content of a state's file; empty for a stack that was never deployed.

    Raises:
        ValueError: It is not a state of the engine.
    """
    content: Any = read_json(text)
    for key in ("checkpoint", "latest"):
        if not isinstance(content, dict) or key not in content:
            raise ValueError(f"it has no {key}")
        content = content[key]
    if content is None:
        return {}
    resources = content.get("resources") or [] if isinstance(content, dict) else None
    if not isinstance(resources, list) or not all(isinstance(item, dict) for item in resources):
        raise ValueError("its latest state has no list of resources")
    state: dict[str, Any] = content
    return state


def states_in(state: Path) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Project, name and latest state of every stack of a folder; one that cannot be read is left out.

    Args:
        state: The folder of the file backend.
    """
    for file in sorted((state / ".pulumi" / "stacks").glob("*/*.json")):
        with contextlib.suppress(OSError, ValueError):
            yield file.parent.name, file.stem, latest_of(file.read_text(encoding="utf-8"))


def _file(state: Path, project: str, stack: str) -> Path:
    return state / ".pulumi" / "stacks" / project / f"{stack}.json"


def _is_state(file: Path) -> bool:
    try:
        latest_of(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return True


def _latest(state: Path, project: str, stack: str) -> dict[str, Any] | None:
    file = _file(state, project, stack)
    if not file.exists():
        return None
    try:
        return latest_of(file.read_text(encoding="utf-8"))
    except ValueError as error:
        repair = f"`.venv/bin/bezel local recover {shell_word(stack)}` restores the previous one."
        raise UserError(Problem(str(file), None, f"it is not a state of the engine: {error!r}.", repair)) from None


def mask_secrets(value: Any) -> Any:
    """A value of a state or of the event log, each secret in it as `[secret]`."""
    if isinstance(value, list):
        return [mask_secrets(item) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get(SIGNATURE) == SECRET:
        return "[secret]"
    return {name: mask_secrets(item) for name, item in value.items()}


def remove_truncated(state: Path) -> list[Path]:
    """Remove truncated attributes and locks; nothing is lost, and an engine that is writing them is not disturbed.

    Args:
        state: The folder of the file backend.

    Returns:
        The removed files.
    """
    removed = []
    locks = state / ".pulumi" / "locks"
    written = [*(state / ".pulumi").rglob("*.attrs"), *locks.rglob("*.json"), *locks.rglob("*.tmp")]
    for file in sorted(written):
        with contextlib.suppress(OSError):
            if file.is_file() and _is_cut(file):
                file.unlink()
                removed.append(file)
    return removed


def _is_cut(file: Path) -> bool:
    if file.suffix == ".tmp":
        return time.time() - file.stat().st_mtime > _WRITING_SECONDS
    try:
        read_json(file.read_bytes())
    except ValueError:
        return True
    return False
