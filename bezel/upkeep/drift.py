"""Drift of deployed stacks: where the cloud and the program differ, by a preview that first reads the cloud.

Nothing is written, neither in the cloud nor in the state nor in the checkout, so an account that may only read
suffices. Owns the meaning of a run's events. Leaves out the report (`drift_report`).

A difference is drift if the program would change it: a deploy would undo it, or bring what was never deployed. What the
cloud computes by itself differs from the state after every change, and is none. What no program declares, the engine
does not compare: settings that cost money or open access are read from the cloud beside the preview
(`bezel.outside_changes`). What may not be read makes the verdict "unknown".
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any, Literal

from bezel.engine.events.values import Change, Events
from bezel.engine.run.stack import StackEngine
from bezel.engine.state.exported import resources_of
from bezel.engine.state.folder import mask_secrets
from bezel.outside_changes.change import Findings, NotJudged, OutsideChange
from bezel.outside_changes.declared import SERVICE, SWITCH, Entry, entries_in
from bezel.resource_cost.stack_cost import UNKNOWN_MARKS
from bezel_base.errors import UserError, one_line

Verdict = Literal["clean", "drifted", "unknown", "not deployed"]
# In a Python program, and in one that uses the Pulumi package.
_FOLLOWING = (
    SWITCH,
    "bezel:components:TrafficSwitch",
    "pulumi-python:dynamic/smoke:HealthCheck",
    "bezel:smoke:HealthCheck",
)
_OF_ROLLBACK = (["traffics"], ["annotations"], ["effectiveAnnotations"])
_MISSING = object()
_MODIFIER = "lastModifier"
_TIMES = ("updateTime", "updated")
_LONGEST_ERROR = 1000


@dataclass(frozen=True)
class PropertyDrift:
    """A property with its value in the cloud and in the program; None where it is not set there."""

    path: str
    cloud: object
    program: object


@dataclass(frozen=True)
class ResourceDrift:
    """A resource that differs.

    Attributes:
        name: Logical name.
        type: Token of its type.
        op: What a deploy would do with it.
        is_outside: Whether it was changed outside of the program; otherwise the program was changed and not deployed.
        follows: Whether it only depends on another resource that differs, as a check depends on what it checks.
        properties: The properties that differ; empty for a resource that exists on one side only.
        changed_by: Who changed it last, "" if its API does not say.
        changed_at: When, "" if its API does not say.
        rolled_back: Whether it differs by a rollback of its service alone, which the next deploy ends.
    """

    name: str
    type: str
    op: str
    is_outside: bool
    properties: tuple[PropertyDrift, ...] = ()
    changed_by: str = ""
    changed_at: str = ""
    follows: bool = False
    rolled_back: bool = False


@dataclass(frozen=True)
class StackDrift:
    """The drift of a stack, or why it is unknown.

    Attributes:
        stack: Name of the stack.
        verdict: Unknown where the program failed, or anything could not be read.
        resources: Resources that a deploy would change.
        problems: Why it is unknown.
        outside: Settings that cost money or open access, and that nothing declares so.
        not_judged: Such settings that could not be read.
    """

    stack: str
    verdict: Verdict
    resources: tuple[ResourceDrift, ...] = ()
    problems: tuple[str, ...] = ()
    outside: tuple[OutsideChange, ...] = ()
    not_judged: tuple[NotJudged, ...] = ()


def drift_of(
    stack: str,
    opened: AbstractContextManager[StackEngine | None],
    outside: Callable[[Sequence[Entry]], Findings] = lambda _: Findings(),
) -> StackDrift:
    """Preview a stack against the cloud; a failure is the verdict "unknown", never "clean".

    Args:
        stack: The stack's name.
        opened: Opens its engine (bezel.engine.run.stack.deployed_engine).
        outside: Compares what the cloud has with what the deployed resources declare.
    """
    try:
        with opened as prepared:
            if prepared is None:
                return StackDrift(stack, "not deployed")
            run = prepared.engine.run("preview", options=["--refresh"])
            findings = outside(entries_in(mask_secrets(resources_of(prepared.state))))
    except UserError as error:
        return StackDrift(stack, "unknown", problems=(one_line(error),))
    resources = differences(run.events)
    if any(change.kind == "rollback" for change in findings.changes):
        resources = tuple(replace(item, rolled_back=_is_of_rollback(item)) for item in resources)
    changes = tuple(change for change in findings.changes if not _is_named(change, resources))
    problems: tuple[str, ...] = ()
    if not run.ok or not run.events.complete:
        problems = tuple(text[:_LONGEST_ERROR] for text in run.errors) or ("the engine ended without a result",)
    verdict: Verdict = "drifted" if resources or changes else "clean"
    if problems or findings.not_judged:
        verdict = "unknown"
    return StackDrift(stack, verdict, resources, problems, changes, findings.not_judged)


def _is_of_rollback(resource: ResourceDrift) -> bool:
    """Whether a rollback of the service explains all that differs: its traffic, and the annotation that records it."""
    if resource.type in _FOLLOWING:
        return True
    return resource.type == SERVICE and all(_parts(item.path)[:1] in _OF_ROLLBACK for item in resource.properties)


def _is_named(change: OutsideChange, resources: Sequence[ResourceDrift]) -> bool:
    """Whether the engine's own comparison names the setting of a service too, with both values."""
    return change.resource.startswith("service ") and any(
        item.path == change.setting
        for resource in resources
        if resource.type == SERVICE and resource.is_outside
        for item in resource.properties
    )


