"""Place of the forge on this machine: its folder, the lock of its keeper, and the end of everything that is in it."""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from bezel.engine.project.git import GitError, git
from bezel_base.errors import UserError
from bezel_base.process_status import end_marked
from bezel_base.state_folder import state_folder
from bezel_localcloud import control
from bezel_localcloud.core.files.locks import hold_lock, is_locked
from bezel_localcloud.core.paths import Paths
from tests.support.gitops.machine import MARK

UP_SECONDS = 1800.0
"""Time limit of a start: on a busy machine each job of the pull request takes minutes."""
DOWN_SECONDS = 90.0
REMOTE = "forge"
"""Name of the remote that the owner of a project adds."""
_FORGE_MARK = "GITEA_WORK_DIR"
_CLEAR_SECONDS = 20.0
_LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Place:
    """The folder of a forge, which only this user can read: it holds passwords and tokens."""

    folder: Path

    @classmethod
    def of_user(cls) -> "Place":
        """The one place of this user."""
        return cls(state_folder("forge"))

    @classmethod
    def at(cls, folder: str) -> "Place":
        """The place in a folder."""
        return cls(Path(folder))

    @property
    def log(self) -> Path:
        """The keeper's output: a line for each step, and what failed."""
        return self.folder / "keeper.log"

    @property
    def ready(self) -> Path:
        """The text about the running forge; it exists once all is there."""
        return self.folder / "ready"

    @property
    def cloud(self) -> Path:
        """The folder of the embedded cloud that the jobs deploy to."""
        return self.folder / "pipeline" / "cloud"

    def project(self) -> Path | None:
        """The folder of the project that the forge has; None for this clone."""
        with suppress(FileNotFoundError):
            return Path(self._project.read_text(encoding="utf-8"))
        return None

    def write_project(self, project: Path | None) -> None:
        """Keep the folder of the project that the forge gets."""
        if project:
            self._project.write_text(str(project), encoding="utf-8")

    @property
    def _project(self) -> Path:
        return self.folder / "project"

    @property
    def lock(self) -> Path:
        """Lock that the keeper holds while it lives; it holds the keeper's process id."""
        return self.folder / "keeper.lock"

    def prepare(self) -> None:
        """Make the folder."""
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.folder.chmod(0o700)

    def is_kept(self) -> bool:
        """Whether a keeper lives."""
        return is_locked(self.lock)

    def lines(self) -> list[str]:
        """The complete lines of the keeper's output."""
        with suppress(FileNotFoundError):
            return self.log.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
        return []

    @contextmanager
    def hold_lock(self) -> Iterator[None]:
        """Hold the keeper's lock.

        Raises:
            BlockingIOError: Another keeper holds it.
        """
        with hold_lock(self.lock, 0, BlockingIOError):
            self.lock.write_text(str(os.getpid()), encoding="utf-8")
            yield

    def end(self, seconds: float) -> bool:
        """Ask the keeper to end; whether it did within that time. Afterwards none lives."""
        number, end = signal.SIGTERM, time.monotonic() + seconds
        while self.is_kept():
            with suppress(ValueError, ProcessLookupError):
                os.kill(int(self.lock.read_text()), number)
            until = time.monotonic() + (seconds if number == signal.SIGTERM else 1.0)
            while self.is_kept() and time.monotonic() < until:
                time.sleep(_LOOK_SECONDS)
            number = signal.SIGKILL
        return number == signal.SIGTERM or time.monotonic() < end

    def remote(self) -> str:
        """The address by which the project's owner pushes, which holds a password; "" where there is none."""
        with suppress(FileNotFoundError):
            lines = self.ready.read_text(encoding="utf-8").splitlines()
            return next((line.strip() for line in lines if line.endswith(".git")), "")
        return ""

    def remove_remote(self) -> None:
        """Remove the remote that the printed steps add to the project; another one of its name stays."""
        project, address = self.project(), self.remote()
        if project and address:
            with suppress(GitError, UserError):
                if git(project, "remote", "get-url", REMOTE) == address:
                    git(project, "remote", "remove", REMOTE)

    def clear(self, *, keep_log: bool = False) -> None:
        """End every process that a keeper left, and remove the folder, and the remote of the project."""
        if not self.folder.is_dir():
            return
        self.remove_remote()
        marks = [(MARK, place) for place in self.folder.glob("runner-*")]
        for name, value in [*marks, (_FORGE_MARK, self.folder / "gitea")]:
            # Again and again: one that is ended may just have started another.
            end = time.monotonic() + _CLEAR_SECONDS
            while end_marked(name, str(value)) and time.monotonic() < end:
                time.sleep(_LOOK_SECONDS)
        # The team's own cloud, and those of rehearsals that were under way.
        for lock in list(self.folder.rglob(Paths(self.folder).daemon_lock.name)):
            control.stop(lock.parent)
        # The guard of a killed keeper may remove the same at the same time.
        with suppress(FileNotFoundError):
            for entry in list(self.folder.iterdir()):
                if keep_log and entry == self.log:
                    continue
                if entry.is_dir() and not entry.is_symlink():
                    shutil.rmtree(entry, ignore_errors=True)
                else:
                    entry.unlink(missing_ok=True)
            if not keep_log:
                self.folder.rmdir()
