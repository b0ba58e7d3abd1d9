"""Names that a stack serves its model and adapters under, by its file, against those that a key is limited to."""

from collections.abc import Sequence

from bezel.operations.context import Context
from bezel.operations.plan.plan import plan_of
from bezel.planner.vllm.adapter_modules import read_modules
from bezel.planner.vllm.arguments import as_word
from bezel_base.errors import Problem, UserError, WrongValueError
from bezel_catalog import closest


def check_models(context: Context, stack: str, models: Sequence[str]) -> tuple[str, ...]:
    """Refuse names that the stack does not serve; a key of these alone would open nothing.

    Returns:
        Warnings, where the stack's file does not tell what is served.

    Raises:
        WrongValueError: A name is none of those that the stack serves.
    """
    if not models:
        return ()
    try:
        served = _served_names(context, stack)
    except UserError:
        return ("whether the stack serves these models is not known: its file cannot be planned",)
    problems = [_unknown(model, served) for model in models if model not in served]
    if problems:
        raise WrongValueError(*problems)
    return ()


def _served_names(context: Context, stack: str) -> tuple[str, ...]:
    plan, _ = plan_of(context, stack)
    values = plan.server.values
    names = values.get("served-model-name")
    listed = names if isinstance(names, list) else [names]
    served = [as_word(name) for name in listed if name is not None] or [plan.served_model]
    return tuple(dict.fromkeys([*served, *(module.name for module in read_modules(values))]))


def _unknown(model: str, served: tuple[str, ...]) -> Problem:
    near = closest(model, served)
    hint = f"did you mean {near}? " if near else ""
    consequence = "the stack serves no model of this name, so no request with the key would be admitted."
    return Problem(
        "--models", model, consequence, f"{hint}choose one of {', '.join(served)}; each takes a --models of its own."
    )
