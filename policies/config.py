"""The configuration of a policy: typed, strict, and per environment. What the engine does not refuse is refused here.

The engine checks a configuration against the schema that is made from these models, before it evaluates anything. It
does not know that other keys beside the named ones are slips of the pen: the models do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from bezel.planner.base.names import is_own_label
from bezel.planner.base.problems import Problem, shown

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.inputs import Inputs

Environment = Literal["dev", "prod"]
"""What `bezel:environment` may say; it arrives as the label `environment`."""


class PolicyConfig(BaseModel):
    """A policy's keys. A policy without any takes this one."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Limits(PolicyConfig):
    """One limit for each environment that may be deployed; an environment without one is refused."""

    limits: dict[Environment, Any]
    exempt: list[str] = Field(
        [], description="types of resource whose accelerators pass here without a price, a number or an end"
    )

    def of(self, inputs: Inputs) -> tuple[str, Any]:
        """The environment of a resource and its limit.

        Args:
            inputs: the resource's labels. Without the label `environment`, the only environment that has a limit is
                meant.

        Raises:
            InputError: there is no limit for it.
        """
        named = inputs.text("environment")
        limits: dict[str, Any] = {str(name): limit for name, limit in self.limits.items()}
        if named is None and len(limits) == 1:
            return next(iter(limits.items()))
        if named is None or named not in limits:
            raise inputs.refusal(
                named,
                f"there is no limit for it: this configuration has limits for {' and '.join(sorted(limits))} only.",
                "set `bezel:environment` to one of them, or run the policy pack with a configuration for it.",
                "environment",
            )
        return named, limits[named]


C = TypeVar("C", bound=PolicyConfig)


class UsdLimits(Limits):
    """Money."""

    limits: dict[Environment, Annotated[float, Field(gt=0)]] = Field(
        min_length=1, description="environment -> most USD"
    )


class CountLimits(Limits):
    """Numbers of instances."""

    limits: dict[Environment, Annotated[int, Field(ge=0)]] = Field(
        min_length=1, description="environment -> most instances"
    )


class HourLimits(Limits):
    """Durations."""

    limits: dict[Environment, Annotated[float, Field(gt=0)]] = Field(
        min_length=1, description="environment -> most hours"
    )


class NameLimits(Limits):
    """Names that are allowed."""

    limits: dict[Environment, list[str]] = Field(
        min_length=1, description="environment -> names, e.g. `nvidia-l4`, `v6e-4` or `flex-start`"
    )


def read_config(model: type[C], given: Mapping[str, object], *, policy: str) -> C:
    """A policy's configuration.

    Raises:
        ConfigError: it is wrong; holds everything that is.
    """
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        raise ConfigError(tuple(_problem(policy, found, model) for found in error.errors(include_url=False))) from None


class ConfigError(Exception):
    """A configuration that cannot be followed, so nothing passes."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n\n".join(str(problem) for problem in problems))
        self.problems = problems


def _problem(policy: str, found: Mapping[str, Any], model: type[PolicyConfig]) -> Problem:
    key = ".".join([policy, *(str(part) for part in found["loc"])])
    known = ", ".join(model.model_fields) or "none"
    return Problem(
        key,
        shown(found["input"]),
        f"the policy's configuration is wrong there, so nothing passes: {found['msg'].rstrip('.')}.",
        f"correct it in the file of --policy-pack-config. Keys of this policy: {known}.",
    )


def schema_of(model: type[PolicyConfig]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Properties and required keys as the engine's JSON schema wants them."""
    schema = model.model_json_schema()
    return schema.get("properties", {}), schema.get("required", [])


class LabelConfig(PolicyConfig):
    """Which labels, and what is filled in where one is missing."""

    required: list[str] = Field(
        ["owner", "environment", "expires-at"], description="labels that each resource has that takes labels"
    )
    defaults: dict[str, str] = Field({}, description="label -> value that is filled in where the label is missing")

    @field_validator("defaults")
    @classmethod
    def _not_whose_it_is(cls, defaults: dict[str, str]) -> dict[str, str]:
        """Who made a resource, for which stack and environment, is its program's to say."""
        if own := ", ".join(name for name in defaults if is_own_label(name)):
            raise PydanticCustomError(
                "own_label", "{own}: labels by which a stack knows its resources are never filled in", {"own": own}
            )
        return defaults
