"""Handling of a full disk: its detection, the caller's error, and writes that wait for room."""

import asyncio
import errno
import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path

from bezel.localcloud.core.errors import ApiError

log = logging.getLogger(__name__)
_ROOM_SECONDS = 1.0  # between two attempts while the disk is full
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
# Not every file system reports "full" to SQLite: some only fail the write.
_SQLITE = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE})


def is_full(error: BaseException) -> bool:
    """Whether an error means that the disk has no room or accepts no more of this file."""
    if isinstance(error, sqlite3.Error):
        return getattr(error, "sqlite_errorcode", None) in _SQLITE
    return isinstance(error, OSError) and error.errno in _FULL


def storage_full(root: Path) -> ApiError:
    """500: no part of the request was carried out.

    Args:
        root: The folder that cannot grow.
    """
    text = (
        f"localcloud's disk is full: {root} takes no more data, so nothing of this request was done. Free some space "
        "there, then send it again."
    )
    return ApiError("INTERNAL", text)


async def written(change: Callable[[], None]) -> None:
    """Make a change of the store as soon as the disk has room for it: the end of an operation must not be lost."""
    while True:
        try:
            change()
        except sqlite3.OperationalError as error:
            if not is_full(error):
                raise
            log.warning("a change waits for room on the disk")
            await asyncio.sleep(_ROOM_SECONDS)
        else:
            return