def differences(events: Events) -> tuple[ResourceDrift, ...]:
    """The resources that differ between cloud and program, by the events of a preview with refresh. Pure."""
    refreshed = {change.urn: change for change in events.refreshed}
    planned = [change for change in events.changes if not change.is_default_provider]
    drifts = [_resource(change, refreshed.get(change.urn)) for change in planned]
    # Gone from the cloud and from the program too: only the state has it.
    urns = {change.urn for change in planned}
    gone = [change for urn, change in refreshed.items() if change.op == "delete" and urn not in urns]
    drifts += map(_deleted_resource, gone)
    return tuple(sorted(drifts, key=lambda resource: (resource.type, resource.name)))


def _resource(change: Change, refresh: Change | None) -> ResourceDrift:
    cloud = (refresh.new_outputs if refresh else None) or change.old_outputs or {}
    is_outside = refresh is not None and (refresh.op == "delete" or _touches(refresh, change))
    paths = change.properties if change.op in {"update", "replace"} else ()
    seen = refresh.new_outputs if refresh else None
    properties = tuple(PropertyDrift(path, _live(change.old, seen, path), _at(change.new, path)) for path in paths)
    is_known = any(_is_known(item) for item in properties)
    # Those that are set on neither side are computed from others.
    present = tuple(item for item in properties if (item.cloud, item.program) != (None, None))
    return ResourceDrift(
        change.name,
        change.type,
        change.op,
        is_outside,
        present or properties,
        *_last_change(cloud),
        follows=change.op in {"update", "replace"} and not is_outside and not is_known,
    )


def _is_known(item: PropertyDrift) -> bool:
    """Whether a property's difference is known: a planned value that depends on another change is not."""
    text = json.dumps(item.program, default=str)
    return (item.cloud, item.program) != (None, None) and not any(mark in text for mark in UNKNOWN_MARKS)


def _deleted_resource(change: Change) -> ResourceDrift:
    return ResourceDrift(change.name, change.type, "delete", is_outside=True)


def _touches(refresh: Change, change: Change) -> bool:
    """Whether the refresh found a difference in a property that the program would change."""
    roots = {_parts(path)[0] for path in change.properties if _parts(path)}
    return any(_parts(path)[:1] and _parts(path)[0] in roots for path in refresh.properties) or not refresh.properties


def _last_change(cloud: Mapping[str, Any]) -> tuple[str, str]:
    when = next((str(cloud[name]) for name in _TIMES if cloud.get(name)), "")
    return str(cloud.get(_MODIFIER) or ""), when


def _live(inputs: Mapping[str, Any] | None, outputs: Mapping[str, Any] | None, path: str) -> object:
    """The cloud's own value: an undeclared setting is in no input, only in what the refresh has read."""
    seen = _at(outputs, path)
    return seen if seen is not None else _at(inputs, path)


def _at(values: Mapping[str, Any] | None, path: str) -> object:
    """The value at a path of the engine's form, `template.containers[0].image`; None where there is none."""
    value: Any = values
    for part in _parts(path):
        if isinstance(value, Mapping):
            value = value.get(part, _MISSING)
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            value = _MISSING
        if value is _MISSING:
            return None
    return value


def _parts(path: str) -> list[str]:
    return list(_split(path))


def _split(path: str) -> Iterator[str]:
    rest = path
    while rest:
        if rest.startswith('["'):
            name, _, rest = rest[2:].partition('"]')
        elif rest.startswith("["):
            name, _, rest = rest[1:].partition("]")
        else:
            rest = rest.removeprefix(".")
            end = min((at for at in (rest.find("."), rest.find("[")) if at >= 0), default=len(rest))
            name, rest = rest[:end], rest[end:]
        yield name
