"""Settings of a fallback as those of a Cloud Run service, so that the same rules judge both; and their problems back.

Owns what a fallback shares with its stack, and the keys of its settings. Leaves the rules to those of services.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from bezel.planner.base.names import PREFIX, SERVICE_LENGTH, resource_name
from bezel.planner.base.problems import NAMESPACE, setting
from bezel.planner.fallback.caller_checks import PARSERS
from bezel.planner.vllm.arguments import default_options
from bezel_base.errors import Problem
from bezel_catalog import NotInCatalogueError
from bezel_catalog import model as catalogue_model

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bezel.planner.base.settings import Settings

LENGTH = "max-model-len"
FALLBACK = "fallback"

# Key of a service -> key of a fallback. Every other key is the stack's own.
_KEYS = {
    "scaling.max_instances": "fallback.max_instances",
    **{name: f"fallback.{name}" for name in ("accelerator", "region", "model", "resources", "vllm")},
}
_NAMED = re.compile(rf"\b{NAMESPACE}:({'|'.join(map(re.escape, _KEYS))})\b")


def name_of_service(stack: str) -> str:
    """Name of the service that is a stack's fallback."""
    return resource_name(stack, suffix=FALLBACK, length=SERVICE_LENGTH)


def shared_name_warnings(name: str, stack: str) -> Iterator[str]:
    """What is to be known of a service or gateway that has the name of another stack's fallback.

    Args:
        name: of the service.
        stack: its own.
    """
    other = name.removeprefix(f"{PREFIX}-").removesuffix(f"-{FALLBACK}")
    if other not in {"", stack} and name == name_of_service(other):
        yield (
            f"The fallback of a stack {other} has the name {name} too, and Cloud Run refuses a second service of one "
            f"name in a region: if there is such a stack, set {setting('service_name')}."
        )


def settings_of_service(settings: Settings, served: Sequence[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration of the service that a fallback is.

    Image, variables and weights' loading are those of a service: a machine's may not suit it.

    Args:
        settings: of the stack.
        served: names by which callers ask for the lease's model.
        values: options of the lease's server, as vLLM reads them: responses have the same form by default, and
            requests the same bound.
    """
    chosen = settings.fallback
    model = chosen.model or settings.model
    same: dict[str, Any] = {name: values[name] for name in (*PARSERS, LENGTH) if values.get(name) is not None}
    same |= dict.fromkeys(_defaults(model).intersection(PARSERS).difference(same))
    if model != settings.model:
        same["served-model-name"] = list(served)
    weights: dict[str, Any] = {"bucket": settings.weights.bucket} if settings.weights.bucket else {}
    if settings.weights.loading is not None:
        weights["loading"] = settings.weights.loading
    if settings.weights.path and model == settings.model:
        weights["path"] = settings.weights.path
    return {
        "environment": settings.environment,
        "deletion_protection": settings.deletion_protection,
        "model": model,
        "accelerator": chosen.accelerator or "",
        "region": chosen.region or settings.region,
        "vllm_version": settings.vllm_version,
        "weights": weights,
        "vllm": same | chosen.vllm,
        "adapters": [adapter.model_dump(exclude_unset=True) for adapter in settings.adapters],
        "resources": chosen.resources.model_dump(exclude_unset=True),
        "scaling": {
            "max_instances": chosen.max_instances,
            "request_timeout_seconds": settings.scaling.request_timeout_seconds,
        },
        "secrets": dict(settings.secrets),
        "access": {"accepted_risks": list(settings.access.accepted_risks)},
        # Who leaves figures over time wants those of what served, whichever did.
        **({"observability": {"metrics": True}} if settings.observability.metrics else {}),
        "cost": {"prices": [row.model_dump() for row in settings.cost.prices]},
        "smoke": {
            "deadline_seconds": settings.smoke.deadline_seconds,
            "impersonate": settings.smoke.impersonate,
            "prompt_tokens": settings.smoke.prompt_tokens,
            "output_tokens": settings.smoke.output_tokens,
            "random_weights": settings.smoke.random_weights,
        },
        "labels": dict(settings.labels),
        **({"observability": {"metrics": True}} if settings.observability.metrics else {}),
    }


def _defaults(model: str) -> set[str]:
    """Options that a service has by default with a model; none with an unknown one."""
    try:
        return set(default_options(catalogue_model(model), loading={}))
    except NotInCatalogueError:
        return set()


def problem_of_fallback(problem: Problem) -> Problem:
    """A problem of that service, with the keys of the fallback's settings."""
    key, consequence, repair = (
        _NAMED.sub(_new_key, text) for text in (problem.key, problem.consequence, problem.repair)
    )
    return Problem(key, problem.value, consequence, repair)


def _new_key(match: re.Match[str]) -> str:
    return setting(_KEYS[match[1]])
