"""Validation of a lease's fallback: the rules of a service, and what callers of the lease would notice.

Leaves the lease to bezel.planner.assemble.lease_validate, and the shape of the plan to bezel.planner.assemble.build.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.planner.assemble.validate import validate_service
from bezel.planner.base.hardware import leased_hardware
from bezel.planner.base.problems import PlanError, one_of, setting
from bezel.planner.base.settings import Fallback
from bezel.planner.fallback.caller_checks import Promise, check_callers
from bezel.planner.fallback.settings_of_service import name_of_service, problem_of_fallback, settings_of_service
from bezel.planner.vllm.arguments import typed_values
from bezel.planner.vllm.engine_args import served_names
from bezel_base.errors import NOT_SET, Problem
from bezel_catalog import accelerators, closest_record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date

    from bezel.planner.assemble.validate import ValidatedService
    from bezel.planner.assemble.validation import Validation
    from bezel_catalog import Model

_SECTION = setting("fallback")


def validate_fallback(rules: Validation, checkpoint: Model, *, today: date | None) -> ValidatedService | None:
    """Run the rules of a fallback; its problems join those of the lease.

    Args:
        rules: of the lease, with its problems so far.
        checkpoint: the lease's model.
        today: latest possible date of the stack file's price rows; None without a clock.

    Returns:
        The service; None without a fallback, and where something of it is wrong.
    """
    chosen = rules.settings.fallback
    if any(key.startswith(f"{_SECTION}.") for key in rules.unread):
        return None
    if problem := _hardware_problem(chosen):
        rules.problems.append(problem)
    if chosen.accelerator is None or problem:
        return None
    rules.problems += _check_name(rules)
    names = served_names(rules.values.get("served-model-name"), checkpoint)
    config = settings_of_service(rules.settings, names, rules.values)
    try:
        return validate_service(config, project=rules.project, stack=rules.stack, today=today)
    except PlanError as error:
        pairs_of_lease = {(problem.key, problem.value) for problem in rules.problems}
        mapped = [
            _of_gpus(_of_own_model(problem_of_fallback(problem), chosen), chosen.accelerator)
            for problem in error.problems
        ]
        rules.problems += [problem for problem in mapped if (problem.key, problem.value) not in pairs_of_lease]
        return None


def check_promise(
    rules: Validation, checkpoint: Model, service: ValidatedService, *, max_model_len: int, pooled_at: str | None
) -> None:
    """Refuse a fallback that breaks requests which the lease answers.

    Args:
        rules: of the lease, with its problems so far.
        checkpoint: the lease's model.
        service: the fallback.
        max_model_len: tokens of the lease's longest request.
        pooled_at: the endpoint of a model that pools; None for one that generates.
    """
    names = served_names(rules.values.get("served-model-name"), checkpoint)
    lease = Promise(checkpoint.id, names, max_model_len, rules.values, pooled_at)
    accepts_shorter = rules.settings.fallback.accept_shorter_context
    rules.problems += check_callers(lease, promise_of(service), accepts_shorter=accepts_shorter)


def promise_of(service: ValidatedService) -> Promise:
    """What a fallback promises its callers."""
    values = typed_values(service.arguments)
    names = served_names(values.get("served-model-name"), service.model)
    return Promise(service.model.id, names, service.fit.max_model_len, values, service.smoke.pooled_at)


def _check_name(rules: Validation) -> Iterator[Problem]:
    name, region = rules.settings.service_name, rules.settings.region
    if name == name_of_service(rules.stack) and (rules.settings.fallback.region or region) == region:
        yield Problem(
            setting("service_name"),
            name,
            f"the fallback has this name in {region} too: Cloud Run refuses a second service of one name in a region.",
            "choose another name.",
        )


def _of_own_model(problem: Problem, chosen: Fallback) -> Problem:
    """A problem of the weights' folder as one of the fallback's own model: the setting is the folder of the lease's."""
    if chosen.model is None or problem.key != setting("weights.path") or problem.value != NOT_SET:
        return problem
    repair = "choose a published model, or remove it: by default the fallback serves the lease's."
    return Problem(setting("fallback.model"), chosen.model, problem.consequence, repair)


def _of_gpus(problem: Problem, name: str) -> Problem:
    """A problem of unknown hardware with Cloud Run's GPUs as choices, as leased hardware is refused."""
    if problem.key != setting("fallback.accelerator") or name in accelerators():
        return problem
    gpus = sorted(accelerators())
    return Problem(problem.key, problem.value, problem.consequence, one_of(gpus, closest_record(name, gpus)))


def _hardware_problem(chosen: Fallback) -> Problem | None:
    if chosen.accelerator is None and chosen != Fallback():
        return Problem(
            setting("fallback.accelerator"),
            NOT_SET,
            "it is required: without it there is no fallback, and the other settings of it have no effect.",
            f"add `{setting('fallback.accelerator')}: nvidia-l4`, or remove {_SECTION}.",
        )
    if chosen.accelerator in leased_hardware():
        return Problem(
            setting("fallback.accelerator"),
            chosen.accelerator,
            "it is leased itself: it would end as the lease does, and costs the same without requests.",
            "choose a GPU of Cloud Run, e.g. nvidia-l4, which costs nothing without requests.",
        )
    return None
