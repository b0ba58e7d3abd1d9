"""Names of the files in which the engine keeps the states of stacks, in a folder or in a bucket. Pure.

A state is `.pulumi/stacks/PROJECT/STACK.json`, or that name with `.gz` or `.zst`, as PULUMI_DIY_BACKEND_GZIP and _ZSTD
were set for its last run. A run with another setting deletes the file of the run before, and ignores a failure to:
of several files the newest one is the state (`stackPath` in pkg/backend/diy/state.go, 3.274). Beside it may be backups
(`.bak`) and attributes, also those of a removed stack.
"""

import re
from collections.abc import Iterable

FOLDER = ".pulumi/stacks/"
ZSTD = ".zst"
_STATE = re.compile(r"(?P<stack>.+)\.json(?:\.gz|\.zst)?")


def stack_of(file: str) -> str | None:
    """The stack whose state a file is, by its name; None for any other file.

    Args:
        file: Its name, with or without folders: `p/dev.json.gz` is the state of `p/dev`.
    """
    match = _STATE.fullmatch(file)
    return match["stack"] if match else None


def state_file(stack: str, files: Iterable[tuple[str, str | float]]) -> str | None:
    """The name of the file that holds a stack's state; None without one.

    Args:
        stack: The stack, with the folders that the names have.
        files: Names and times of change, all of one form that sorts by time.
    """
    states = [(changed, name) for name, changed in files if stack_of(name) == stack]
    return max(states)[1] if states else None
