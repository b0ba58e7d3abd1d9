"""Check of a result's output file before anything is measured."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from bezel.errors import UserError

if TYPE_CHECKING:
    from pathlib import Path

# Samples are stored beside the result, and both are written under another name first: .NAME.samples.npz.PID
_BESIDE = 24
_NAME = 255


def check_out(out: Path) -> None:
    """Refuse a path that no result can be written to.

    Raises:
        UserError: The path is a folder, its folder does not exist or is not writable, or its name is too long.
    """
    try:
        folder = out.absolute().parent
        inside, there = out.is_dir(), folder.is_dir()
    except OSError as error:
        raise UserError(f"--out {out}: {error.strerror}, so the result would be lost. Name another place.") from None
    if inside:
        raise UserError(
            f"--out {out}: it is a folder, so the result would be lost. Name a file in it: {out / 'r.json'}"
        )
    if not there:
        raise UserError(f"--out {out}: there is no such folder, so the result would be lost. Make it first.")
    if len(os.fsencode(out.name)) > _NAME - _BESIDE:
        raise UserError(
            f"--out {out}: a name of {len(os.fsencode(out.name))} bytes leaves no room for the files beside it, so the "
            f"result would be lost. Take one of {_NAME - _BESIDE} at most."
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UserError(f"--out {out}: {folder} cannot be written, so the result would be lost. Name another place.")
