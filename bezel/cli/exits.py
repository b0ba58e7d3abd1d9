"""Exits of commands on failures of the machine: closed output, full disk, unusable path.

Owns the texts of failures that any command may meet. A failure that only one command can explain is that command's.
"""

from __future__ import annotations

import errno
import os
import select
import sys

READER_GONE = 128 + 13
"""Exit code of a program whose output has no reader any more, as the shell reports it for SIGPIPE."""

_REPAIRS = {
    errno.ENAMETOOLONG: "A part of a path has 255 bytes at most: take a shorter name.",
    errno.ENOSPC: "Free some space there, then run it again.",
    errno.EDQUOT: "Free some space there, then run it again.",
    errno.EROFS: "Name a place that can be written.",
    errno.EACCES: "Name a place that is yours, or have its permissions changed.",
    errno.EPERM: "Name a place that is yours, or have its permissions changed.",
    errno.EEXIST: "A folder is needed there: name another place.",
    errno.ENOTDIR: "A folder is needed there: name another place.",
    errno.EISDIR: "A file is needed there: name one in that folder.",
    errno.ELOOP: "Its links lead in a circle: name another place.",
}


def told(error: OSError) -> str | None:
    """The user's text of a file system failure; None for any other failure, which is an error of the program."""
    repair = _REPAIRS.get(error.errno or 0)
    where = _shown(error.filename) if error.filename is not None else ""
    if repair is None or not (where or error.errno in (errno.ENOSPC, errno.EDQUOT)):
        return None
    return f"{where or 'the disk'}: {error.strerror}. {repair}"


def _shown(path: object) -> str:
    text = os.fsdecode(path) if isinstance(path, str | bytes) else str(path)
    return text if len(text) <= 200 else f"{text[:120]}... ({len(os.fsencode(text))} bytes)"


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
