"""Options of the server that a program leaves out although a model has a default for them.

A stack file and a program in Python or TypeScript write a null in `vllm`; an SDK of YAML or Go drops it. So `without`
lists the names, and means the same in every language.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bezel.planner import PlanError, Problem


def leave_out(settings: Mapping[str, Any], without: Sequence[str]) -> dict[str, Any]:
    """Settings whose `vllm` has a null for each of the options, which removes its default.

    Args:
        settings: Settings as of a stack file.
        without: Names of options of `vllm serve`, without leading dashes.

    Raises:
        PlanError: `without` is no list of names, or has an option that `vllm` sets.
    """
    if isinstance(without, str) or not all(isinstance(name, str) for name in without):
        consequence = "expected a list of options, so no default would be removed."
        raise PlanError(Problem("without", without, consequence, "list names, e.g. `reasoning-parser`."))
    if not without:
        return dict(settings)
    options = settings.get("vllm") or {}
    if not isinstance(options, Mapping):
        return dict(settings)  # the plan says what is wrong with it
    problems = [
        Problem(
            "without",
            name,
            f"vllm sets this option to {options[name]}, so the server would have it.",
            "remove it from one of the two.",
        )
        for name in without
        if options.get(name) is not None
    ]
    if problems:
        raise PlanError(*problems)
    return {**settings, "vllm": {**options, **dict.fromkeys(without)}}
