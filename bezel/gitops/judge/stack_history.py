"""Judging keys of a project's stacks as they counted before a deploy, those of stacks without a record included.

A stack that is deployed later than another one is compared with what it had when the project was first recorded, and
not with the commit that the other one has brought. Leaves out the comparison (`gate`).
"""

from collections.abc import Mapping

from bezel.engine.project.project import Project
from bezel.gitops.judge.paths import STACK_FILE
from bezel.gitops.judge.record import Record
from bezel.gitops.judge.stack_keys import judging_keys, of_new_stack
from bezel.gitops.judge.trees import FILE_MODES, Tree, contents, files_of
from bezel_base.errors import UserError

Keys = Mapping[str, str]


def keys_of_stacks(project: Project, files: Tree) -> dict[str, Keys]:
    """The judging keys of each stack that has a file in a tree; none for a link, and for a file that git lacks.

    Raises:
        UserError: git failed.
    """
    entries = {match["stack"]: entry for path, entry in files.items() if (match := STACK_FILE.fullmatch(path))}
    stored = contents(project.folder, [entry.id for entry in entries.values() if entry.mode in FILE_MODES])
    return {
        stack: judging_keys(stored[entry.id], project.name) if entry.id in stored else {}
        for stack, entry in entries.items()
    }


def keys_before(project: Project, newest: Record | None, present: Mapping[str, Keys]) -> dict[str, Keys]:
    """The keys with which each stack is compared unless it has a record of its own.

    Without any record those of now count. A stack that the newest record does not know is new. Where an earlier version
    of bezel has written that record, its commit is read; in a clone without it every key counts as changed.

    Args:
        project: The project.
        newest: Its newest record.
        present: Stack -> its judging keys now.
    """
    if newest is None:
        return dict(present)
    earlier = newest.stacks if newest.stacks is not None else _at(project, newest.commit)
    if earlier is None:
        return {stack: {} for stack in present}
    return {stack: of_new_stack(keys) for stack, keys in present.items()} | dict(earlier)


def _at(project: Project, commit: str) -> dict[str, Keys] | None:
    try:
        return keys_of_stacks(project, files_of(project.folder, commit))
    except UserError:
        return None  # a clone without that commit
