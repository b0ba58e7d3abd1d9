"""Inputs of a component, as a program in any language gives them, become its arguments, and the component is made.

The engine sends a component's inputs once they are all there: in a preview some may be unknown. A value that a policy
judges must be known in a preview too (`bezel_components.base.arguments`), so an unknown one is refused there; others
stay unknown. What the inputs depend on is what the component's children wait for.
"""

import typing
from collections.abc import Mapping
from typing import Any

import pulumi
from google.protobuf import struct_pb2
from pulumi.provider import ConstructResult
from pulumi.resource import DependencyResource
from pulumi.runtime import rpc
from pulumi.runtime.proto import provider_pb2

from bezel_base.errors import NOT_SHOWN, Problem, UserError
from bezel_catalog import closest
from bezel_components.base.argument_errors import ArgumentsError
from bezel_components.base.check_resource import camel_case
from bezel_plugin.schema.file import schema_names
from bezel_plugin.schema.package import fields_of_row
from bezel_plugin.schema.types import Field, fields_of, is_object, plain_annotation
from bezel_plugin.table import COMPONENTS, Component, Keyword


class InputsError(UserError):
    """Inputs of a component or a check that it cannot be made with."""


def construct(request: provider_pb2.ConstructRequest, options: pulumi.ResourceOptions) -> ConstructResult:
    """Make a component of the package for a program.

    Args:
        request: The engine's request.
        options: The options in it.

    Raises:
        InputsError: There is no such component, or its inputs are wrong.
    """
    row = COMPONENTS.get(request.type)
    if row is None:
        near = closest(request.type, list(COMPONENTS))
        hint = f"use {near}." if near else f"use one of {', '.join(COMPONENTS)}."
        raise InputsError(Problem(f"type {request.type}", None, "the package bezel has no such component.", hint))
    inputs = rpc.deserialize_properties(request.inputs, keep_unknowns=True)
    _restore_nulls(request.inputs, inputs)
    arguments = arguments_of(row, request.name, inputs)
    urns = sorted({urn for dependencies in request.inputDependencies.values() for urn in dependencies.urns})
    waits: Any = options.depends_on or []
    options.depends_on = [*waits, *(DependencyResource(urn) for urn in urns)]
    made = _make(row, request.name, arguments, options)
    return ConstructResult(made.urn, {camel_case(name): getattr(made, name) for name in row.outputs})


def _make(row: Component, name: str, arguments: Any, options: pulumi.ResourceOptions) -> Any:
    component: Any = row.resource()
    try:
        return component(name, options, **arguments) if row.settings else component(name, arguments, options)
    except UserError as error:
        raise InputsError(*map(schema_names().in_problem, error.problems), title=error.title) from None


def arguments_of(row: Component, name: str, inputs: Mapping[str, Any]) -> Any:
    """The arguments of a component: its model, or its settings by Python's names, which a plan judges.

    Args:
        row: The component.
        name: Its name, for messages.
        inputs: The inputs by their names in the schema, unknown ones as `pulumi.UNKNOWN`.

    Raises:
        InputsError: Inputs are unknown to the component, of another type, missing, secret or not known yet.
    """
    reading = _Reading(name)
    model = row.arguments()
    values = reading.fields(fields_of_row(row), inputs, "")
    reading.keywords(row.keywords, values)
    if reading.problems:
        raise InputsError(*reading.problems)
    if row.settings:
        return values
    try:
        return model(**values)
    except ArgumentsError as error:
        raise InputsError(*(_invalid(model, name, each) for each in error.details)) from None


