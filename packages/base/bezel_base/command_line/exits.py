"""Exits of commands on failures of the machine: closed output, full disk, unusable path.

Owns the texts of failures that any command may meet. A failure that only one command can explain is that command's.
"""

import errno
import os
import select
import sys
from pathlib import Path

from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem, UserError

READER_GONE = 128 + 13
"""Exit code of a program whose output has no reader any more, as the shell reports it for SIGPIPE."""

_FULL = (errno.ENOSPC, errno.EDQUOT)
_REPAIRS = {
    errno.ENAMETOOLONG: "choose a shorter name; a part of a path has 255 bytes at most.",
    **dict.fromkeys(_FULL, "free some space there, then run the command again."),
    errno.EROFS: "choose a path on a writable disk.",
    **dict.fromkeys((errno.EACCES, errno.EPERM), "choose a path that you may use, or change its permissions."),
    **dict.fromkeys((errno.EEXIST, errno.ENOTDIR), "choose another path; a folder is needed there."),
    errno.EISDIR: "choose a file in that folder.",
    errno.ELOOP: "choose another path; its links form a circle.",
}


def user_error(error: OSError) -> UserError | None:
    """The user's error of a file system failure; None for any other failure, which is an error of the program."""
    repair = _REPAIRS.get(error.errno or 0)
    name = error.filename  # a descriptor's number, where the call got one
    path = os.fsdecode(name) if isinstance(name, str | bytes) else "" if name is None else str(name)
    if repair is None or not (path or error.errno in _FULL):
        return None
    path = path or "the disk"
    shortened = path if len(path) <= 200 else f"{path[:120]}... ({len(os.fsencode(path))} bytes)"
    return UserError(Problem(shortened, None, f"the system reports: {error.strerror}.", repair))


def reader_gone() -> bool:
    """Whether the reader of the output is gone; if so, silence the interpreter's own error at exit."""
    gone = False
    for stream in (sys.stdout, sys.stderr):
        try:
            number = stream.fileno()
        except (OSError, ValueError):  # captured, or closed
            continue
        poll = select.poll()
        poll.register(number, 0)
        if any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0)):
            gone = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    return gone


def write_output(option: str, path: Path, content: str | bytes) -> None:
    """Write a file that the user named.

    Raises:
        UserError: It cannot be written.
    """
    try:
        write_whole(path, content)
    except OSError as error:
        consequence = f"it cannot be written: {error.strerror}."
        raise UserError(Problem(option, str(path), consequence, "choose another path.")) from None
