"""The two trees of a change in git: which commit is the base, which files differ, and their files on disk.

Owns the calls of git, each with a deadline; neither the working copy nor its index is touched. Leaves out what a file
means (`rules`).
"""

from collections.abc import Mapping
from pathlib import Path

from bezel.engine.project.git import GitError, git
from bezel.gitops.changed.rules import FileChange
from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_base.json_documents import read_json

_NO_COMMIT = "0" * 40
_DEFAULT_BRANCHES = ("refs/remotes/origin/HEAD", "refs/remotes/origin/main", "refs/remotes/origin/master")
_DEPTH = "fetch the whole history: `fetch-depth: 0` of actions/checkout, or `git fetch --unshallow`."


def base_of(folder: Path, revision: str, environ: Mapping[str, str]) -> str:
    """The commit that HEAD is compared with.

    Args:
        folder: Of the project.
        revision: The user's choice; "" for that of the run's event, else where HEAD left the default branch.
        environ: Of the run; GITHUB_EVENT_PATH names its event.

    Raises:
        UserError: There is no such commit here, as in a shallow clone.
    """
    if revision:
        return _commit(folder, revision, "--base")
    if checked_git(folder, "rev-parse", "--is-shallow-repository") == "true":
        consequence = "the history ends before the change begins, so the stacks that it concerns are unknown."
        raise UserError(Problem(str(folder), "shallow clone", consequence, _DEPTH))
    event = _event(environ)
    pull = event.get("pull_request")
    if isinstance(pull, Mapping) and isinstance(base := pull.get("base"), Mapping):
        return _merge_base(folder, _commit(folder, str(base.get("sha") or ""), "base of the pull request"))
    before = str(event.get("before") or _NO_COMMIT)
    if before != _NO_COMMIT:
        return _commit(folder, before, "commit before the push")
    return _merge_base(folder, _default_branch(folder))


def pull_request_base(folder: Path, revision: str, environ: Mapping[str, str]) -> str:
    """The tip of the branch that HEAD is to be merged into; "" where none is known.

    Args:
        folder: Of the project.
        revision: A revision of the user's choice; "" for that of the run's event, else of the default branch.
        environ: Of the run; GITHUB_EVENT_PATH and GITHUB_BASE_REF name the base of a pull request.

    Raises:
        UserError: The run is one of a pull request, and this clone lacks its base.
    """
    if revision:
        return _commit(folder, revision, "--base")
    pull = _event(environ).get("pull_request")
    base = pull.get("base") if isinstance(pull, Mapping) else None
    named = base if isinstance(base, Mapping) else {}
    if branch := str(named.get("ref") or environ.get("GITHUB_BASE_REF") or ""):
        tip = _first(folder, f"refs/remotes/origin/{branch}")
        return tip or _commit(folder, str(named.get("sha") or branch), "base of the pull request")
    return _first(folder, *_DEFAULT_BRANCHES, "refs/heads/main", "refs/heads/master")


def changes_between(folder: Path, base: str, head: str) -> list[FileChange]:
    """The changed files; a renamed one is deleted and added. Paths are those below the project's folder.

    Raises:
        UserError: git failed.
    """
    prefix = checked_git(folder, "rev-parse", "--show-prefix")
    listed = checked_git(folder, "diff", "--name-status", "--no-renames", "--no-ext-diff", "-z", base, head).split("\0")
    pairs = zip(listed[::2], listed[1::2], strict=False)
    return [FileChange(status, below(prefix, path)) for status, path in pairs]


def below(prefix: str, path: str) -> str:
    """A path of the checkout relative to the project's folder; with a leading slash if it is outside of it."""
    return path[len(prefix) :] if path.startswith(prefix) else f"/{path}"


def write_tree(folder: Path, commit: str, target: Path) -> Path:
    """Write the files of a commit below `target`; return the project's folder there.

    Raises:
        UserError: git failed.
    """
    target.mkdir()
    index = {"GIT_INDEX_FILE": str(target.with_suffix(".index"))}
    prefix = checked_git(folder, "rev-parse", "--show-prefix")
    checked_git(folder, "read-tree", commit, variables=index)
    top = Path(checked_git(folder, "rev-parse", "--show-toplevel"))
    checked_git(top, "checkout-index", "--all", f"--prefix={target}/", variables=index)
    return target / prefix if prefix else target


def _event(environ: Mapping[str, str]) -> Mapping[str, object]:
    path = environ.get("GITHUB_EVENT_PATH", "")
    try:
        event = read_json(Path(path).read_bytes()) if path else {}
    except (OSError, ValueError) as error:
        consequence = f"the run's event cannot be read ({error}), so the base of the change is unknown."
        repair = "unset it, or choose the base with `--base REV`."
        raise UserError(Problem("GITHUB_EVENT_PATH", path, consequence, repair)) from None
    return event if isinstance(event, Mapping) else {}


def _default_branch(folder: Path) -> str:
    if branch := _first(folder, *_DEFAULT_BRANCHES):
        return branch
    consequence = "origin's default branch is unknown, so there is nothing to compare with."
    repair = "choose one with `--base REV`, or `git remote set-head origin --auto`; a pipeline needs `fetch-depth: 0`."
    raise UserError(Problem("--base", NOT_SET, consequence, repair))


def _first(folder: Path, *names: str) -> str:
    """The commit of the first reference that exists; "" where none does."""
    for name in names:
        try:
            return git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
        except GitError:
            continue
    return ""


def _merge_base(folder: Path, commit: str) -> str:
    try:
        return git(folder, "merge-base", commit, "HEAD")
    except GitError:
        consequence = "it has no commit in common with HEAD here, so the change is unknown."
        raise UserError(Problem("base", commit, consequence, _DEPTH)) from None


def _commit(folder: Path, revision: str, what: str) -> str:
    try:
        return git(folder, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    except GitError:
        consequence = "this clone has no such commit, so the change is unknown."
        raise UserError(Problem(what, revision, consequence, f"correct it, or {_DEPTH}")) from None


def checked_git(folder: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> str:
    """The output of git.

    Raises:
        UserError: It failed, or is missing.
    """
    try:
        return git(folder, *arguments, variables=variables)
    except GitError as error:
        consequence = f"git {arguments[0]} failed, so the change is unknown: {error}"
        repair = "run this in a checkout with at least one commit."
        raise UserError(Problem(str(folder), None, consequence, repair)) from None
