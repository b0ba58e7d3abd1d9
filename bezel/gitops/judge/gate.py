"""Gate of a deploy: what judges it must be what judged the last allowed one, or a person approves the change.

After a merge the base branch is the change, so the record in the state bucket is compared, before anything of the tree
is run. Leaves out the record itself (`record`), and the changes of the stack (`bezel.gitops.review.approval`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bezel.engine.project.project import Project
from bezel.engine.state.bucket import StateBucket
from bezel.gitops.judge.changes import Contents, JudgeChange, changes_between, digest, in_order, keys_changed
from bezel.gitops.judge.document import document
from bezel.gitops.judge.record import DeployHistory, Record, read_deploy_history, write
from bezel.gitops.judge.stack_history import keys_before, keys_of_stacks
from bezel.gitops.judge.stack_keys import judging_keys, of_new_stack
from bezel.gitops.judge.trees import FILE_MODES, contents, files_of, judging
from bezel_base.text.shell import shell_word

_SHORT = 12


@dataclass(frozen=True)
class Judgement:
    """Whether what judges a deploy may judge it.

    Attributes:
        allowed: Whether it may.
        statement: Why, or why not, as a sentence without its full stop.
        record: What judges this deploy.
        changes: How it differs from what judged the last allowed deploy.
        digest: What approves the difference; "" where there is none, or it cannot be approved.
        is_recorded: Whether the stack's own record says the same already.
    """

    allowed: bool
    statement: str
    record: Record
    changes: Sequence[JudgeChange] = ()
    digest: str = ""
    is_recorded: bool = False

    @property
    def is_worth_saying(self) -> bool:
        """Whether a report names it: something differs, or nothing could be compared."""
        return bool(self.changes or self.digest) or not self.allowed

    def as_json(self) -> dict[str, object]:
        """The part of a report."""
        return document(self.statement, self.changes, self.digest)

    def repair(self, stack: str) -> str:
        """What lets the deploy pass."""
        if not self.digest:
            return "commit a file in place of each, and have it reviewed"
        command = f"`bezel ci deploy {shell_word(stack)} --approve-judge {shell_word(self.digest)}`"
        return f"read the changes above; to let them judge, run {command}"


def judgement(
    present: Record, stack_file: str, before: DeployHistory, approved: str, contents_of: Contents
) -> Judgement:
    """Decide whether what judges may do so.

    Args:
        present: What would judge this deploy.
        stack_file: Name of the stack's file.
        before: What the bucket knows of allowed deploys.
        approved: The digest that a person has typed, "" if none.
        contents_of: Contents of git's objects.
    """
    links = [path for path, entry in present.files.items() if entry.mode not in FILE_MODES]
    if links:
        listed = ", ".join(sorted(links)[:5])
        return Judgement(False, f"links and submodules judge by files that nothing compares: {listed}", present)
    if before.newest is None:
        return _without_record(present, before, approved)
    old = before.newest
    changes = changes_between(old.files, present.files, contents_of)
    changes += keys_changed(
        stack_file, before.of_stack.keys if before.of_stack else of_new_stack(present.keys), present.keys
    )
    since = f"the last allowed deploy, of commit {old.commit[:_SHORT]}"
    changes = in_order(changes)
    if not changes:
        is_recorded = before.of_stack is not None and (before.of_stack.files, before.of_stack.keys) == (
            present.files,
            present.keys,
        )
        return Judgement(True, f"the same as for {since}", present, is_recorded=is_recorded)
    key = digest(changes)
    if approved == key:
        return Judgement(True, f"changed since {since}, and approved by its digest", present, changes, key)
    statement = f"changed since {since}, and not approved"
    if approved:
        statement = f"changed since {since}; the digest of --approve-judge is that of another change"
    return Judgement(False, statement, present, changes, key)


def _without_record(present: Record, before: DeployHistory, approved: str) -> Judgement:
    key = digest([*changes_between({}, present.files, lambda _: {}), *keys_changed("", {}, present.keys)])
    if approved == key:
        return Judgement(True, "not compared, as no record can be read, and approved by its digest", present, (), key)
    if before.is_first and not approved:
        statement = "this is the first deploy into this bucket, so what judges in this tree counts from now on"
        return Judgement(True, statement, present, (), key)
    statement = "the bucket holds deploys, and no record of what judged them"
    if before.is_first:
        statement = (
            "this is the first deploy into this bucket, and the digest of --approve-judge is that of another tree"
        )
    if before.unreadable:
        statement = f"the record {before.unreadable} is damaged, or of another version of bezel"
    return Judgement(False, f"{statement}; everything that judges counts as changed", present, (), key)


def judge_deploy(bucket: StateBucket, project: Project, stack: str, commit: str, approved: str) -> Judgement:
    """Compare what judges in a clean checkout with the record. To be called under the stack's lock.

    Raises:
        UserError: The bucket or git cannot be read.
    """
    folder = project.folder
    files = files_of(folder, commit)
    file = project.stack_file(stack)
    judging_entries = judging(files)
    if (entry := files.get(file.name)) and entry.mode not in FILE_MODES:
        judging_entries[file.name] = entry
    keys = judging_keys(file.read_bytes(), project.name)
    before = read_deploy_history(bucket, project.name, stack)
    present = keys_of_stacks(project, files) | {stack: keys}
    earlier = keys_before(project, before.newest, present)
    if before.newest and not before.of_stack:
        before = replace(before, of_stack=Record(before.newest.commit, {}, earlier[stack]))
    record = Record(commit, judging_entries, keys, {**earlier, stack: keys})
    return judgement(record, file.name, before, approved, lambda ids: contents(folder, ids))


def record_allowed(bucket: StateBucket, project: str, stack: str, judged: Judgement) -> None:
    """Record what judged a deploy that is allowed. To be called under the stack's lock, before it changes anything.

    Raises:
        RestError: The bucket cannot be written, or the lock was lost.
    """
    if not judged.is_recorded:
        write(bucket, project, stack, judged.record)
