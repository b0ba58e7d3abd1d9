"""Judge of a pull request: packs, limits, prices and code of its base branch, and what it changes in them.

The base is the tip of the base branch. What the branch has not touched is the base's, however old the branch is. The
packs are run from an export of the base, by an interpreter that finds no module in the judged tree; the code of this
process must be the base's, which its caller has to see to (`own_code`). Leaves out what judges a deploy (`gate`).
"""

import contextlib
import os
import shlex
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bezel.engine.outcomes import RefusedError
from bezel.engine.project.git import GitError, git
from bezel.engine.project.project import Project
from bezel.gitops.changed.git_trees import below, checked_git, pull_request_base
from bezel.gitops.changed.import_closure import import_roots
from bezel.gitops.changed.rules import PROJECT_CATALOGUE
from bezel.gitops.judge.changes import JudgeChange, changes_between, in_order, keys_changed
from bezel.gitops.judge.document import document
from bezel.gitops.judge.own_code import CODE, second_checkout
from bezel.gitops.judge.paths import STACK_FILE, is_judge, is_loaded, makes_environment
from bezel.gitops.judge.stack_keys import judging_keys, of_new_stack
from bezel.gitops.judge.trees import Entry, Tree, contents, files_of, is_same_file, judging, write_files
from bezel_base.errors import Problem
from bezel_base.text.shell import shell_word

_CODE_OF_PROJECT = "bezel/__init__.py"
# Key of the project file by which the engine finds language hosts and analyzers; files that it may read in its place.
_PROJECT_FILE, _PLUGINS = "Pulumi.yaml", "plugins"
_OTHER_PROJECT_FILES = ("Pulumi.yml", "Pulumi.json")
_VENV = ".venv"
_PYTHON = """#!/bin/sh
PYTHONPATH={path} PYTHONSAFEPATH=1 exec {python} "$@"
"""


@dataclass(frozen=True)
class BaseJudge:
    """What judges a stack's preview.

    Attributes:
        project: The project in the judged checkout.
        commit: The base's commit; "" where none is known, so that the checkout judges itself.
        files: The judging files of the base.
        changes: What the checkout changes in them, and in the keys of the stack's file that judge.
        uncommitted: Judging files that differ from the checkout's commit.
        behind: Judging files that the base has changed since the checkout's branch left it.
        code: The folder that holds the code of this process.
        is_first_deploy: Whether nothing was deployed yet, so that the next deploy is compared with nothing.
    """

    project: Project
    commit: str = ""
    files: Tree = field(default_factory=dict)
    changes: Sequence[JudgeChange] = ()
    uncommitted: Sequence[str] = ()
    behind: Sequence[str] = ()
    code: Path = CODE
    is_first_deploy: bool = False

    def as_json(self) -> dict[str, object] | None:
        """The part of a report; None where nothing that judges differs."""
        if not self.commit:
            return document("this checkout judges itself, as no base branch is known; name one with --base")
        if self.uncommitted:
            listed = ", ".join(self.uncommitted[:5])
            statement = f"the base {self.commit[:8]} judges, without the uncommitted changes of {listed}"
            return document(statement, self.changes, base=self.commit)
        if not self.changes:
            return None
        effect = "this change of it stops the deploy until it is approved"
        if self.is_first_deploy:
            effect = "this change of it counts from the first deploy on, which asks for no approval of it"
        statement = f"the base {self.commit[:8]} judges; {effect}"
        return document(statement, self.changes, base=self.commit, first_deploy=self.is_first_deploy)

    def check(self, stack: str) -> None:
        """Refuse to judge by code that the change has made, and by links.

        Raises:
            RefusedError: It is not the base that judges.
        """
        problems = [
            Problem(change.path, None, f"it {change.forbidden}.", "commit a file in its place.")
            for change in self.changes
            if change.forbidden
        ]
        problems += [problem for change in self.changes for problem in _of_engine(change)]
        changed = [change.path for change in self.changes if not change.forbidden]
        differing = dict.fromkeys([*changed, *self.behind, *self.uncommitted])
        loaded = [path for path in differing if self._is_own_code(path)]
        place = self.code if self._holds_code else self.project.folder
        if strange := [path for path in loaded if not is_same_file(place / path, self.files.get(path))]:
            listed = ", ".join(strange[:5]) + (f" and {len(strange) - 5} more" if len(strange) > 5 else "")
            consequence = f"these are not the base's where this command runs from ({place}), and the base judges."
            base = self.commit[:12]
            command = f"`../judge/.venv/bin/bezel ci preview {shell_word(stack)} --base {base}`"
            repair = f"let the base judge: {second_checkout(base)}, then here {command}."
            problems.append(Problem("code of the judge", listed, consequence, repair))
        if problems:
            raise RefusedError(*problems)

    def _is_own_code(self, path: str) -> bool:
        """Whether this process would load a path of the checkout if it ran from there."""
        if self._holds_code:
            return is_loaded(path)
        folder, prefix = self.project.folder.resolve(), Path(sys.prefix).resolve()
        return prefix.is_relative_to(folder) and (makes_environment(path) or (folder / path).is_relative_to(prefix))

    @property
    def _holds_code(self) -> bool:
        return _CODE_OF_PROJECT in self.files or any(change.path == _CODE_OF_PROJECT for change in self.changes)

    @contextlib.contextmanager
    def folder(self) -> Iterator[Path]:
        """The folder whose packs judge while the block runs: an export of the base, or the checkout if it is the same.

        Raises:
            UserError: The base cannot be exported.
        """
        changed = {change.path for change in self.changes if is_judge(change.path)} | {*self.uncommitted, *self.behind}
        if not changed:
            yield self.project.folder
            return
        with tempfile.TemporaryDirectory(prefix="bezel-judge-") as temporary:
            place = Path(temporary)
            write_files(self.project.folder, self.files, place)
            own_venv = self.project.folder.absolute() / _VENV
            is_own = own_venv.is_dir() and not self._holds_code and not any(map(makes_environment, changed))
            python = place / _VENV / "bin" / "python"
            python.parent.mkdir(parents=True)
            interpreter = (own_venv if is_own else Path(sys.prefix)) / "bin" / "python"
            roots = os.pathsep.join(map(str, import_roots(place)))
            python.write_text(_PYTHON.format(path=shlex.quote(roots), python=shlex.quote(str(interpreter))))
            python.chmod(0o755)
            yield place


