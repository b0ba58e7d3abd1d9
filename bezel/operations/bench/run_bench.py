"""One load on one server, measured and judged: `bezel bench run` with the options that an agent needs."""

from typing import Annotated

from pydantic import Field

from bezel.operations.arguments.model import Reach
from bezel.operations.bench.child import measure
from bezel.operations.bench.files import new
from bezel.operations.bench.load_options import LoadOption, option_words
from bezel.operations.bench.summary import BenchResult, summary_of
from bezel.operations.bench.target import TargetArguments, options_of
from bezel.operations.bench.texts import option_text
from bezel.operations.context import Context

_LONGEST_SECONDS = 4 * 3600.0
Limit = Annotated[
    str, Field(pattern=r"^(ttft|ttfc|tpot|e2e|itl_max)=[0-9]{1,7}(\.[0-9]{1,3})?$", examples=["ttft=500"])
]


class RunArguments(TargetArguments):
    """A load."""

    users: Annotated[int | None, Reach.INSIDE] = Field(None, ge=1, le=2048, description=option_text("run", "--users"))
    rate: Annotated[float | None, Reach.INSIDE] = Field(None, gt=0, le=1000, description=option_text("run", "--rate"))
    requests: Annotated[int | None, Reach.INSIDE] = Field(
        None, ge=1, le=100_000, description=option_text("run", "--requests")
    )
    seconds: Annotated[float | None, Reach.INSIDE] = Field(
        None, gt=0, le=3600, description=option_text("run", "--seconds")
    )
    input_tokens: Annotated[int, Reach.INSIDE] = Field(
        128, ge=1, le=262_144, description=option_text("run", "--input-tokens")
    )
    output_tokens: Annotated[int, Reach.INSIDE] = Field(
        128, ge=1, le=32_768, description=option_text("run", "--output-tokens")
    )
    repeats: Annotated[int, Reach.INSIDE] = Field(1, ge=1, le=10, description=option_text("run", "--repeats"))
    slo: Annotated[tuple[Limit, ...], Reach.INSIDE] = Field((), max_length=5, description=option_text("run", "--slo"))
    # The command line has each of them by its own name.
    options: Annotated[tuple[LoadOption, ...], Reach.INSIDE] = Field(
        (), max_length=20, description="more of docs/bench.md, e.g. max-concurrency=32"
    )


def run_bench(context: Context, arguments: RunArguments) -> BenchResult:
    """Measure one load.

    Raises:
        UserError: Nothing can be measured, or the file may not be written.
        CancelledError: The caller gave up; the cells so far are kept.
        RestError: Cloud Run could not be asked.
    """
    out = new(context.folder, arguments.out, "--out", ".json", beside=".journal")
    further, server = option_words(arguments.options), options_of(context, arguments)
    run_fields = RunArguments.model_fields.keys() - TargetArguments.model_fields.keys() - {"slo", "options"}
    values = {name: getattr(arguments, name) for name in RunArguments.model_fields if name in run_fields}
    options = [
        word
        for name, value in values.items()
        if value is not None
        for word in (f"--{name.replace('_', '-')}", f"{value:g}" if isinstance(value, float) else str(value))
    ]
    limits = [word for limit in arguments.slo for word in ("--slo", limit)]
    result = measure(context, ["run", *server, *options, *limits, *further], out, _LONGEST_SECONDS)
    return summary_of(result, out, context.folder)
