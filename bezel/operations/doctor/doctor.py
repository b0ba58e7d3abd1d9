"""Check-up of what a deploy needs, everything at once: each finding with what to do. Changes nothing.

Tools and stack files are checked without a login; what needs one is then unknown, not failed. Every request has a
deadline, and so has the whole. Of a deployed stack it checks who has access, and what was changed outside of the
program; the rest of it is left to `status`, `metrics` and `advise`.
"""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import OptionalStack
from bezel.operations.context import Context
from bezel.operations.doctor.access_checks import access_jobs
from bezel.operations.doctor.address_checks import address_jobs
from bezel.operations.doctor.causes import NEEDS_LOGIN, Cause, causes_of, rows_of
from bezel.operations.doctor.check import Area, Check, Job, check, of_error, run_all
from bezel.operations.doctor.cloud_checks import cloud_jobs
from bezel.operations.doctor.local_checks import local_jobs, plan_stacks, project_check
from bezel.operations.doctor.pipeline_checks import pipeline_jobs
from bezel.operations.doctor.stack_choice import chosen_stacks
from bezel.operations.doctor.verdict.entry import google_checks, report_file
from bezel.operations.results import Result, format_count
from bezel.rest import Credentials, GoogleClient
from bezel_base.errors import UserError
from bezel_base.terminal.blocks import Block, Line, Table, mark

_REQUEST_SECONDS = 10.0
_NEEDING_LOGIN: tuple[Area, ...] = ("project", "APIs", "quotas", "regions", "weights", "address", "access", "verdict")
_GOOGLE = "Google Cloud"


class DoctorArguments(Arguments):
    """Which stacks."""

    stack: OptionalStack = Field(
        None,
        description="name of the stack (default: all deployed, else those of bezel.toml)",
    )
    deadline: Annotated[float, Reach.INSIDE, Option("SECONDS")] = Field(
        45.0, gt=0, le=300, description="time limit of the checks, in seconds"
    )
    ask_google: Annotated[bool, Reach.INSIDE] = Field(
        default=False,
        description="ask Google too whether it accepts the service, by requests that create nothing",
    )
    verdict: Annotated[str | None, Reach.INSIDE, Option("FILE")] = Field(
        None,
        min_length=1,
        max_length=300,
        description="report of --ask-google, FILE.md below the project's folder (default: google-STACK.md)",
    )


class Doctor(Result):
    """Outcomes of the checks."""

    stacks: tuple[str, ...] = Field(description="stacks whose needs were checked")
    is_logged_in: bool = Field(description="whether Google Cloud could be asked")
    checks: tuple[Check, ...]
    causes: tuple[Cause, ...] = Field(description="causes of what is not ok, each once, most serious first")

    @property
    def exit_code(self) -> Literal[0, 1]:
        """1 where a deploy would fail, as far as is known."""
        return 1 if any(each.state == "problem" for each in self.checks) else 0

    def page(self) -> Iterator[Block]:
        """A table of the outcomes, then each cause once with what to do, most serious first."""
        rows = [(mark(state), area, subject) for state, area, subject in rows_of(self.checks)]
        yield Table(("state", "area", "subject"), rows)
        for cause in self.causes:
            yield Line()
            yield from map(Line, cause.lines())
        counts = {state: sum(cause.state == state for cause in self.causes) for state in ("problem", "warning")}
        counted_causes = [format_count(counts["problem"], "problem"), format_count(counts["warning"], "warning")]
        ok, unknown = (sum(each.state == state for each in self.checks) for state in ("ok", "unknown"))
        yield Line()
        yield Line(", ".join((f"{ok} ok", *counted_causes, f"{unknown} unknown")))


def doctor(context: Context, arguments: DoctorArguments) -> Doctor:
    """Check what a deploy needs.

    Raises:
        WrongValueError: The arguments do not go together, or the report cannot be written where they say.
        UserError: The project cannot be read, or has no such stack.
    """
    file = report_file(context.folder, arguments.stack, arguments.verdict, is_asked=arguments.ask_google)
    if arguments.stack is not None:
        context.project.stack_file(arguments.stack)
    stacks, choice = chosen_stacks(context) if arguments.stack is None else ((arguments.stack,), [])
    context.show(f"plans {format_count(len(stacks), 'stack')}")
    files, plans = plan_stacks(context, stacks)
    credentials = Credentials(environ=context.environ)
    context.show(f"checks tools and login, for {arguments.deadline:g} s at most")
    first = run_all([*local_jobs(context), Job("login", _GOOGLE, lambda: _login(credentials))], arguments.deadline)
    is_logged_in = any(each.subject == _GOOGLE and each.state == "ok" for each in first)
    with GoogleClient(credentials, timeout_seconds=_REQUEST_SECONDS, deadline_seconds=_REQUEST_SECONDS) as client:
        jobs = [
            *cloud_jobs(context, client, plans),
            *address_jobs(context, client, plans),
            *pipeline_jobs(context, client, plans),
            *access_jobs(context, stacks, arguments.deadline),
        ]
        if is_logged_in:
            context.show(
                f"checks the cloud by {format_count(len(jobs), 'question')}, for {arguments.deadline:g} s at most"
            )
            cloud = run_all(jobs, arguments.deadline)
        else:
            areas = {job.area for job in jobs} | ({"verdict"} if file else set())
            cloud = [_needs_login(area) for area in _NEEDING_LOGIN if area in areas]
    if file is not None and arguments.stack in plans:
        cloud += google_checks(context, arguments.stack, plans[arguments.stack], file) if is_logged_in else []
    checks = (*first, *choice, *files, *project_check(context, plans), *cloud)
    return Doctor(stacks=stacks, is_logged_in=is_logged_in, checks=checks, causes=causes_of(checks))


def _login(credentials: Credentials) -> list[Check]:
    try:
        credentials.access_token()
    except UserError as error:
        return list(of_error("login", _GOOGLE, error, "problem"))
    return [check("login", _GOOGLE, "ok", "an access token was given")]


def _needs_login(area: Area) -> Check:
    return check(area, _GOOGLE, "unknown", NEEDS_LOGIN, "log in, then run the same command again.")
