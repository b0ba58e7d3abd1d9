"""Rules as policies of the engine: the one place that knows the library.

Owns that a policy is mandatory, that a wrong configuration and an input that cannot be judged are violations (the
library would only advise of an unknown one and let it pass), and that a rule gets plain values. Leaves judging to the
rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from pulumi_policy import (
    EnforcementLevel,
    PolicyConfigSchema,
    ResourceValidationPolicy,
    StackValidationPolicy,
    proxy,
)

from policies.config import ConfigError, PolicyConfig, read_config, schema_of
from policies.inputs import UNKNOWN, InputError, Inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pulumi_policy import ReportViolation, ResourceValidationArgs, StackValidationArgs

    from bezel.planner.base.problems import Problem

C = TypeVar("C", bound=PolicyConfig)
_UNKNOWN_MARKS = frozenset(mark for name, mark in vars(proxy).items() if name.startswith("UNKNOWN_"))
"""What stands in place of an unknown input where the library does not raise for it, as in a remediation."""
ENGINES_OWN = "__"
"""Inputs of these names are the engine's marks, not the resource's."""


def resource_policy(
    name: str,
    description: str,
    config: type[C],
    rule: Callable[[str, Inputs, C], Iterable[Problem]],
    remedy: Callable[[str, Inputs, C], Mapping[str, object] | None] | None = None,
) -> ResourceValidationPolicy:
    """A policy over each resource, judged before anything happens to it.

    Args:
        name: of the policy, and of its configuration.
        description: what holds where it passes, in one sentence.
        config: the shape of its configuration.
        rule: the problems of a resource of a type with these inputs.
        remedy: inputs to put in place of the resource's own before it is judged, if any.
    """

    def validate(args: ResourceValidationArgs, report: ReportViolation) -> None:
        try:
            settings = read_config(config, args.get_config(), policy=name)
            for problem in rule(args.resource_type, Inputs(plain(args.props)), settings):
                report(str(problem), None)
        except InputError as error:
            report(str(error.problem), None)
        except ConfigError as error:
            report(str(error), None)

    def remediate(args: ResourceValidationArgs) -> Any:
        assert remedy is not None  # noqa: S101 -- registered only where there is one
        try:
            settings = read_config(config, args.get_config(), policy=name)
            better = remedy(args.resource_type, Inputs(plain(args.props)), settings)
        except (ConfigError, InputError):
            return None  # the validation that follows says why
        if not better:
            return None
        props: Any = args.props
        for key, value in better.items():
            props[key] = value  # in place: so the library keeps what is secret in it secret
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
    name: str,
    description: str,
    config: type[C],
    rule: Callable[[Iterable[tuple[str, Inputs]], C], Iterable[Problem]],
) -> StackValidationPolicy:
    """A policy over all resources together, judged after the last of them: of an `up` that is after their creation.

    It sees outputs. One that is unknown is the cloud's to fill in, and counts as not given: what the program gave was
    judged by the resource policies, which let nothing pass that they did not know.
    """

    def validate(args: StackValidationArgs, report: ReportViolation) -> None:
        try:
            settings = read_config(config, args.get_config(), policy=name)
        except ConfigError as error:
            report(str(error), None)
            return
        resources = [
            (resource.resource_type, Inputs(plain(resource.props, unknown=None))) for resource in args.resources
        ]
        for problem in rule(resources, settings):
            report(str(problem), None)

    return StackValidationPolicy(
        name,
        description,
        validate=validate,
        enforcement_level=EnforcementLevel.MANDATORY,
        config_schema=_schema(config),
    )


def plain(value: object, *, unknown: object = UNKNOWN) -> Any:
    """The library's views of inputs as plain values, with `unknown` in place of what reading would raise for."""

    def item(holder: Any, key: Any) -> Any:
        try:
            return plain(holder[key], unknown=unknown)
        except proxy.UnknownValueError:
            return unknown

    # Text and numbers first: they are most of it, and asking what else a value is takes longest.
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
