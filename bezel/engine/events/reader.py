"""Events of an engine run as typed values: changes, violations, messages and outputs, secrets masked.

Leaves out running the engine (`engine_runs`) and changes whose outcome is unknown (bezel.engine.events.log).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from bezel.engine.events.log import events_in
from bezel.engine.state.folder import STACK, masked

Op = Literal["create", "update", "replace", "delete", "import"]

# The engine's steps. A replacement has several; those that are not named change nothing in the cloud.
_OPS: Mapping[str, Op] = {
    "create": "create",
    "update": "update",
    "delete": "delete",
    "replace": "replace",
    "create-replacement": "replace",
    "delete-replaced": "replace",
    "import": "import",
    "import-replacement": "replace",
}
_CHANGED: Op = "update"
_GONE: Op = "delete"
_PROVIDERS = "pulumi:providers:"
_LEFT = " (replaced earlier)"
# The library of policies lets a mandatory policy pass with this advice when it reads an unknown value.
_NOT_RUN = "can't run policy"
PACK_FAILED = "failed to run policy"
"""Begin of the engine's message that a pack died, or raised, in the middle of a run."""
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
        return self.type.startswith(_PROVIDERS) and self.name.startswith("default")


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


def read_events(log: Path) -> Events:
    """The content of an event log; of a log that is missing or cut, what there is of it."""
    return events_of(events_in(log))


def events_of(events: Iterable[Mapping[str, Any]]) -> Events:
    """The content of a run's events, in their order."""
    reader = _Reader()
    for event in events:
        for name, content in event.items():
            if note := getattr(reader, _NOTES.get(name, ""), None):
                note(content)
    return reader.read()


_NOTES = {
    "resourcePreEvent": "note_begin",
    "resOutputsEvent": "note_end",
    "resOpFailedEvent": "note_failure",
    "policyEvent": "note_violation",
    "policyAnalyzeStackSummaryEvent": "note_pack",
    "diagnosticEvent": "note_diagnostic",
    "summaryEvent": "note_summary",
}


@dataclass
class _Reader:
    """Takes the events of a run, one kind by one method."""

    result: Events = field(default_factory=Events)
    changes: dict[str, Change] = field(default_factory=dict)
    refreshed: dict[str, Change] = field(default_factory=dict)
    refreshing: set[str] = field(default_factory=set)
    violations: list[Violation] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    analysed: list[str] = field(default_factory=list)

    def read(self) -> Events:
        return replace(
            self.result,
            changes=tuple(self.changes[urn] for urn in sorted(self.changes)),
            refreshed=tuple(self.refreshed[urn] for urn in sorted(self.refreshed)),
            violations=tuple(self.violations),
            diagnostics=tuple(self.diagnostics),
            analysed=tuple(dict.fromkeys(self.analysed)),
        )

    def note_begin(self, content: Mapping[str, Any]) -> None:
        metadata = content["metadata"]
        urn, kind = str(metadata["urn"]), str(metadata["type"])
        if metadata["op"] == "refresh":
            self.refreshing.add(urn)
            return
        self.refreshing.discard(urn)
        old, new = _inputs(metadata.get("old")), _inputs(metadata.get("new"))
        if kind == STACK:
            if metadata.get("old"):
                self.result.old_outputs = masked(metadata["old"].get("outputs") or {})
            return
        if old is not None:
            self.result.before[urn] = Resource(urn, kind, old, _is_custom(metadata["old"]))
        if new is not None:
            self.result.after[urn] = Resource(urn, kind, new, _is_custom(metadata["new"]))
        op = _OPS.get(str(metadata["op"]))
        if op is not None:
            self._note_change(op, metadata, old, new)

    def _note_change(
        self, op: Op, metadata: Mapping[str, Any], old: Mapping[str, Any] | None, new: Mapping[str, Any] | None
    ) -> None:
        urn = str(metadata["urn"])
        key = urn
        if op == "delete" and metadata["old"].get("delete"):
            key += _LEFT  # the old one of an earlier replacement; the resource itself has the same URN
        elif op == "delete":
            self.result.after.pop(urn, None)
        properties = {*(metadata.get("detailedDiff") or {}), *(metadata.get("keys") or ())} or metadata.get("diffs")
        paths = tuple(sorted(properties or ()))
        custom = any(_is_custom(metadata[key]) for key in ("old", "new") if metadata.get(key))
        step = Change(op, urn, str(metadata["type"]), paths, old, new, _outputs(metadata.get("old")), custom=custom)
        self.changes[key] = _merged(self.changes[key], step) if key in self.changes else step

    def note_end(self, content: Mapping[str, Any]) -> None:
        metadata = content["metadata"]
        urn, kind, new = str(metadata["urn"]), str(metadata["type"]), metadata.get("new")
        if urn in self.refreshing:
            differs = metadata.get("detailedDiff") or metadata.get("diffs") or not new
            if differs and kind != STACK and not kind.startswith(_PROVIDERS):
                old, op = metadata.get("old"), _GONE if not new else _CHANGED
                paths = tuple(sorted(metadata.get("detailedDiff") or metadata.get("diffs") or ()))
                values = (_inputs(old), _inputs(new), _outputs(old), _outputs(new))
                self.refreshed[urn] = Change(op, urn, kind, paths, *values)
        elif kind == STACK:
            # The stack ends twice: when it is registered, and with its outputs.
            if new:
                self.result.outputs = masked(new.get("outputs") or {})
        elif urn in self.changes and new:
            self.changes[urn] = replace(self.changes[urn], new_outputs=_outputs(new))

    def note_failure(self, content: Mapping[str, Any]) -> None:
        urn = str(content["metadata"]["urn"])
        if urn in self.changes:
            self.changes[urn] = replace(self.changes[urn], failed=True)

    def note_violation(self, content: Mapping[str, Any]) -> None:
        message = str(content["message"]).strip()
        pack, policy = str(content["policyPackName"]), str(content["policyName"])
        level, urn = str(content["enforcementLevel"]), str(content.get("resourceUrn", ""))
        self.violations.append(Violation(pack, policy, level, urn, message, not_run=message.startswith(_NOT_RUN)))

    def note_pack(self, content: Mapping[str, Any]) -> None:
        self.analysed.append(str(content["policyPackName"]))

    def note_diagnostic(self, content: Mapping[str, Any]) -> None:
        severity, message = str(content.get("severity", "")), str(content.get("message", "")).strip()
        if severity == "debug" or not message:
            return
        if severity == "error" and message.startswith(PACK_FAILED):
            self.result.packs_failed = True
        self.diagnostics.append(Diagnostic(severity.partition("#")[0], message, str(content.get("urn", ""))))

    def note_summary(self, _content: Mapping[str, Any]) -> None:
        self.result.complete = True


def _merged(change: Change, step: Change) -> Change:
    """A change with another step of the same resource."""
    return Change(
        "replace" if "replace" in (change.op, step.op) else step.op,
        change.urn,
        change.type,
        tuple(sorted({*change.properties, *step.properties})),
        change.old if change.old is not None else step.old,
        step.new if step.new is not None else change.new,
        change.old_outputs if change.old_outputs is not None else step.old_outputs,
        step.new_outputs if step.new_outputs is not None else change.new_outputs,
        change.failed or step.failed,
        change.custom,
    )


def _is_custom(state: Mapping[str, Any]) -> bool:
    return state.get("custom") is True


def _inputs(state: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if state is None else masked(state.get("inputs") or {})


def _outputs(state: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if state is None else masked(state.get("outputs") or {})
