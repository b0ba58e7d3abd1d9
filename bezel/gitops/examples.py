"""Examples: stack files that the pipeline does not deploy. Their plans are checked, so that none goes wrong unseen.

A plan needs no account. One without a price is checked but for what the price decides, which is reported as not judged.
Leaves out the stacks that the pipeline deploys: those are rehearsed and previewed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Literal

from bezel.engine.outcomes import Exit
from bezel.engine.project.pipeline_file import FILE, Pipeline
from bezel.engine.project.project import Project
from bezel.planner import make_plan
from bezel.planner.cost.price_rows import UnpricedProblem
from bezel_base.errors import UserError, one_line

State = Literal["planned", "not judged", "refused"]
_PLACEHOLDER = "bezel-examples"
"""Name of the Google Cloud project, which no rule looks at."""
_NOT_JUDGED = "the plan is valid but for its price: limits and policies on cost are not judged"


@dataclass(frozen=True)
class Example:
    """A stack file that the pipeline does not deploy.

    Attributes:
        stack: Its name.
        state: "planned"; "not judged" where only a price is missing; "refused" where it cannot be planned.
        details: What is not judged, or every problem.
    """

    stack: str
    state: State
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExamplesReport:
    """The examples of a project, and what their plans say."""

    examples: Sequence[Example] = field(default_factory=tuple)

    @property
    def exit_code(self) -> Literal[Exit.DONE, Exit.FAILED]:
        """1 where one cannot be planned."""
        return Exit.FAILED if any(example.state == "refused" for example in self.examples) else Exit.DONE

    def as_json(self) -> dict[str, object]:
        """The content as JSON."""
        rows = [{"stack": row.stack, "state": row.state, "details": list(row.details)} for row in self.examples]
        return {"kind": "examples", "examples": rows}

    def text(self) -> str:
        """The content for a terminal."""
        lines = [
            f"{row.stack}: {row.state}" + "".join(f"\n  {detail}" for detail in row.details) for row in self.examples
        ]
        return "\n".join(lines or [_NONE]) + "\n"

    def markdown(self) -> str:
        """The content for the run's summary."""
        lines = [f"- `{row.stack}`: {row.state}" + _quote_details(row.details) for row in self.examples]
        return "\n".join(["### Examples", "", *(lines or [_NONE])]) + "\n"


_NONE = f"no examples: {FILE} names every stack file"


def _quote_details(details: Sequence[str]) -> str:
    # As code: texts of a change can forge no heading, link or mention.
    return "".join(f"\n  - `{detail.replace('`', chr(39))}`" for detail in details)


def check_examples(project: Project, pipeline: Pipeline, today: date) -> ExamplesReport:
    """Plan every stack file that the pipeline does not name.

    Args:
        project: The project.
        pipeline: Its pipeline.
        today: The latest day that a price row may have.
    """
    return ExamplesReport(tuple(_checked_plan(project, stack, today) for stack in pipeline.examples(project)))


def _checked_plan(project: Project, stack: str, today: date) -> Example:
    try:
        make_plan(project.configuration(stack), project=_PLACEHOLDER, stack=stack, today=today, models=project.models())
    except UserError as error:
        unpriced = [problem for problem in error.problems if isinstance(problem, UnpricedProblem)]
        others = [problem for problem in error.problems if not isinstance(problem, UnpricedProblem)]
        if not others:
            return Example(stack, "not judged", (_NOT_JUDGED, *(problem.consequence for problem in unpriced)))
        return Example(stack, "refused", tuple(one_line(UserError(problem)) for problem in error.problems))
    return Example(stack, "planned")
