"""Files that another user of the machine may read, write or enter, were they somewhere else than in a closed folder."""

import stat
from pathlib import Path


def open_to_others(folder: Path) -> list[str]:
    """Path and mode of each file and folder, but links, that not only its owner may use."""
    modes = ((path, path.lstat().st_mode) for path in (folder, *folder.rglob("*")))
    return [f"{path} {stat.filemode(mode)}" for path, mode in modes if mode & 0o077 and not stat.S_ISLNK(mode)]
