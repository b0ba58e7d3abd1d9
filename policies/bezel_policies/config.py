"""Configuration of a policy: typed, strict, and per environment.

The engine checks a configuration against the schema generated from these models before it evaluates anything, but
accepts unknown keys, which may be typing errors: the models refuse them.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, field_validator
from pydantic_core import PydanticCustomError

from bezel.planner.base.environments import PATTERN as ENVIRONMENT_PATTERN
from bezel.planner.base.environments import is_environment
from bezel.planner.base.names import is_own_label
from bezel.resource_cost.inputs import Inputs
from bezel_base.errors import Problem, UserError

if TYPE_CHECKING:
    from pydantic.config import JsonDict


class PolicyConfig(BaseModel):
    """Keys of a policy. A policy without keys uses this class."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


C = TypeVar("C", bound=PolicyConfig)


class Limits(PolicyConfig):
    """Limits by environment that may be deployed; an environment without one is refused."""

    limits: dict[str, Any]
    exempt: list[str] = Field(
        [], description="resource types whose accelerators pass without a price, a number or an end"
    )

    @field_validator("limits")
    @classmethod
    def _of_environments(cls, limits: dict[str, Any]) -> dict[str, Any]:
        """Refuse what no stack can have as `bezel:environment`, which becomes the label `environment`."""
        if wrong := ", ".join(name for name in limits if not is_environment(name)):
            raise PydanticCustomError("environment", "{wrong}: not the name of an environment", {"wrong": wrong})
        return limits

    def of(self, inputs: Inputs) -> tuple[str, Any]:
        """A resource's environment and its limit.

        Args:
            inputs: the resource's labels. Without the label `environment`, the only environment with a limit
                applies.

        Raises:
            InputError: the environment has no limit.
        """
        environment = inputs.text("environment")
        limits: dict[str, Any] = {str(name): limit for name, limit in self.limits.items()}
        if environment is None and len(limits) == 1:
            return next(iter(limits.items()))
        if environment is None or environment not in limits:
            raise inputs.refusal(
                environment,
                f"there is no limit for it: this configuration has limits for {' and '.join(sorted(limits))} only.",
                "set `bezel:environment` to one of them, or run the policy pack with a configuration for it.",
                "environment",
            )
        return environment, limits[environment]


class StackLimits(Limits):
    """Limits of a stack's sums, with what its load balancers are expected to process."""

    traffic_gib: float | None = Field(
        None, ge=0, description="GiB a month through a stack's load balancers, in and out together, that are counted"
    )


L = TypeVar("L", bound=Limits)


def _limits(base: type[L], name: str, limit: Any, what: str) -> type[L]:
    """The model of limits of one kind."""
    names: JsonDict = {"propertyNames": {"pattern": ENVIRONMENT_PATTERN}}
    field = Field(min_length=1, description=f"environment -> {what}", json_schema_extra=names)
    return create_model(name, __base__=base, limits=(dict[str, limit], field))


UsdLimits = _limits(Limits, "UsdLimits", Annotated[float, Field(gt=0)], "maximum in USD")
StackUsdLimits = _limits(StackLimits, "StackUsdLimits", Annotated[float, Field(gt=0)], "maximum in USD")
CountLimits = _limits(Limits, "CountLimits", Annotated[int, Field(ge=0)], "maximum number of instances")
HourLimits = _limits(Limits, "HourLimits", Annotated[float, Field(gt=0)], "maximum in hours")
NameLimits = _limits(Limits, "NameLimits", list[str], "names, e.g. `nvidia-l4`, `v6e-4` or `flex-start`")


def read_config(model: type[C], values: Mapping[str, object], *, policy: str) -> C:
    """Read a policy's configuration.

    Raises:
        ConfigError: it is invalid; holds every problem.
    """
    try:
        return model.model_validate(dict(values))
    except ValidationError as error:
        raise ConfigError(*(_problem(policy, detail, model) for detail in error.errors(include_url=False))) from None


class ConfigError(UserError):
    """An invalid configuration, so nothing passes."""


def _problem(policy: str, detail: Mapping[str, Any], model: type[PolicyConfig]) -> Problem:
    key = ".".join([policy, *(str(part) for part in detail["loc"])])
    keys = ", ".join(model.model_fields) or "none"
    return Problem(
        key,
        detail["input"],
        f"the policy's configuration is invalid, so nothing passes: {detail['msg'].rstrip('.')}.",
        f"correct it in the file of --policy-pack-config. Keys of this policy: {keys}.",
    )


def schema_of(model: type[PolicyConfig]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Properties and required keys for the engine's JSON schema."""
    schema = model.model_json_schema()
    return schema.get("properties", {}), schema.get("required", [])


class RequestConfig(PolicyConfig):
    """Types whose requests pass unread."""

    exempt: list[str] = Field([], description="resource types whose requests to Google's APIs pass unread")


class LabelConfig(PolicyConfig):
    """Required labels, and values to fill in where one is missing."""

    required: list[str] = Field(
        ["owner", "environment", "expires-at"],
        description="labels that each resource of a labelled type must have",
    )
    defaults: dict[str, str] = Field({}, description="label -> value that replaces a missing label")

    @field_validator("defaults")
    @classmethod
    def _not_whose_it_is(cls, defaults: dict[str, str]) -> dict[str, str]:
        """Refuse defaults for ownership labels: only the program sets a resource's stack and environment."""
        if own_labels := ", ".join(name for name in defaults if is_own_label(name)):
            raise PydanticCustomError(
                "own_label", "{own}: labels that mark the resources of a stack are never filled in", {"own": own_labels}
            )
        return defaults
