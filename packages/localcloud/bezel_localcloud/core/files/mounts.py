"""Folders that show buckets as a mount does: one hard link for each object whose name can be a file's.

A name's slashes are folders. As with Cloud Storage FUSE, an object whose name no file can have ("a//b", "../a", a part
of more than 255 bytes) does not appear, and where one name is also the folder of another, the folder appears. The links
are derived from the objects' rows and can be made again at any time.
"""

import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

_LONGEST_PART = 255  # bytes of a file's name
Content = Callable[
    [str, str], Path | None
]  # bucket, object -> the file with its bytes, None if there is no such object


class MountFolders:
    """The folders of all buckets."""

    def __init__(self, root: Path, temporary: Path, content: Content) -> None:
        """Keep folders up to date.

        Args:
            root: Folder of the buckets' folders.
            temporary: Folder of the same file system for links before they replace others.
            content: Finds the bytes of an object.
        """
        self._root = root
        self._temporary = temporary
        self._content = content

    def path(self, bucket: str, name: str) -> Path | None:
        """The path of an object in its bucket's folder, None for a name that no file can have."""
        parts = name.removesuffix("/").split("/")
        if any(part in {"", ".", ".."} or "\0" in part or len(part.encode()) > _LONGEST_PART for part in parts):
            return None
        return self._root.joinpath(bucket, *parts)

    def show(self, bucket: str, name: str) -> None:
        """Make the folder agree with an object that was written or deleted."""
        path, content = self.path(bucket, name), self._content(bucket, name)
        if path is None:
            return
        if content is None:
            self._hide(bucket, name, path)
        elif name.endswith("/"):
            self._make_folder(self._root / bucket, path)
        else:
            self._show_file(bucket, path, content)

    def rebuild(self, buckets: dict[str, list[str]]) -> None:
        """Make all folders agree with the objects (bucket -> names), changing only what differs."""
        self._root.mkdir(exist_ok=True, mode=0o700)
        for folder in self._root.iterdir():
            if folder.name not in buckets:
                shutil.rmtree(folder)
        for bucket, names in buckets.items():
            (self._root / bucket).mkdir(exist_ok=True)
            wanted = {self.path(bucket, name) for name in names}
            for path in sorted((self._root / bucket).rglob("*"), reverse=True):
                if path.is_dir() and not path.is_symlink():
                    _remove_if_empty(path)  # the folder of an object "name/" is made again below
                elif path not in wanted:
                    path.unlink()
            for name in names:
                self.show(bucket, name)

    def _hide(self, bucket: str, name: str, path: Path) -> None:
        folder = self._root / bucket
        if not name.endswith("/"):
            if path.is_dir():
                return
            path.unlink(missing_ok=True)
            path = path.parent
        while path != folder:
            inner = path.relative_to(folder).as_posix()
            if self._content(bucket, f"{inner}/") is not None or not _remove_if_empty(path):
                return
            if (content := self._content(bucket, inner)) is not None:
                self._link(content, path)
                return
            path = path.parent

    def _make_folder(self, root: Path, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):  # an object has the name of this folder: the folder appears
            for part in [folder, *folder.parents]:
                if part.is_relative_to(root) and part.is_file():
                    part.unlink()
            folder.mkdir(parents=True, exist_ok=True)

    def _show_file(self, bucket: str, path: Path, content: Path) -> None:
        try:
            os.link(content, path)  # the usual case, in one step: a new name in a folder that is there
        except OSError:
            if not path.is_dir():
                self._make_folder(self._root / bucket, path.parent)
                self._link(content, path)

    def _link(self, content: Path, path: Path) -> None:
        if path.exists() and path.samefile(content):
            return
        link = self._temporary / uuid.uuid4().hex
        try:
            second_name(content, link)
            link.replace(path)
        finally:
            link.unlink(missing_ok=True)


def second_name(file: Path, path: Path) -> None:
    """Make a file appear under another path too: a hard link, or a copy where the file system has no links."""
    try:
        os.link(file, path)
    except OSError:
        shutil.copyfile(file, path)


def _remove_if_empty(folder: Path) -> bool:
    try:
        folder.rmdir()
    except OSError:
        return False
    return True
