"""Advice on what to change on a stack: by rules over log, platform and metrics, and by the stack's own model."""

from bezel.operations.context import Context
from bezel.operations.diagnosis.analysis import Analysis, AnalysisArguments, analysis_of


class AdviseArguments(AnalysisArguments):
    """Which stack, and how much of its log."""


def advise(context: Context, arguments: AdviseArguments) -> Analysis:
    """What to change on a stack. Nothing is changed.

    Raises:
        UserError: The backend has no such stack, or `since` is no begin.
    """
    return analysis_of(context, arguments, "advise")
