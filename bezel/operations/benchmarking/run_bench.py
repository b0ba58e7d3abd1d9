"""One load on one server, measured and judged: `bezel bench run` with the options that an agent needs."""

from typing import Annotated

from pydantic import Field

from bezel.operations.benchmarking.child import measured
from bezel.operations.benchmarking.files import new
from bezel.operations.benchmarking.summary import BenchResult, summary_of
from bezel.operations.benchmarking.target import TargetArguments, options_of
from bezel.operations.context import Context

_LONGEST_SECONDS = 4 * 3600.0
_NAMED = ("users", "rate", "requests", "seconds", "input_tokens", "output_tokens", "repeats")
Limit = Annotated[
    str, Field(pattern=r"^(ttft|ttfc|tpot|e2e|itl_max)=[0-9]{1,7}(\.[0-9]{1,3})?$", examples=["ttft=500"])
]


class RunArguments(TargetArguments):
    """A load."""

    users: int | None = Field(
        None, ge=1, le=2048, description="closed loop: each user awaits its response (default: 1)"
    )
    rate: float | None = Field(None, gt=0, le=1000, description="open loop instead: requests a second, Poisson")
    requests: int | None = Field(None, ge=1, le=100_000, description="number of requests (default: 10 a user)")
    seconds: float | None = Field(None, gt=0, le=3600, description="begin no request later; running ones are awaited")
    input_tokens: int = Field(128, ge=1, le=262_144, description="length of a prompt, its template included")
    output_tokens: int = Field(128, ge=1, le=32_768, description="length of a response")
    repeats: int = Field(1, ge=1, le=10, description="measurements of the load")
    slo: tuple[Limit, ...] = Field((), max_length=5, description="goodput limits in ms, e.g. ttft=500")


def run_bench(context: Context, arguments: RunArguments) -> BenchResult:
    """Measure one load.

    Raises:
        UserError: Nothing can be measured, or the file may not be written.
        CancelledError: The caller gave up; the cells so far are kept.
        RestError: Cloud Run could not be asked.
    """
    out = new(context.folder, arguments.out, "--out", ".json", beside=".journal")
    given = {name: getattr(arguments, name) for name in _NAMED}
    options = [
        word
        for name, value in given.items()
        if value is not None
        for word in (f"--{name.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value))
    ]
    limits = [word for limit in arguments.slo for word in ("--slo", limit)]
    result = measured(context, ["run", *options_of(context, arguments), *options, *limits], out, _LONGEST_SECONDS)
    return summary_of(result, out, context.folder)
