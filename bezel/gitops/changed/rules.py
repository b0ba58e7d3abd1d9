"""Rules by which a changed file concerns stacks. Pure.

Each file is judged on its own and the results are united, so more files never concern fewer stacks. What no rule knows
concerns every stack.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from bezel.gitops.changed.import_closure import package_of

CATALOGUE = "packages/catalog/bezel_catalog/data/"
PROJECT_CATALOGUE = "catalog.toml"  # the project's own models
STACK_FILE = re.compile(r"Pulumi\.(?P<stack>[^/]+)\.yaml")
# Folders and files of which nothing is part of a deploy.
_MEMBER = r"(?:packages/[^/]+|bootstrap|components|policies|services|smoke|stacks)"
_APART = re.compile(
    r"docs/|tests/|templates/|[^/]+\.md$|LICENSE$|\.gitignore$|\.pre-commit-config\.yaml$"
    rf"|{_MEMBER}/(?:tests/|docs/|[^/]+\.md$|LICENSE$)"
)
# What packs are started with. Another file beside the packages of a member's folder may be imported by any process, as
# that folder is on the environment's path, or stands for a provider that a state names: it concerns every stack.
_PACK_FILE = re.compile(r"policies/(?:[^/]+/(?:__main__\.py|PulumiPolicy\.yaml)|[^/]+\.json)")
# Of the foundation's own states.
_EARLIER_FOUNDATION = re.compile(r"bootstrap/providers/[^/]+\.py")
# Scripts for developers; those that set up the tools of a deploy are left to the rule of unknown files.
_SCRIPTS = re.compile(r"tools/(?!toolchain/)")
# What runs the program, which does not import it.
_LANGUAGE_HOST = re.compile(
    r"packages/pulumi-offline/bezel_pulumi_offline/"
    r"(?:__init__\.py$|language_host/|plugins/pulumi-language-|plugin/(?:__init__|fast_import)\.py$)"
)


@dataclass(frozen=True)
class FileChange:
    """One changed path: its status is git's letter, "A" added, "D" deleted, "M" or "T" changed."""

    status: str
    path: str


@dataclass(frozen=True)
class Program:
    """What is known of the program in the two trees.

    Attributes:
        stacks: Stacks of the new tree -> kinds of their programs; both where the kind is unknown.
        closures: Kind -> the paths that its program loads in either tree.
        differing: Stacks whose plans differ between the trees -> the parts that do, as text.
    """

    stacks: Mapping[str, Collection[str]]
    closures: Mapping[str, Collection[str]]
    differing: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Reason:
    """Why a change concerns a stack.

    Attributes:
        why: The reason.
        path: The changed file; "" for a reason that is not of one file.
    """

    why: str
    path: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.why}" if self.path else self.why


@dataclass(frozen=True)
class Concerned:
    """Stacks that a change concerns.

    Attributes:
        reasons: Stack -> why, a reason a file.
        deleted: Stacks whose files are deleted: their resources stay until someone destroys them.
        every: Why the change concerns every stack.
        examples: Stack files that the pipeline does not deploy -> why the change concerns them.
        released: Stacks that the pipeline deployed before, and whose files it now leaves alone.
    """

    reasons: Mapping[str, tuple[Reason, ...]]
    deleted: tuple[str, ...] = ()
    every: tuple[Reason, ...] = ()
    examples: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)
    released: tuple[str, ...] = ()

    def within(self, before: Collection[str], after: Collection[str]) -> "Concerned":
        """The same for a pipeline that deploys these stacks before and after the change."""
        gone = set(self.deleted)
        return Concerned(
            {stack: why for stack, why in self.reasons.items() if stack in after},
            tuple(stack for stack in self.deleted if stack in before),
            self.every,
            {stack: why for stack, why in self.reasons.items() if stack not in after},
            tuple(sorted(set(before) - set(after) - gone)),
        )


def find_concerned(changes: Iterable[FileChange], program: Program) -> Concerned:
    """The stacks that a set of changed files concerns."""
    reasons: dict[str, list[Reason]] = {}
    deleted, every = set[str](), []
    for change in sorted(set(changes), key=lambda change: (change.path, change.status)):
        if (file := STACK_FILE.fullmatch(change.path)) and change.status == "D":
            deleted.add(file["stack"])
            continue
        stacks, why = _concerned_by(change, program)
        if stacks is None:
            every.append(Reason(why, change.path))
            stacks = dict.fromkeys(program.stacks, why)
        for stack, reason in stacks.items():
            reasons.setdefault(stack, []).append(Reason(reason, change.path))
    ordered = {stack: tuple(reasons[stack]) for stack in sorted(reasons)}
    return Concerned(ordered, tuple(sorted(deleted)), tuple(every))


def _concerned_by(change: FileChange, program: Program) -> tuple[dict[str, str] | None, str]:
    """Stacks that one file concerns with the reason; None and a reason where it concerns every stack."""
    path = change.path
    if file := STACK_FILE.fullmatch(path):
        return {file["stack"]: "the stack's own file" + (" is new" if change.status == "A" else "")}, ""
    if _APART.match(path) or _SCRIPTS.match(path) or _EARLIER_FOUNDATION.fullmatch(path):
        return {}, ""
    if _is_catalogue(path):
        return {stack: f"its plan differs ({parts})" for stack, parts in program.differing.items()}, ""
    if _LANGUAGE_HOST.match(path):
        return None, "runs the program and the policy packs"
    if _is_program(path):
        kinds = {kind: why for kind, paths in program.closures.items() if (why := _loading_reason(path, paths))}
        return {
            stack: next(kinds[kind] for kind in sorted(of) if kind in kinds)
            for stack, of in program.stacks.items()
            if any(kind in kinds for kind in of)
        }, ""
    return None, "may concern every stack"


def _loading_reason(path: str, closure: Collection[str]) -> str:
    """How a program with this closure loads a file of its packages; "" where it does not."""
    if path.endswith(".py"):
        return "imported by the program or a policy pack" if path in closure else ""
    # A data file may be read by any module of its package: bezel/NAME, or a package of a member.
    package = package_of(path) or path.partition("/")[0]
    if package == "bezel":
        package = "/".join(path.split("/")[:2]) if path.count("/") > 1 else package
    return "read by the program or a policy pack" if any(file.startswith(f"{package}/") for file in closure) else ""


def needs_program(changes: Iterable[FileChange]) -> bool:
    """Whether imports and plans have to be read: a file of the program or of the catalogue has changed."""
    return any(_is_program(change.path) for change in changes)


def _is_catalogue(path: str) -> bool:
    """Whether plans are made from a file: it concerns the stacks whose plans differ."""
    return path.startswith(CATALOGUE) or path == PROJECT_CATALOGUE


def _is_program(path: str) -> bool:
    return (
        path == "__main__.py" or _is_catalogue(path) or package_of(path) is not None or bool(_PACK_FILE.fullmatch(path))
    )


def needs_plans(changes: Iterable[FileChange], program: Program) -> list[str]:
    """Stacks whose plans have to be compared: the catalogue has changed, and nothing else concerns them yet."""
    changes = list(changes)
    if not any(_is_catalogue(change.path) for change in changes):
        return []
    affected = find_concerned(changes, Program(program.stacks, program.closures))
    return [stack for stack in program.stacks if stack not in affected.reasons]
