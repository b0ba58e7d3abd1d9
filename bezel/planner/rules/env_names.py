"""Plain environment variables of the container: names that nothing else sets, and values that are no secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel.errors import NOT_SHOWN, Problem, shown
from bezel.planner.base.plain_secrets import is_secret
from bezel.planner.base.problems import setting
from bezel.planner.rules.platform_checks import API_KEY, RESERVED, VARIABLE
from bezel.planner.vllm.option_checks import refused_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bezel.catalog import Accelerator


def planned_variables(gpu: Accelerator | None, *, offline: bool) -> dict[str, str]:
    """Variables that the plan itself sets in the container."""
    environment = ({"HF_HUB_OFFLINE": "1"} if offline else {}) | {"VLLM_NO_USAGE_STATS": "1"}
    if gpu and gpu.forward_compatible_cuda:
        environment["VLLM_ENABLE_CUDA_COMPATIBILITY"] = "1"
    return environment


def check_variables(
    variables: Mapping[str, str], planned: Mapping[str, str], secrets: Mapping[str, str]
) -> list[Problem]:
    """Check every variable by itself, and against the plan, the platform and the secrets.

    Args:
        variables: of the stack file.
        planned: variables that the plan sets itself.
        secrets: variables that get a secret's value.
    """
    problems = []
    for name, value in variables.items():
        key = setting(f"variables.{name}")
        if not VARIABLE.fullmatch(name):
            problems.append(
                Problem(key, shown(value), "it is no name of a variable.", "write letters, digits and underscores.")
            )
        elif name == API_KEY:
            problems.append(refused_key(key))
        elif is_secret(name, value) or shown(value) == NOT_SHOWN:
            problems.append(
                Problem(
                    key,
                    NOT_SHOWN,
                    "whoever may look at the service or the machine could read it.",
                    f"put the value into Secret Manager and write `{setting('secrets')}: {{{name}: NAME_OF_SECRET}}`.",
                )
            )
        elif name in RESERVED or name in planned:
            who = "the plan" if name in planned else "the platform"
            problems.append(Problem(key, shown(value), f"{who} sets it.", "remove it."))
        elif name in secrets:
            problems.append(
                Problem(key, shown(value), f"{setting('secrets')} sets it too.", "keep it in one of the two.")
            )
    return problems