class _Reading:
    """One pass over the inputs, which notes every problem."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.problems: list[Problem] = []

    def fields(self, known: list[Field], inputs: Mapping[str, Any], path: str) -> dict[str, Any]:
        """The values of fields, by Python's names."""
        fields = {field.key: field for field in known}
        for key in sorted(inputs.keys() - fields.keys()):
            self._note(f"{path}{key}", None, "there is no such input, so it would be ignored", _instead(key, fields))
        return {
            field.name: self._value(inputs[key], field.annotation, f"{path}{key}", field)
            for key, field in fields.items()
            if inputs.get(key) is not None
        }

    def keywords(self, keywords: Mapping[str, Keyword], values: Mapping[str, Any]) -> None:
        """Note which of the keywords have values of another type: a plan is not asked for them."""
        for name, keyword in keywords.items():
            if values.get(name) is not None and (problem := keyword.problem(values[name])):
                self._note(camel_case(name), values[name], f"{problem[0]}, so nothing is made", problem[1])

    def _value(self, value: Any, annotation: Any, path: str, field: Field) -> Any:
        annotation, takes_unknown = plain_annotation(annotation)
        takes_unknown = takes_unknown or field.takes_unknown
        if isinstance(value, pulumi.Output) or rpc.is_rpc_secret(value):
            if takes_unknown:
                return pulumi.Output.secret(rpc.unwrap_rpc_secret(value))
            text = "plans, policies and messages show it, so it may not be a secret"
            self._note(path, NOT_SHOWN, text, "give it in plain text; a secret's value belongs into Secret Manager")
            return None
        if isinstance(value, pulumi.output.Unknown):
            if takes_unknown:
                return _unknown_output()
            text = "it is known only after another resource is made, so no policy could judge it in a preview"
            self._note(path, "(not known yet)", text, "write the value itself, or an output that is known in previews")
            return None
        return self._part(value, annotation, path, field)

    def _part(self, value: Any, annotation: Any, path: str, field: Field) -> Any:
        """A known value, with the parts of an array or an object read in the same way."""
        inner = typing.get_args(annotation)
        if is_object(annotation) and isinstance(value, Mapping):
            return self.fields(fields_of(annotation), value, f"{path}.")
        if isinstance(value, list) and (inner or annotation is Any):
            part = inner[0] if inner else Any
            return [self._value(each, part, f"{path}[{place}]", field) for place, each in enumerate(value)]
        if isinstance(value, Mapping) and (len(inner) > 1 or annotation is Any):
            part = inner[1] if inner else Any
            kept = {key: each for key, each in value.items() if each is not None or part is Any}
            return {key: self._value(each, part, f"{path}.{key}", field) for key, each in kept.items()}
        if annotation is not float and isinstance(value, float) and value.is_integer():
            return int(value)  # the engine sends every number as a fraction
        return value

    def _note(self, path: str, value: object, consequence: str, repair: str) -> None:
        self.problems.append(Problem(f"{self._name}: {path}", value, f"{consequence}.", f"{repair}."))


def _instead(key: str, fields: Mapping[str, Field]) -> str:
    near = closest(key, list(fields))
    return f"write {near} instead, or remove it" if near else f"remove it; there are {', '.join(sorted(fields))}"


def _restore_nulls(given: struct_pb2.Struct, inputs: dict[str, Any]) -> None:
    """Enter the nulls of objects, which the SDK leaves out: one in `vllm` removes an option's default."""
    for key, value in given.fields.items():
        if value.HasField("null_value"):
            inputs[key] = None
        elif value.HasField("struct_value") and isinstance(inputs.get(key), dict):
            _restore_nulls(value.struct_value, inputs[key])


def _unknown_output() -> pulumi.Output[Any]:
    """An output that is not known yet."""
    return pulumi.Output.from_input(pulumi.UNKNOWN)


def _invalid(model: type[Any], name: str, error: Any) -> Problem:
    """A problem for an error of pydantic's."""
    path = ".".join(camel_case(str(part)) for part in error["loc"])
    if error["type"] == "missing":
        described = next((field.description for field in fields_of(model) if field.key == path), "")
        return Problem(f"{name}: {path}", "(not set)", "it is required, so nothing is made.", f"set it: {described}")
    message = str(error["msg"]).removeprefix("Value error, ")
    if error["type"] == "value_error":
        # A rule of the model itself: its text has the value, the consequence and the repair.
        what, _, repair = schema_names().in_text(message).partition("; ")
        return Problem(f"{name}: {path}".rstrip(": "), None, f"{what}.", f"{repair or 'correct the inputs'}.")
    return Problem(f"{name}: {path}", error["input"], f"{message}, so nothing is made.", "correct the value.")
