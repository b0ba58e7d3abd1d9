"""Check, diff, create, read, update and delete of any resource type, on plain values.

Owns the steps between the engine's request and Google's; each method takes and returns plain dictionaries. Leaves the
protocol to google_plugin.py, the types to resources/, and the calls to resource.py.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bezel_pulumi_offline.google.cloud import DEFAULT_TIMEOUT, Cloud, Deadline
from bezel_pulumi_offline.google.errors import GoneError, PartlyDoneError, PlanError, ProviderError
from bezel_pulumi_offline.lifecycle.check import DEFAULTS, RANDOM, Checked, autoname, check
from bezel_pulumi_offline.lifecycle.fields import Fields, Mark
from bezel_pulumi_offline.lifecycle.inputs import import_inputs, refresh_inputs
from bezel_pulumi_offline.lifecycle.labels import add_labels, show_labels
from bezel_pulumi_offline.lifecycle.mapping import Nulls, outputs, seal_properties
from bezel_pulumi_offline.lifecycle.plan import (
    PropertyDifference,
    differences,
    foreseen_properties,
    plan,
    without_ignored,
)
from bezel_pulumi_offline.lifecycle.resource import Operations, ResourceType, parse
from bezel_pulumi_offline.lifecycle.validations import refused_plan, refused_values
from bezel_pulumi_offline.lifecycle.values import UNKNOWN, Properties, unknown


@dataclass(frozen=True, slots=True)
class Changes:
    """The result of a diff: every differing value, and the properties that can never change in place."""

    differing: tuple[PropertyDifference, ...]
    stables: tuple[str, ...]
    delete_first: bool

    @property
    def names(self) -> list[str]:
        """The properties that differ."""
        return sorted({item.top for item in self.differing})

    @property
    def replaces(self) -> list[str]:
        """The differing properties that require a new resource."""
        return sorted({item.top for item in self.differing if item.replaces})


class ResourceCalls:
    """The operations on resources of any type, against one configured cloud."""

    def __init__(self, cloud: Cloud) -> None:
        self.cloud = cloud

    def check(
        self, kind: ResourceType, name: str, news: Properties, olds: Properties, seed: bytes, proposed: str | None
    ) -> Checked:
        """Check and complete the inputs.

        Args:
            kind: The type.
            name: The resource's name in the program.
            news: The program's inputs.
            olds: The inputs in the state.
            seed: The engine's random seed for a name.
            proposed: The name from the stack's own autonaming; empty where it forbids a generated name.
        """
        name_field = kind.autoname
        inputs = dict(news)
        # A name that the program no longer sets stays, generated or not: the bridge completes it from the state.
        state = olds.get(name_field)
        auto = bool(name_field) and news.get(name_field) is None and (isinstance(state, str) or proposed != "")
        base = name.lower() if kind.lowercase else name
        if auto:
            inputs[name_field] = state or proposed or autoname(base, seed)
        checked = check(kind.fields, inputs, kind.pulumi_type)
        if auto:
            checked.inputs[DEFAULTS] = sorted([*checked.inputs[DEFAULTS], name_field])
        if auto and not state and not proposed and len(base) + 1 + RANDOM > kind.longest:
            text = f"name '{base}-' plus {RANDOM} random chars is longer than maximum length {kind.longest}"
            checked.failures.append((name_field, f"could not make instance of '{kind.pulumi_type}': {text}"))
        else:
            dropped = [where for where, _ in checked.failures]
            checked.failures += refused_values(kind.fields, checked.inputs, kind.validations, name, dropped)
        try:
            (kind.operations or Operations).look(checked.inputs)
        except ProviderError as error:
            checked.failures.append(("", str(error)))
        return checked

    def plan_resource(self, kind: ResourceType, news: Mapping[str, Any], prior: Mapping[str, Any] | None) -> Properties:
        """Return all planned properties, labels included.

        Raises:
            PlanError: The provider refuses the plan.
        """
        if refused := refused_plan(kind.fields, news, prior, kind.validations):
            raise PlanError(refused[0])
        result = plan(kind.fields, news, prior, self.cloud.project)
        add_labels(result, prior, self.cloud.default_labels, self.cloud.attribution if kind.attributed else {})
        (kind.operations or Operations).derive(result, prior)
        return result

    def diff(self, kind: ResourceType, news: Properties, prior: Properties, ignored: list[str]) -> Changes:
        """Return the differences between the desired properties and the known ones."""
        differing = tuple(
            without_ignored(differences(kind.fields, prior, self.plan_resource(kind, news, prior)), ignored)
        )
        replaced = {item.top for item in differing if item.replaces}
        # A name that the program sets is not compared with the old one: the bridge takes any for one that may collide.
        named = bool(news.get(kind.autoname)) and kind.autoname not in (news.get(DEFAULTS) or [])
        stables = tuple(sorted(name for name in _fixed_names(kind.fields) if name not in replaced))
        return Changes(differing, stables, delete_first=bool(replaced) and (kind.delete_first or named))

    def create(self, kind: ResourceType, news: Properties, timeout: float, *, preview: bool) -> tuple[str, Properties]:
        """Create a resource (or preview it); returns its id and outputs.

        Raises:
            ProviderError: It was refused or failed, and the state gets no resource.
            PartlyDoneError: It failed, and the state gets the resource, which exists.
        """
        planned = self.plan_resource(kind, news, None)
        if preview:
            return "", self.seal(kind, {**planned, "id": UNKNOWN})
        planned = _without_unknowns(planned)
        for place in ("location", "region"):
            if place in planned and not planned[place]:
                planned[place] = self.cloud.region
        try:
            resource_id, answer = self._operations(kind, timeout).create(planned)
        except PartlyDoneError as error:
            state = self.seal(kind, {**planned, "id": error.id})
            raise PartlyDoneError(str(error), error.id, state, error.advice) from None
        return resource_id, self._outputs(kind, resource_id, answer, planned, Nulls.ALL)

    def update(
        self,
        kind: ResourceType,
        resource_id: str,
        news: Properties,
        prior: Properties,
        timeout: float,
        *,
        preview: bool,
    ) -> Properties:
        """Change a resource in place (or preview it); returns its outputs.

        Raises:
            PartlyDoneError: It failed, and may have taken effect or not.
            ProviderError: The resource is gone.
        """
        planned = self.plan_resource(kind, news, prior)
        changed = {item.top for item in differences(kind.fields, prior, planned) if not item.secondary}
        if preview:
            # What Google computes stays known and old: the bridge's preview cannot tell what an update changes there.
            return self.seal(kind, {**foreseen_properties(kind.fields, planned, prior), "id": resource_id})
        planned = _without_unknowns(planned)
        try:
            answer = self._operations(kind, timeout).update(resource_id, planned, prior, changed)
        except GoneError:
            raise
        except ProviderError as error:
            # The Terraform SDK stores the requested properties, whether Google accepted them or not: the next update
            # finds nothing to change, and reads the resource.
            state = prior if kind.partial else planned
            kept = self.seal(kind, {**state, "id": resource_id})
            raise PartlyDoneError(str(error), resource_id, kept, error.advice) from None
        return self._outputs(kind, resource_id, answer, planned, Nulls.TOP)

    def read(
        self, kind: ResourceType, resource_id: str, state: Properties, inputs: Properties
    ) -> tuple[str, Properties, Properties] | None:
        """Read a resource: id, outputs and inputs, or None when it is gone. Without a state it is an import."""
        prior = {**parse(kind, resource_id), **{name: value for name, value in state.items() if value is not None}}
        if not state:
            for name, value in (("project", self.cloud.project), ("region", self.cloud.region)):
                prior.setdefault(name, value)
        operations = self._operations(kind, 0)
        whole_id = resource_id if state else operations.identify(resource_id, prior)
        answer = operations.read(whole_id, prior)
        if answer is None:
            return None
        result = self._outputs(kind, whole_id, answer, prior, Nulls.NONE, seal=False)
        shown_inputs = refresh_inputs(kind.fields, inputs, result) if inputs else import_inputs(kind.fields, result)
        return whole_id, self.seal(kind, result), self.seal(kind, shown_inputs)

    def delete(self, kind: ResourceType, resource_id: str, prior: Properties, timeout: float) -> None:
        """Delete a resource, unless its deletion policy forbids it; it is no error if it does not exist.

        Raises:
            ProviderError: It is protected, or Google refuses.
        """
        policy = prior.get("deletionPolicy")
        if policy == "PREVENT":
            advice = 'setting deletion_policy="DELETE" and running `terraform apply`'
            raise ProviderError(f"cannot destroy {kind.label or kind.title} without {advice}")
        if policy == "ABANDON":
            return  # it is removed from the state and stays at Google
        self._operations(kind, timeout).delete(resource_id, prior)

    def _operations(self, kind: ResourceType, timeout: float) -> Operations:
        return (kind.operations or Operations)(kind, self.cloud, Deadline.after(timeout or DEFAULT_TIMEOUT))

    def _outputs(
        self,
        kind: ResourceType,
        resource_id: str,
        answer: Properties,
        prior: Mapping[str, Any],
        nulls: Nulls,
        *,
        seal: bool = True,
    ) -> Properties:
        result = outputs(kind.fields, answer, prior, nulls)
        show_labels(result, prior, fresh=nulls is not Nulls.NONE)
        result["id"] = resource_id
        return self.seal(kind, result) if seal else result

    def seal(self, kind: ResourceType, values: Properties) -> Properties:
        """Return the properties with the type's secret ones in the engine's envelope."""
        return seal_properties(kind.fields, values)


def _fixed_names(fields: Fields) -> set[str]:
    return {item.name for item in fields if item.marks & Mark.NEW}


def _without_unknowns(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {name: _without_unknowns(value) for name, value in values.items()}
    if isinstance(values, list):
        return [_without_unknowns(value) for value in values]
    return None if unknown(values) else values
