"""Comparison of two commits, stack by stack: files written to a temporary folder, imports read, plans compared.

Owns the steps and the process that plans a tree. The rules are in `rules`, git in `git_trees`. A plan of another tree
is made by that tree's own code; nothing that the comparison cannot tell is left out of the result.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from bezel.engine.project.pipeline_file import pipeline_of
from bezel.engine.project.project import Project
from bezel.gitops.changed import plan_probe
from bezel.gitops.changed.git_trees import base_of, changes_between, checked_git, write_tree
from bezel.gitops.changed.import_closure import KINDS, UnparsedError, closures, import_roots
from bezel.gitops.changed.report import ChangedReport
from bezel.gitops.changed.rules import (
    STACK_FILE,
    Concerned,
    FileChange,
    Program,
    Reason,
    find_concerned,
    needs_plans,
    needs_program,
)
from bezel_base.console import note
from bezel_base.errors import UserError
from bezel_base.json_documents import read_json

SECONDS = 120.0
Plans = Mapping[str, Mapping[str, str]]
# All that planning needs of the environment: the code of a tree gets no credentials, and the cloud does not count.
_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")


class UnplannedError(Exception):
    """The plans of a tree could not be made."""


def changed_stacks(folder: Path, base: str, environ: Mapping[str, str]) -> ChangedReport:
    """The stacks that the commits since a base concern.

    Args:
        folder: Of the Pulumi project.
        base: A revision; "" for that of the run's event, else where HEAD left origin's default branch.
        environ: Of the run.

    Raises:
        UserError: The base is unknown here, git failed, or `bezel.toml` of HEAD has problems.
    """
    head, base = checked_git(folder, "rev-parse", "--verify", "HEAD^{commit}"), base_of(folder, base, environ)
    if checked_git(folder, "status", "--porcelain", "--untracked-files=no"):
        note("uncommitted changes are not part of the comparison")
    changes = changes_between(folder, base, head)
    if not changes:
        return ChangedReport(base, head, Concerned({}))
    with tempfile.TemporaryDirectory(prefix="bezel-changed-") as scratch:
        old, new = (write_tree(folder, commit, Path(scratch) / name) for name, commit in (("old", base), ("new", head)))
        pipeline = pipeline_of(Project(new))
        affected = compare_trees(old, new, changes, plans).within(_deployed_before(old), pipeline.stacks)
        return ChangedReport(base, head, affected, pipeline.stacks)


def _deployed_before(old: Path) -> Collection[str]:
    """The stacks that the pipeline of the older tree deployed; none where its file has problems."""
    try:
        return pipeline_of(Project(old)).stacks
    except UserError as error:
        note(f"bezel.toml of the base is not compared: {error.problems[0]}")
        return ()


def compare_trees(old: Path, new: Path, changes: list[FileChange], plans_of: Callable[[Path], Plans]) -> Concerned:
    """The stacks that changes between two trees concern; every stack where the trees do not tell."""
    names = sorted(file["stack"] for path in new.iterdir() if (file := STACK_FILE.fullmatch(path.name)))
    both = {name: tuple(KINDS) for name in names}
    if not needs_program(changes):
        return find_concerned(changes, Program(both, {}))
    try:
        loaded = [closures(tree) for tree in (old, new)]
        either = {kind: loaded[0][kind] | loaded[1][kind] for kind in KINDS}
        after = plans_of(new)
        kinds = {name: (kind,) if (kind := after.get(name, {}).get("kind")) else both[name] for name in names}
        program = Program(kinds, either)
        if open_stacks := needs_plans(changes, program):
            before = plans_of(old)
            differing = {
                name: parts for name in open_stacks if (parts := _differing(before.get(name, {}), after.get(name, {})))
            }
            program = Program(kinds, either, differing)
    except (UnparsedError, UnplannedError) as error:
        everything = find_concerned(changes, Program(both, {}))
        why = Reason(f"the change cannot be followed, so it may concern every stack: {error}")
        reasons = {name: (why, *everything.reasons.get(name, ())) for name in names}
        return Concerned(reasons, everything.deleted, (why, *everything.every))
    return find_concerned(changes, program)


def _differing(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    return ", ".join(sorted(name for name in {*before, *after} - {"price"} if before.get(name) != after.get(name)))


def plans(tree: Path) -> Plans:
    """The plans of all stacks of a tree, part by part, made by the tree's own code in a process of its own.

    Raises:
        UnplannedError: They could not be made.
    """
    # -P keeps the script's own folder off the path; the tree comes before the installed program.
    command = [sys.executable, "-P", plan_probe.__file__]
    environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    roots = os.pathsep.join(map(str, import_roots(tree)))
    environment |= {"PYTHONPATH": roots, "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        ended = subprocess.run(
            command,
            cwd=tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            check=False,
            timeout=SECONDS,
        )
        by_stack: Plans = read_json(ended.stdout) if ended.returncode == 0 else {}
    except (OSError, subprocess.TimeoutExpired, ValueError) as error:
        raise UnplannedError(f"the stacks could not be planned ({error})") from None
    if ended.returncode:
        last = (ended.stderr.strip().splitlines() or ["no output"])[-1]
        raise UnplannedError(f"the stacks could not be planned ({last})")
    return by_stack
