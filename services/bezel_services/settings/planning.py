"""Arguments of a service become its plan, or an error that any program shows without a traceback."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import pulumi

from bezel.planner import LeasePlan, Plan, PlanError, Problem, make_plan
from bezel.planner.base.hardware import find_leased_hardware
from bezel.planner.base.problems import NAMESPACE
from bezel.planner.base.settings import Settings
from bezel_base.errors import UserError
from bezel_catalog.project_models import read_project_models
from bezel_services.environment import google_project

PlanKind = TypeVar("PlanKind", Plan, LeasePlan)

_KEY = re.compile(rf"\b{NAMESPACE}:(?={'|'.join(Settings.model_fields)})")


class ServiceRefusedError(PlanError, pulumi.RunError):
    """The service cannot work as it is set, or the cloud has no room for it; nothing of it is declared.

    Also an error of the SDK's that ends a program with its text alone.
    """


@contextmanager
def refused_as(title: str) -> Iterator[None]:
    """Raise each error that a user repairs as a `ServiceRefusedError`, with the arguments by their own names.

    Args:
        title: What cannot be done, e.g. `VllmService chat cannot be planned`.
    """
    try:
        yield
    except UserError as error:
        raise ServiceRefusedError(*map(_with_arguments, error.problems), title=title) from None


def plan_service(
    kind: type[PlanKind], name: str, settings: Mapping[str, object], project: str | None, cloud_name: str | None
) -> PlanKind:
    """Plan a service of one kind, with settings that are known.

    Args:
        kind: The kind of the plan.
        name: Name of the component.
        settings: Settings as of a stack file.
        project: Google Cloud project; the provider's without one.
        cloud_name: Base of the names in Google Cloud; by default the component's name and the stack's.

    Raises:
        PlanError: The service cannot work as it is set, or its accelerator is of the other kind.
    """
    accelerator = settings.get("accelerator")
    if kind is Plan and find_leased_hardware(str(accelerator).strip()):
        fit = "LeasedVllmService, in a program in Python"
        raise PlanError(_other_kind(accelerator, "hardware that is leased", fit))
    base = cloud_name or f"{name}-{pulumi.get_stack()}"
    today, models = datetime.now(UTC).date(), read_project_models(Path.cwd())
    plan = make_plan(settings, project=project or google_project(), stack=base, today=today, models=models)
    if not isinstance(plan, kind):
        raise PlanError(_other_kind(accelerator, "a GPU of Cloud Run, which is not leased", "VllmService"))
    return plan


def _other_kind(accelerator: object, what: str, fit: str) -> Problem:
    return Problem("accelerator", accelerator, f"it is {what}, so this component cannot use it.", f"use {fit}.")


def _with_arguments(problem: Problem | str) -> Problem | str:
    """A problem that names arguments instead of settings: without the namespace of a stack file."""
    if isinstance(problem, str):
        return _KEY.sub("", problem)
    consequence, repair = (_KEY.sub("", text) for text in (problem.consequence, problem.repair))
    return Problem(problem.key.removeprefix(f"{NAMESPACE}:"), problem.value, consequence, repair)
