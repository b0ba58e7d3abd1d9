"""Entry of `bezel doctor --ask-google`: the file of its report, and its outcomes for a planned stack.

Leaves out the verdict itself (`verdict`), which is imported late: it needs the engine and localcloud.
"""

from pathlib import Path

from bezel.operations.context import Context
from bezel.operations.doctor.check import Check, check, of_error
from bezel.operations.doctor.verdict import HEADING
from bezel.operations.quota.known import needs_of
from bezel.planner import AnyPlan
from bezel.rest import GoogleClient
from bezel_base.errors import NOT_SET, Problem, UserError, WrongValueError

"""First line of every report, by which an earlier one is known."""
_SUFFIX = ".md"
_SECONDS = 20.0


def report_file(folder: Path, stack: str | None, name: str | None, *, is_asked: bool) -> Path | None:
    """The file of the report; None where Google is not asked.

    Args:
        folder: The project's folder.
        stack: The stack that is checked; None for several.
        name: The file that the user names; None for the usual one.
        is_asked: Whether Google is to be asked.

    Raises:
        WrongValueError: The arguments do not go together, or no report may be written there.
    """
    if not is_asked:
        if name is not None:
            consequence = "Google is not asked without --ask-google, so there is nothing to report."
            raise WrongValueError(Problem("--verdict", name, consequence, "add --ask-google, or leave it out."))
        return None
    if stack is None:
        consequence = "Google judges the service of one stack, and which one is not said."
        raise WrongValueError(Problem("STACK", NOT_SET, consequence, "name it: `bezel doctor STACK --ask-google`."))
    chosen = name or f"google-{stack}{_SUFFIX}"
    file = (folder / chosen).resolve()
    if problem := _why_not(file, folder.resolve()):
        repair = f"name a new file below the project's folder, e.g. --verdict google-2{_SUFFIX}."
        raise WrongValueError(Problem("--verdict", chosen, problem, repair))
    return file


def _why_not(file: Path, folder: Path) -> str:
    """Why a report may not be written to a file, as a sentence; "" if it may."""
    if not file.is_relative_to(folder):
        return "it is outside of the project's folder."
    if file.suffix != _SUFFIX:
        return f"its name does not end with {_SUFFIX}."
    if not file.parent.is_dir():
        return "its folder does not exist."
    if file.is_dir():
        return "it is a folder."
    if file.exists() and not file.read_bytes().startswith(HEADING.encode()):
        return "another file has this name, and would be overwritten."
    return ""


def google_checks(context: Context, stack: str, planned: tuple[AnyPlan, str | None], file: Path) -> list[Check]:
    """Google's verdict on a stack as checks; the report is in the file afterwards.

    What keeps Google from being asked is an outcome too: the preview fails, or the stack names no project.
    """
    from bezel.operations.config.config import ConfigArguments, config
    from bezel.operations.doctor.verdict.verdict import Subject, verdict

    plan, project = planned
    if project is None:
        return [check("verdict", stack, "unknown", "no Google Cloud project is set, so no one was asked", "set one.")]
    try:
        requests = config(context, ConfigArguments(stack=stack))
        buckets = [plan.weights.bucket] if plan.weights.bucket else []
        subject = Subject(stack, project, requests, needs_of(plan), buckets, plan.address is not None)
        with GoogleClient(context.credentials, timeout_seconds=_SECONDS, deadline_seconds=_SECONDS) as client:
            return list(verdict(context, client, subject, file))
    except UserError as error:
        return list(of_error("verdict", stack, error, "problem"))
    except OSError as error:
        return [check("verdict", str(file), "problem", f"the report cannot be written: {error}", "free the file.")]
