"""Values that the events of a run of the engine tell: changes, violations, messages and outputs, secrets masked.

Leaves out how they are read (`reader`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Op = Literal["create", "update", "replace", "delete", "import"]

PROVIDERS = "pulumi:providers:"
"""Begin of the types of providers."""
MANDATORY = ("mandatory", "remediate")


@dataclass(frozen=True)
class Resource:
    """A resource of the program or of the state, its inputs masked; `custom` is False for a component."""

    urn: str
    type: str
    inputs: Mapping[str, Any]
    custom: bool = True

    @property
    def name(self) -> str:
        """The resource's logical name."""
        return self.urn.rpartition("::")[2]


@dataclass(frozen=True)
class Change:
    """A planned or completed change of a resource, or a difference that a refresh found.

    Attributes:
        op: One operation for a resource, however many steps the engine takes for it.
        urn: URN of the resource.
        type: Its type's token.
        properties: Paths of the changed properties, sorted; empty for a new or a deleted resource.
        old: Its inputs before, masked; None for a new one.
        new: Its inputs afterwards, masked; None for a deleted one.
        old_outputs: Its outputs before, masked.
        new_outputs: Its outputs afterwards, as far as they are known.
        failed: Whether the operation failed.
        custom: False for a component, which is nothing in the cloud.
    """

    op: Op
    urn: str
    type: str
    properties: tuple[str, ...] = ()
    old: Mapping[str, Any] | None = None
    new: Mapping[str, Any] | None = None
    old_outputs: Mapping[str, Any] | None = None
    new_outputs: Mapping[str, Any] | None = None
    failed: bool = False
    custom: bool = True

    @property
    def name(self) -> str:
        """The resource's logical name."""
        return self.urn.rpartition("::")[2]

    @property
    def is_default_provider(self) -> bool:
        """Whether it is a provider that the engine makes by itself, which is nothing in the cloud."""
        return self.type.startswith(PROVIDERS) and self.name.startswith("default")


@dataclass(frozen=True)
class Violation:
    """A violation that a policy pack reports. An advice that a policy could not be evaluated is `not_run`."""

    pack: str
    policy: str
    level: str
    urn: str
    message: str
    not_run: bool = False

    @property
    def refuses(self) -> bool:
        """Whether nothing may be deployed with it."""
        return self.not_run or self.level in MANDATORY

    @property
    def resource(self) -> str:
        """Name of the resource; the stack's where the policy is about all of it."""
        return self.urn.rpartition("::")[2]


@dataclass(frozen=True)
class Diagnostic:
    """A message of the program, of a provider or of the engine; `severity` is error, warning or info."""

    severity: str
    message: str
    urn: str = ""


@dataclass(frozen=True)
class Step:
    """The last step of a run that changes a resource in the cloud.

    Attributes:
        urn: URN of the resource.
        kind: "creating", "updating" or "deleting", as in the state's pending operations.
        entry: The resource as the state would hold it, as far as the log has it; each secret in it is a mark.
        ended: Whether it ended well.
        failed: Whether it failed.
        partial: Whether it failed late: the state has the resource, with its error.
    """

    urn: str
    kind: str
    entry: Mapping[str, Any]
    ended: bool = False
    failed: bool = False
    partial: bool = False


@dataclass
class Events:
    """The content of an event log.

    Attributes:
        changes: Changes of resources, each resource once, sorted by URN; providers included.
        refreshed: Differences between state and cloud that a refresh found, sorted by URN; `delete` for one that is
            gone.
        before: Resources that the state holds, by URN, as far as the run reached them.
        after: Resources after the changes, by URN.
        violations: What the policy packs report.
        analysed: Names of the packs that evaluated the whole stack.
        diagnostics: Messages without those for debugging.
        old_outputs: The stack's outputs before, masked.
        outputs: The stack's outputs, masked; None where the program did not get that far.
        packs_failed: Whether a pack died or raised in the middle of a run.
        complete: Whether the log ends with the engine's own summary.
        counts: Number of resources by the engine's operation, as its summary says; empty where it was cut off.
        ended: URNs of the resources that the run completed, changed or not.
        steps: Its last step on each resource of the cloud, in the order of their begin.
    """

    changes: tuple[Change, ...] = ()
    refreshed: tuple[Change, ...] = ()
    before: dict[str, Resource] = field(default_factory=dict)
    after: dict[str, Resource] = field(default_factory=dict)
    violations: tuple[Violation, ...] = ()
    analysed: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    old_outputs: Mapping[str, Any] | None = None
    outputs: Mapping[str, Any] | None = None
    packs_failed: bool = False
    complete: bool = False
    counts: Mapping[str, int] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()
    steps: tuple[Step, ...] = ()
