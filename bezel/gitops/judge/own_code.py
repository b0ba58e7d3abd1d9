"""Place of the code that judges: in a run of a forge it must lie outside of the working tree that it judges.

A `bezel` that is started from the judged checkout's own environment, or that finds its modules there, is the change's:
the change would judge itself. This shows a mistake in a pipeline; it is no barrier to a change that edits this very
module, which only the workflow's own steps are. By hand nothing is refused here: a developer who judges their own
working copy has written both, and `base.BaseJudge.check` still refuses code that is not the base's.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from bezel.engine.outcomes import Exit
from bezel.engine.project.git import GitError, git
from bezel_base.errors import Problem, UserError
from bezel_base.text.shell import shell_word

CODE = Path(__file__).resolve().parents[3]
"""Folder that holds the code of this process."""
_RUNS = ("CI", "GITHUB_ACTIONS", "GITEA_ACTIONS")
"""Variables that are "true" in a run of a forge."""
_BEFORE = "HEAD^"


class OwnCodeError(UserError):
    """The code that would judge is a part of what it would judge."""

    # Not a WrongValueError: every value of the command line is right, the place that it was started from is not.
    exit_code = Exit.USAGE


def check_place_of_code(
    folder: Path,
    command: str,
    find_base: Callable[[], str],
    environ: Mapping[str, str],
    places: tuple[Path, ...] = (CODE, Path(sys.prefix)),
) -> None:
    """Refuse to judge a working tree by code from it, in a run of a forge.

    Args:
        folder: Of the judged project, in the judged working tree.
        command: What was called, e.g. `bezel ci preview dev`.
        find_base: Returns the commit that judges, "" where none is known; asked only for the repair.
        environ: Of the run.
        places: Folders of the running code and of its environment.

    Raises:
        OwnCodeError: One of the places lies in the judged working tree.
        UserError: git is missing, or did not end in time.
    """
    if not any(environ.get(name) == "true" for name in _RUNS):
        return
    judged = _working_tree(folder)
    inside = [place for place in dict.fromkeys(places) if judged is not None and _working_tree(place) == judged]
    if inside:
        consequence = f"it lies in the checkout that `{command}` would judge, so the change would judge itself."
        try:
            base = find_base() or _BEFORE
        except UserError:
            base = _BEFORE
        repair = f"start it from a second checkout: {second_checkout(base)}, then here `../judge/.venv/bin/{command}`."
        raise OwnCodeError(Problem("code of the judge", str(inside[0]), consequence, repair))


def second_checkout(base: str) -> str:
    """The commands that make a checkout of another commit beside this one, for a message."""
    return f"`git worktree add --detach ../judge {shell_word(base)}` and `make -C ../judge setup`"


def _working_tree(place: Path) -> Path | None:
    """The top of the working tree that holds a folder, as git knows it; None outside of all.

    A working tree within another one is a tree of its own: its files are not those of the outer one's commit.
    """
    while not place.is_dir():
        place = place.parent
    try:
        return Path(git(place, "rev-parse", "--show-toplevel")).resolve()
    except GitError:
        return None
