"""Configuration of a policy: typed, strict, and per environment.

The engine checks a configuration against the schema generated from these models before it evaluates anything, but
accepts unknown keys, which may be typing errors: the models refuse them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator
from pydantic_core import PydanticCustomError

from bezel.errors import Problem, UserError, shown
from bezel.planner.base.names import is_own_label

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policies.inputs import Inputs

Environment = Literal["dev", "prod"]
"""Values of `bezel:environment`, which becomes the label `environment`."""


class PolicyConfig(BaseModel):
    """Keys of a policy. A policy without keys uses this class."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class Limits(PolicyConfig):
    """Limits by environment that may be deployed; an environment without one is refused."""

    limits: dict[Environment, Any]
    exempt: list[str] = Field(
        [], description="types of resource whose accelerators pass here without a price, a number or an end"
    )

    def of(self, inputs: Inputs) -> tuple[str, Any]:
        """A resource's environment and its limit.

        Args:
            inputs: the resource's labels. Without the label `environment`, the only environment with a limit
                applies.

        Raises:
            InputError: the environment has no limit.
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
    """Limits in USD."""

    limits: dict[Environment, Annotated[float, Field(gt=0)]] = Field(
        min_length=1, description="environment -> most USD"
    )


class CountLimits(Limits):
    """Limits in instances."""

    limits: dict[Environment, Annotated[int, Field(ge=0)]] = Field(
        min_length=1, description="environment -> most instances"
    )


class HourLimits(Limits):
    """Limits in hours."""

    limits: dict[Environment, Annotated[float, Field(gt=0)]] = Field(
        min_length=1, description="environment -> most hours"
    )


class NameLimits(Limits):
    """Allowed names."""

    limits: dict[Environment, list[str]] = Field(
        min_length=1, description="environment -> names, e.g. `nvidia-l4`, `v6e-4` or `flex-start`"
    )


def read_config(model: type[C], given: Mapping[str, object], *, policy: str) -> C:
    """Read a policy's configuration.

    Raises:
        ConfigError: it is invalid; holds every problem.
    """
    try:
        return model.model_validate(dict(given))
    except ValidationError as error:
        raise ConfigError(*(_problem(policy, found, model) for found in error.errors(include_url=False))) from None


class ConfigError(UserError):
    """An invalid configuration, so nothing passes."""


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
    """Properties and required keys for the engine's JSON schema."""
    schema = model.model_json_schema()
    return schema.get("properties", {}), schema.get("required", [])


class LabelConfig(PolicyConfig):
    """Required labels, and values to fill in where one is missing."""

    required: list[str] = Field(
        ["owner", "environment", "expires-at"], description="labels that each resource has that takes labels"
    )
    defaults: dict[str, str] = Field({}, description="label -> value that is filled in where the label is missing")

    @field_validator("defaults")
    @classmethod
    def _not_whose_it_is(cls, defaults: dict[str, str]) -> dict[str, str]:
        """Refuse defaults for ownership labels: only the program sets a resource's stack and environment."""
        if own := ", ".join(name for name in defaults if is_own_label(name)):
            raise PydanticCustomError(
                "own_label", "{own}: labels by which a stack knows its resources are never filled in", {"own": own}
            )
        return defaults
