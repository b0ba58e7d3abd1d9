"""Analysis of a stack's log: by rules, and by the stack's own model, to which the log is data."""

from bezel.operations.context import Context
from bezel.operations.diagnosis.analysis import Analysis, AnalysisArguments, analysis_of


class AnalyzeLogsArguments(AnalysisArguments):
    """Which stack, and how much of its log."""


def analyze_logs(context: Context, arguments: AnalyzeLogsArguments) -> Analysis:
    """What a stack's log shows.

    Raises:
        UserError: The backend has no such stack, or `since` is no begin.
    """
    return analysis_of(context, arguments, "analyze")
