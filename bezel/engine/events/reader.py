"""The one reader of the event log that an engine writes, one event a line: whole, or as it grows.

Leaves out running the engine (bezel.engine.run), and which changes are open after a run (`open_changes`).
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bezel.engine.events.values import PROVIDERS, Change, Diagnostic, Events, Op, Resource, Step, Violation
from bezel.engine.state.folder import STACK, mask_secrets
from bezel_base.errors import Problem, UserError
from bezel_base.json_documents import read_json

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
_ANNOUNCED = "replace"
"""The step of a replacement that only says that the two others belong together."""
_ENTRY = ("urn", "custom", "type", "inputs", "parent", "provider", "protect")
_PARTIAL = 1  # `status` of a failed step: the resource is in the state, with its error
_CHANGED: Op = "update"
_GONE: Op = "delete"
_LEFT = " (replaced earlier)"
# The library of policies lets a mandatory policy pass with this advice when it reads an unknown value.
_NOT_RUN = "can't run policy"
PACK_FAILED = "failed to run policy"
"""Begin of the engine's message that a pack died, or raised, in the middle of a run."""
PACK_CANCELLED = f"{PACK_FAILED}: context canceled"
"""The message of an evaluation that the engine itself ended, since the run had failed already or was interrupted."""


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


def events_in(log: Path) -> Iterator[dict[str, Any]]:
    """The events of a run in their order; none without a log.

    Raises:
        UserError: An event is out of the bounds of `read_json`.
    """
    try:
        lines = log.read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        try:
            event = read_json(line)
        except json.JSONDecodeError:
            continue  # the cut last line of a killed engine
        except ValueError as error:
            # A change that is left out would not be judged.
            consequence = f"an event of the engine cannot be read: {error}. So it is unknown what the run changes."
            repair = "find the resource whose properties hold such a value, and correct the program."
            raise UserError(Problem(str(log), None, consequence, repair)) from None
        yield event


@dataclass
class Tail:
    """The end of a log that the engine is still writing."""

    log: Path
    _offset: int = 0

    def events(self) -> list[dict[str, Any]]:
        """The events since the last look; what is not an event is passed over: it is judged when the run is over."""
        try:
            with self.log.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]  # the engine may be in the middle of a line
        self._offset += len(whole)
        read = []
        for line in whole.splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                read.append(event)
        return read


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
    steps: dict[str, Step] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)

    def read(self) -> Events:
        return replace(
            self.result,
            changes=tuple(self.changes[urn] for urn in sorted(self.changes)),
            refreshed=tuple(self.refreshed[urn] for urn in sorted(self.refreshed)),
            violations=tuple(self.violations),
            diagnostics=tuple(self.diagnostics),
            analysed=tuple(dict.fromkeys(self.analysed)),
            steps=tuple(self.steps.values()),
            ended=frozenset(self.ended),
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
                self.result.old_outputs = mask_secrets(metadata["old"].get("outputs") or {})
            return
        if old is not None:
            self.result.before[urn] = Resource(urn, kind, old, _is_custom(metadata["old"]))
        if new is not None:
            self.result.after[urn] = Resource(urn, kind, new, _is_custom(metadata["new"]))
        op = _OPS.get(str(metadata["op"]))
        if op is not None:
            self._note_change(op, metadata, old, new)
            self._note_step(metadata)

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
        self.changes[key] = _merge_steps(self.changes[key], step) if key in self.changes else step

    def _note_step(self, metadata: Mapping[str, Any]) -> None:
        urn, operation = str(metadata["urn"]), str(metadata["op"])
        state = metadata.get("new") or metadata.get("old") or {}
        if operation == _ANNOUNCED or not state.get("custom"):
            return
        self.steps.pop(urn, None)
        kind = "deleting" if operation.startswith("delete") else "updating" if operation == "update" else "creating"
        self.steps[urn] = Step(urn, kind, {key: state[key] for key in _ENTRY if state.get(key)})

    def note_end(self, content: Mapping[str, Any]) -> None:
        metadata = content["metadata"]
        urn, kind, new = str(metadata["urn"]), str(metadata["type"]), metadata.get("new")
        self.ended.add(urn)
        if urn in self.steps:
            self.steps[urn] = replace(self.steps[urn], ended=True)
        if urn in self.refreshing:
            differs = metadata.get("detailedDiff") or metadata.get("diffs") or not new
            if differs and kind != STACK and not kind.startswith(PROVIDERS):
                old, op = metadata.get("old"), _GONE if not new else _CHANGED
                paths = tuple(sorted(metadata.get("detailedDiff") or metadata.get("diffs") or ()))
                values = (_inputs(old), _inputs(new), _outputs(old), _outputs(new))
                self.refreshed[urn] = Change(op, urn, kind, paths, *values)
        elif kind == STACK:
            # The stack ends twice: when it is registered, and with its outputs.
            if new:
                self.result.outputs = mask_secrets(new.get("outputs") or {})
        elif urn in self.changes and new:
            self.changes[urn] = replace(self.changes[urn], new_outputs=_outputs(new))

    def note_failure(self, content: Mapping[str, Any]) -> None:
        urn = str(content["metadata"]["urn"])
        if urn in self.changes:
            self.changes[urn] = replace(self.changes[urn], failed=True)
        if urn in self.steps:
            self.steps[urn] = replace(self.steps[urn], failed=True, partial=content.get("status") == _PARTIAL)

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
        if severity == "error" and message.startswith(PACK_FAILED) and message != PACK_CANCELLED:
            self.result.packs_failed = True
        self.diagnostics.append(Diagnostic(severity.partition("#")[0], message, str(content.get("urn", ""))))

    def note_summary(self, content: Mapping[str, Any]) -> None:
        self.result.complete = True
        self.result.counts = content.get("resourceChanges") or {}


def _merge_steps(change: Change, step: Change) -> Change:
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
    return None if state is None else mask_secrets(state.get("inputs") or {})


def _outputs(state: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    return None if state is None else mask_secrets(state.get("outputs") or {})
