"""The command line of options as the plan carries it."""

from collections.abc import Mapping

from bezel.planner.vllm.arguments import Argument, planned_options
from bezel_catalog import VllmOptions


def option_words(arguments: Mapping[str, Argument], options: VllmOptions) -> tuple[str, ...]:
    """The words of all options, in the order of the plan."""
    return tuple(word for option in planned_options(arguments, options).values() for word in option.arguments)
