"""Throughput over contexts and users of one server: `bezel bench sweep` with the options that an agent needs."""

from typing import Annotated, Literal

from pydantic import Field

from bezel.operations.arguments.model import Reach
from bezel.operations.bench.child import measure
from bezel.operations.bench.files import new
from bezel.operations.bench.summary import BenchResult, summary_of
from bezel.operations.bench.target import TargetArguments, options_of
from bezel.operations.bench.texts import option_text
from bezel.operations.context import Context

_END_SECONDS = 900.0
"""Beyond its limit of time a sweep ends the cell that it measures, and writes its result."""
Metric = Literal["requests_per_second", "output_tokens_per_second", "input_tokens_per_second"]
Numbers = Annotated[str, Field(pattern=r"^[0-9]{1,6}(,[0-9]{1,6}){0,19}$", examples=["128,1024"])]


class SweepArguments(TargetArguments):
    """A grid of loads, and its limits."""

    contexts: Annotated[Numbers | None, Reach.INSIDE] = Field(None, description=option_text("sweep", "--contexts"))
    users: Annotated[Numbers | None, Reach.INSIDE] = Field(None, description=option_text("sweep", "--users"))
    output_tokens: Annotated[int, Reach.INSIDE] = Field(
        128, ge=1, le=32_768, description=option_text("sweep", "--output-tokens")
    )
    requests_per_user: Annotated[int, Reach.INSIDE] = Field(
        3, ge=1, le=100, description=option_text("sweep", "--requests-per-user")
    )
    full: Annotated[bool, Reach.INSIDE] = Field(False, description=option_text("sweep", "--full"))
    metric: Annotated[Metric | None, Reach.INSIDE] = Field(None, description=option_text("sweep", "--metric"))
    max_minutes: Annotated[float, Reach.INSIDE] = Field(
        30.0, gt=0, le=600, description=option_text("sweep", "--max-minutes")
    )
    max_usd: Annotated[float | None, Reach.INSIDE] = Field(
        None, gt=0, le=10_000, description=option_text("sweep", "--max-usd")
    )


def sweep(context: Context, arguments: SweepArguments) -> BenchResult:
    """Sweep the loads of a server; the same call continues a sweep that was interrupted.

    Raises:
        UserError: Nothing can be measured, or the file may not be written.
        CancelledError: The caller gave up; the cells so far are kept.
        RestError: Cloud Run could not be asked.
    """
    out = new(context.folder, arguments.out, "--out", ".json", beside=".journal")
    options = ["--output-tokens", str(arguments.output_tokens)]
    options += ["--requests-per-user", str(arguments.requests_per_user)]
    options += ["--metric", arguments.metric] if arguments.metric else []
    options += ["--max-minutes", f"{arguments.max_minutes:g}", *(["--full"] if arguments.full else [])]
    for name in ("contexts", "users", "max_usd"):
        value = getattr(arguments, name)
        if value is not None:
            options += [f"--{name.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else value]
    seconds = arguments.max_minutes * 60 + _END_SECONDS
    result = measure(context, ["sweep", *options_of(context, arguments), *options], out, seconds)
    return summary_of(result, out, context.folder)
