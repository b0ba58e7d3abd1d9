"""Git checkout that a pipeline deploys from: its commit, its tree, and whether it has other files than that tree.

A review is stored by the tree: the same files have the same tree, on whatever branch and with whatever history.
"""

from dataclasses import dataclass
from pathlib import Path

from bezel.engine.project.git import GitError, git
from bezel_base.errors import Problem, UserError


@dataclass(frozen=True)
class Checkout:
    """A commit as it is checked out.

    Attributes:
        commit: The commit's hash.
        tree: The hash of the commit's tree.
        changed: Paths that differ from the tree, those of ignored files excepted; at most 20.
    """

    commit: str
    tree: str
    changed: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether the files are those of the tree."""
        return not self.changed


def checkout_of(folder: Path) -> Checkout:
    """The checkout around a folder.

    Raises:
        UserError: There is none, it has no commit yet, or git is missing.
    """
    commit, tree = (_git(folder, "rev-parse", "--verify", name) for name in ("HEAD^{commit}", "HEAD^{tree}"))
    # Files that a submodule or another program ignores by their own rules are not part of the tree either.
    status = _git(folder, "status", "--porcelain", "--untracked-files=normal", "-z")
    changed = tuple(entry[3:] for entry in status.split("\0") if len(entry) > 3)
    return Checkout(commit, tree, changed[:20])


def _git(folder: Path, *arguments: str) -> str:
    try:
        return git(folder, *arguments)
    except GitError as error:
        consequence = f"the tree that is deployed cannot be read: {error}"
        repair = "run this in a checkout with at least one commit; as another user, `git config safe.directory` first."
        raise UserError(Problem(str(folder), None, consequence, repair)) from None
