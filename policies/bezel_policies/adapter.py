"""Adapter that serves rules to the engine as policies: the only module that uses the library.

Owns that a policy is mandatory (an advice is not, and never fails), that an invalid configuration and an input that
cannot be checked are violations (the library would only warn of an unknown one and let it pass), and that a rule gets
plain values. Leaves the checks to the rules.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
    StackValidationPolicy,
    proxy,
)

from bezel.resource_cost.inputs import UNKNOWN, InputError, Inputs
from bezel.resource_cost.stack_cost import AnyResource, StateResource
from bezel_base.errors import Problem
from bezel_policies.config import ConfigError, PolicyConfig, read_config, schema_of
from bezel_policies.security.forwarding import LinkedResource

C = TypeVar("C", bound=PolicyConfig)
R = TypeVar("R")
_UNKNOWN_MARKS = frozenset(mark for name, mark in vars(proxy).items() if name.startswith("UNKNOWN_"))
"""Markers of unknown inputs where the library does not raise for them, as in a remediation."""
ENGINES_OWN = "__"
"""Prefix of the engine's own markers, which are not inputs of the resource."""


def resource_policy(
    config: type[C],
    rule: Callable[[str, Inputs, C], Iterable[Problem]],
    remedy: Callable[[str, Inputs, C], Mapping[str, object] | None] | None = None,
) -> ResourceValidationPolicy:
    """A policy over each resource, evaluated before the resource is created or changed.

    Args:
        config: the model of its configuration.
        rule: the problems of a resource, by its type and inputs; names and describes the policy.
        remedy: inputs that replace the resource's own before the evaluation, if any.
    """
    name, description = _name_and_description(rule)

    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        try:
            settings = read_config(config, args.get_config(), policy=name)
            for problem in rule(args.resource_type, Inputs(plain(args.props)), settings):
                report(str(problem), None)
        except (ConfigError, InputError) as error:
            report(str(error), None)

    def remediate(args: ResourceValidationArgs) -> Any:
        assert remedy is not None  # noqa: S101 -- registered only where there is one
        try:
            settings = read_config(config, args.get_config(), policy=name)
            completed = remedy(args.resource_type, Inputs(plain(args.props)), settings)
        except (ConfigError, InputError):
            return None  # the validation that follows reports why
        if not completed:
            return None
        props: Any = args.props
        for key, value in completed.items():
            props[key] = value  # in place, so that the library keeps secrets in it secret
        return props

    return ResourceValidationPolicy(
        name,
        description,
        validate=validate,
        remediate=remediate if remedy else None,
        enforcement_level=EnforcementLevel.REMEDIATE if remedy else EnforcementLevel.MANDATORY,
        config_schema=_schema(config),
    )


def stack_policy(
    config: type[C], rule: Callable[[Iterable[tuple[str, Inputs]], C], Iterable[Problem]]
) -> StackValidationPolicy:
    """A policy over all resources together, evaluated after the last one: in an `up`, after their creation.

    It gets outputs. The cloud sets the unknown ones, which count as not set: the resource policies checked all inputs
    of the program, and let no unknown one pass.
    """

    def read(resources: Sequence[PolicyResource]) -> list[tuple[str, Inputs]]:
        return [(each.resource_type, _known_inputs(each)) for each in resources]

    return _over_stack(config, rule, read)


def linked_policy(
    config: type[C], rule: Callable[[Iterable[LinkedResource], C], Iterable[Problem]]
) -> StackValidationPolicy:
    """The same over resources that know whose outputs their inputs are, in a preview too."""

    def read(resources: Sequence[PolicyResource]) -> list[LinkedResource]:
        linked = {each.urn: LinkedResource(each.name, each.resource_type, _known_inputs(each)) for each in resources}
        for each in resources:
            sources = linked[each.urn].sources
            sources.update({key: [linked[one.urn] for one in of] for key, of in each.property_dependencies.items()})
        return list(linked.values())

    return _over_stack(config, rule, read)


def _over_stack(
    config: type[C],
    rule: Callable[[Iterable[R], C], Iterable[Problem]],
    read: Callable[[Sequence[PolicyResource]], Sequence[R]],
) -> StackValidationPolicy:
    name, description = _name_and_description(rule)

    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        try:
            settings = read_config(config, args.get_config(), policy=name)
            for problem in rule(read(args.resources), settings):
                report(str(problem), None)
        except (ConfigError, InputError) as error:
            report(str(error), None)

    return StackValidationPolicy(
        name,
        description,
        validate=validate,
        enforcement_level=EnforcementLevel.MANDATORY,
        config_schema=_schema(config),
    )


def _known_inputs(resource: PolicyResource) -> Inputs:
    return Inputs(plain(resource.props, unknown=None))


def advice(rule: Callable[[Iterable[AnyResource]], str | None]) -> list[Policy]:
    """Policies that show a rule's text about all resources together, in a preview and in an `up`, and never fail.

    A policy over a stack gets outputs, of which a preview does not know those that the cloud sets. So another policy
    remembers the inputs of each resource, and reports nothing.

    Args:
        rule: the text about the resources, None for no text; names and describes the policy.
    """
    name, description = _name_and_description(rule)
    inputs: dict[str, Any] = {}

    def remember(args: ResourceValidationArgs, _report: ReportViolation) -> None:
        with suppress(Exception):  # the stack's policy then takes the outputs
            inputs[args.urn] = plain(args.props)

    def advise(args: StackValidationArgs, report: ReportViolation) -> None:
        try:
            text = rule([_state_resource(resource, inputs) for resource in args.resources])
        except Exception as error:  # noqa: BLE001 -- an advice that fails would stop the deployment
            text = f"unknown: this policy failed ({type(error).__name__}); the deployment is not affected."
        if text:
            report(text, None)

    return [
        ResourceValidationPolicy(
            f"{name}-inputs",
            f"Remembers the inputs that {name} reads; reports nothing.",
            validate=remember,
            enforcement_level=EnforcementLevel.ADVISORY,
        ),
        StackValidationPolicy(name, description, validate=advise, enforcement_level=EnforcementLevel.ADVISORY),
    ]


def _state_resource(resource: PolicyResource, inputs: Mapping[str, Any]) -> StateResource:
    plain_inputs = inputs.get(resource.urn)
    values = plain(resource.props, unknown=None) if plain_inputs is None else plain_inputs
    # Only a component has no provider.
    return StateResource(resource.name, resource.resource_type, values, custom=resource.provider is not None)


def _name_and_description(rule: Callable[..., object]) -> tuple[str, str]:
    """Name and description of a policy: the name of its rule, and the first line of its docstring."""
    return rule.__name__.replace("_", "-"), (rule.__doc__ or "").partition("\n")[0]


def plain(value: object, *, unknown: object = UNKNOWN) -> Any:
    """The library's views of inputs as plain values, with `unknown` in place of values that raise when read."""

    def item(holder: Any, key: Any) -> Any:
        try:
            return plain(holder[key], unknown=unknown)
        except proxy.UnknownValueError:
            return unknown

    # Text and numbers first: they are the most frequent, and the other checks are slower.
    if isinstance(value, str):
        return unknown if value in _UNKNOWN_MARKS else value
    if value is None or isinstance(value, int | float):
        return value
    if isinstance(value, Mapping):
        return {key: item(value, key) for key in value if not key.startswith(ENGINES_OWN)}
    if isinstance(value, Sequence):
        return [item(value, number) for number in range(len(value))]
    return value


def _schema(config: type[PolicyConfig]) -> PolicyConfigSchema | None:
    properties, required = schema_of(config)
    return PolicyConfigSchema(properties, required) if properties else None
