"""One check and its outcome, and the run of many of them at a time within a deadline. Leaves out what is checked."""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.rest import ApiError
from bezel_base.errors import Problem, UserError

Area = Literal[
    "tools", "stack files", "login", "project", "APIs", "quotas", "regions", "weights", "address", "access", "verdict"
]
State = Literal["ok", "warning", "problem", "unknown"]
_AT_A_TIME = 8
_TEXT = 700


class Check(Result):
    """Outcome of one check."""

    area: Area = Field(description="what was checked")
    subject: str = Field(description="tool, project, stack, quota or folder that it is about")
    state: State = Field(
        description="ok; warning: something is limited; problem: a deploy fails; unknown: it could not be checked"
    )
    detail: str = Field(description="what was found")
    repair: str | None = Field(description="what to do; null where nothing is to be done")


@dataclass(frozen=True)
class Job:
    """Checks that are made together."""

    area: Area
    subject: str
    run: Callable[[], Iterable[Check]]


def check(area: Area, subject: str, state: State, detail: str, repair: str | None = None) -> Check:
    """An outcome with bounded texts, without secrets."""
    return Check(
        area=area,
        subject=clean_text(subject, 200),
        state=state,
        detail=clean_text(detail, _TEXT),
        repair=None if repair is None else clean_text(repair, _TEXT),
    )


def of_error(area: Area, subject: str, error: UserError, state: State = "unknown") -> Iterable[Check]:
    """An outcome for each problem of an error."""
    for problem in error.problems:
        if isinstance(problem, Problem):
            yield check(area, subject, state, f"{problem.head}; {problem.consequence}", problem.repair)
        elif isinstance(error, ApiError) and error.status in {401, 403}:
            repair = "let the project's owner grant this identity a role that reads it, e.g. roles/viewer."
            yield check(area, subject, state, problem, repair)
        else:
            yield check(area, subject, state, problem, "repeat it; check the network and the login if it stays.")


def run_all(jobs: Sequence[Job], seconds: float) -> list[Check]:
    """Outcomes in the order of the jobs, after `seconds` at most; what is not finished then is unknown.

    A request that is still under way then ends by its own deadline.
    """
    pool = ThreadPoolExecutor(_AT_A_TIME)
    try:
        futures = [pool.submit(_outcomes, job) for job in jobs]
        done, _ = wait(futures, timeout=seconds)
        checks: list[Check] = []
        for job, future in zip(jobs, futures, strict=True):
            if future in done:
                checks += future.result()
            else:
                late = f"no answer within {seconds:g} s"
                checks.append(check(job.area, job.subject, "unknown", late, "repeat it, or raise --deadline."))
        return checks
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _outcomes(job: Job) -> list[Check]:
    try:
        return list(job.run())
    except UserError as error:
        return list(of_error(job.area, job.subject, error))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        # An answer of another form than documented.
        return [check(job.area, job.subject, "unknown", f"{type(error).__name__}: {error}", "repeat it.")]