def _of_engine(change: JudgeChange) -> Iterator[Problem]:
    """The problem of a change by which the engine would start something else in place of the base's packs."""
    is_unknown = change.values is None
    is_plugins = is_unknown or any(key.lower().startswith(_PLUGINS) for key, _, _ in change.values or ())
    if (change.path == _PROJECT_FILE and is_plugins) or (change.path in _OTHER_PROJECT_FILES and change.new):
        consequence = "the engine may start other programs than the base's in place of its packs, so nothing is judged."
        repair = "leave it out; an owner can bring it into the base branch without this check."
        yield Problem(change.path, None, consequence, repair)


def base_judge(project: Project, stack: str, revision: str, environ: Mapping[str, str]) -> BaseJudge:
    """The judge of a stack in a checkout.

    Args:
        project: The project in the checkout.
        stack: The stack's name; it has a file.
        revision: The revision of the base, "" for that of the run's event, else the default branch.
        environ: Of the run.

    Raises:
        UserError: The base is not known here although the run has one, or git failed.
    """
    folder = project.folder
    commit = pull_request_base(folder, revision, environ)
    if not commit:
        return BaseJudge(project)
    base, head = files_of(folder, commit), files_of(folder, "HEAD")
    fork = _fork(folder, commit)
    before = base if fork in ("", commit) else files_of(folder, fork)
    touched = {path for path in {*head, *before} if head.get(path) != before.get(path)}
    merged = {path: entry for path, entry in base.items() if path not in touched}
    merged |= {path: head[path] for path in touched if path in head}
    changes = changes_between(judging(base), judging(merged), lambda ids: contents(folder, ids))
    behind = [path for path in judging({**base, **head}) if path not in touched and base.get(path) != head.get(path)]
    file = project.stack_file(stack)
    uncommitted = _uncommitted_files(folder)
    if file.name in touched or file.name in uncommitted:
        changes += _of_stack(project, file, base.get(file.name))
    judges = tuple(path for path in uncommitted if is_judge(path))
    return BaseJudge(project, commit, judging(base), in_order(changes), judges, behind)


def _fork(folder: Path, commit: str) -> str:
    try:
        return git(folder, "merge-base", commit, "HEAD")
    except GitError:
        return ""  # no commit in common: everything that differs is of the change


def _of_stack(project: Project, file: Path, entry: Entry | None) -> list[JudgeChange]:
    """The change of the judging keys of the stack's file, as it is on disk, since the base's entry of it."""
    if file.is_symlink():
        forbidden = "is a link, so another file chooses the limits: replace it by a file"
        return [JudgeChange(file.name, "", "link", forbidden=forbidden)]
    new = judging_keys(file.read_bytes(), project.name)
    if entry is None:
        return keys_changed(file.name, of_new_stack(new), new)
    blobs = contents(project.folder, [entry.id])
    return keys_changed(file.name, judging_keys(blobs.get(entry.id, b""), project.name), new)


def _uncommitted_files(folder: Path) -> list[str]:
    """Files that differ from HEAD; untracked ones too, but for reports and notes beside the project's file.

    An untracked environment has been installed here, and is not of the change, as one that git ignores.
    """
    prefix = checked_git(folder, "rev-parse", "--show-prefix")
    status = checked_git(folder, "status", "--porcelain", "--untracked-files=all", "--no-renames", "-z").split("\0")
    entries = [(entry[:2], below(prefix, entry[3:])) for entry in status if len(entry) > 3]
    return [path for state, path in entries if state != "??" or _may_count(path)]


def _may_count(path: str) -> bool:
    is_environment = path.startswith(f"{_VENV}/")
    is_input = bool(STACK_FILE.match(path)) or path == PROJECT_CATALOGUE
    return not is_environment and ("/" in path or is_loaded(path) or is_input)
