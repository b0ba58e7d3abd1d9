"""A git working copy whose commits go to the tests' forge. Leaves out the forge's API (`forge`)."""

import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from bezel.engine.local.stack_copy import without_keys

ROOT = Path(__file__).parents[3]
SECONDS = 120


@dataclass(frozen=True)
class WorkingCopy:
    """A folder under git, and the address that it pushes to."""

    folder: Path
    remote: str
    author: str = "team"

    def git(self, *arguments: str, ok: bool = True) -> str:
        """Run git in the folder; return what it printed."""
        mail = f"{self.author}@forge.test"
        variables = {f"GIT_{role}_{key}": value for role in ("AUTHOR", "COMMITTER") for key, value in
                     (("NAME", self.author), ("EMAIL", mail))}  # fmt: skip
        # git reads nobody's settings, and asks nobody for a password.
        variables |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}
        ended = subprocess.run(
            ["git", "-c", "init.defaultBranch=main", "-c", "advice.detachedHead=false", *arguments],
            cwd=self.folder, env=os.environ | variables, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
        assert ended.returncode == 0 or not ok, ended.stderr
        return ended.stdout.strip()

    @classmethod
    def of(cls, folder: Path, remote: str, files: Iterable[str], author: str = "team") -> "WorkingCopy":
        """A new repository with these files of the clone in its first commit, on `main`."""
        folder.mkdir(parents=True)
        for name in files:
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target, follow_symlinks=False)
            if name.startswith("Pulumi."):  # a salt that pulumi wrote into the working tree belongs to another backend
                target.write_text(without_keys(target.read_text()))
        copy = cls(folder, remote, author)
        copy.git("init", "--quiet")
        copy.commit("Begin")
        return copy

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        target = self.folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def commit(self, message: str) -> str:
        """Commit everything; return the commit."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def push(self, branch: str = "HEAD", *, force: bool = False) -> None:
        """Push HEAD as a branch."""
        target = f"HEAD:refs/heads/{branch}" if branch != "HEAD" else "HEAD"
        self.git("push", "--quiet", *(["--force"] if force else []), self.remote, target)

    def branch(self, name: str, *, start: str = "main") -> None:
        """Begin a branch at the remote's `start`."""
        self.git("fetch", "--quiet", self.remote, start)
        self.git("checkout", "--quiet", "-B", name, "FETCH_HEAD")


def tracked_files() -> list[str]:
    """The files of this clone that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT, capture_output=True, text=True, timeout=SECONDS, check=True,
    )  # fmt: skip
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).exists()]
