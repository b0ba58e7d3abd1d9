"""Errors of Google that a user repairs, explained in the engine's log beside Google's own words.

Leaves out the repair of a failed service, which needs its state and its log (`failure_explanation`).
"""

import pulumi

from bezel_base.errors import Problem
from bezel_components.base.caller_names import problem_in_caller_words

REFUSED = ("denied", "permission", "forbidden")
"""Words of Google's refusals, of which each API has others."""


def explaining(name: str, parts: tuple[str, ...], problem: Problem) -> pulumi.ResourceHookBinding:
    """Hooks of a resource that log a problem when its creation or change fails with one of the words.

    Args:
        name: Name of the hook: unique in a program.
        parts: Parts of the error's text, in lower case.
        problem: Value, consequence and repair.
    """

    def explain(failed: pulumi.ErrorHookArgs) -> bool:
        if any(word in error.lower() for error in failed.errors for word in parts):
            pulumi.log.error(str(problem_in_caller_words(problem)))
        return False  # no retry: the same error would follow

    return pulumi.ResourceHookBinding(on_error=[pulumi.ErrorHook(name, explain)])
