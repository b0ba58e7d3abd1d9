"""Memory of a stack's server: what its own log and metrics report, beside the plan's fit, and where the plan was wrong.

The plan is that of the last deploy, as the stack's outputs record it, else that of the stack file. The log is asked for
the lines of the last start only, however old they are; Cloud Logging keeps them for 30 days. A service without an
instance is not asked for its metrics. Leaves the lines' forms and the comparison to the other modules of this folder.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from bezel.operations.arguments.model import Arguments, Option, Reach
from bezel.operations.arguments.shared import ReadRegion, Stack, Wake
from bezel.operations.context import Context
from bezel.operations.deployment.deployment import Deployment
from bezel.operations.log_reading import bounds
from bezel.operations.logs.logs import LogsArguments, logs
from bezel.operations.memory.comparison import (
    EVERYTHING,
    NOTHING,
    OF_THE_MACHINE,
    MemoryFigure,
    another_model,
    figures_of,
    findings_of,
    number,
)
from bezel.operations.memory.reported import (
    LOG_TEXTS,
    Reported,
    combine,
    disagreement,
    reported_by_log,
    reported_by_metrics,
)
from bezel.operations.memory.served_files import keeps_every_token, served_weights
from bezel.operations.metrics.metrics import asleep
from bezel.operations.plan.plan import plan_of
from bezel.operations.redaction import clean_text
from bezel.operations.results import Result
from bezel.operations.service_use.instances import instances_of
from bezel.operations.serving.server import DeployedServer
from bezel.operations.vllm_metrics.sample import MAX_BYTES, parse
from bezel_base.errors import UserError, one_line
from bezel_base.terminal.blocks import Block, Line, Table, mark
from bezel_catalog.quantities import GIB

if TYPE_CHECKING:
    from bezel.operations.log_reading.lines import LogLine
    from bezel_catalog import Model

_SECONDS, _WAKE_SECONDS = 30.0, 600.0
_MOST_LINES = 200
_MAX_MODELS = 1 << 20
_UNREAD = "unknown: neither the log nor the metrics report it"
_NOTE = 500
_SAME_MODEL = (
    "; the folder holds the same model, on another machine: what the model needs is compared, nothing of the machine"
)


class MemoryArguments(Arguments):
    """Which stack."""

    stack: Stack
    since: Annotated[str, Reach.INSIDE, Option("AGE|TIME")] = Field(
        "30d", max_length=40, description="how far back the log is searched for the last start"
    )
    wake: Wake = False
    region: ReadRegion = None


class Memory(Result):
    """Memory of a stack's server, measured and planned."""

    stack: str
    is_read: bool = Field(description="whether the server reported any figure, in its log or its metrics")
    plan_origin: str = Field(description="where the plan is from, or why there is none")
    figures: tuple[MemoryFigure, ...]
    findings: tuple[str, ...] = Field(description="where the plan was wrong, in the order in which memory is taken")
    notes: tuple[str, ...] = Field(description="what limits the figures")
    simulated: bool = Field(description="whether the last smoke check met a simulated server")

    @property
    def exit_code(self) -> Literal[0, 1]:
        """1 where the server reported nothing."""
        return 0 if self.is_read else 1

    def page(self) -> Iterator[Block]:
        """A table of the figures, the findings, then where each figure is from."""
        head = f"{self.stack}: memory" + (" (simulated server: figures of its model)" if self.simulated else "")
        rows = [
            (
                each.title,
                _number_text(each.measured, each.unit),
                _number_text(each.planned, each.unit),
                "-" if each.deviation is None else f"{each.deviation:+.1%}",
                mark({None: "-", False: "ok", True: "WRONG"}[each.is_plan_wrong]),
            )
            for each in self.figures
        ]
        yield from map(Line, (head, *(f"note: {text}" for text in self.notes)))
        yield Table(("figure", "measured", "planned", "deviation", "plan"), rows)
        comparable = sum(each.deviation is not None for each in self.figures)
        right = f"the plan was right within 5% in the {comparable} figures that both know" if comparable else ""
        lines = ["", *(self.findings or ((right or "nothing can be compared"),)), "", f"planned: {self.plan_origin}"]
        origins: dict[str, list[str]] = {}
        for each in self.figures:
            origins.setdefault(each.measured_origin, []).append(f"{each.title} ({each.unit})")
        lines += [f"measured: {', '.join(titles)}: {origin}" for origin, titles in origins.items()]
        yield from map(Line, lines)


def memory(context: Context, arguments: MemoryArguments) -> Memory:
    """The memory of a stack's server.

    Raises:
        UserError: The backend has no such stack, `since` is no begin, or neither its log nor its server could be asked.
    """
    bounds.since(arguments.since, context.clock.now())
    deployment = context.deployment(arguments.stack).of_one_region(arguments.region)
    fit, model, origin = _plan_facts(context, deployment)
    notes: list[str] = []
    by_log = _by_log(context, deployment, arguments.since, notes)
    by_metrics = _by_metrics(context, deployment, notes, wake=arguments.wake)
    if note := disagreement(by_log, by_metrics):
        notes.append(note)
    reported = combine(by_log, by_metrics)
    not_judged = NOTHING
    if another := another_model(reported, model):
        same = served_weights(context, deployment.stack, reported.model)
        not_judged = OF_THE_MACHINE if same else EVERYTHING
        notes.append(f"{another}{_SAME_MODEL}" if same else f"not judged: {another}")
        if same:
            planned, weights = same
            reported = replace(reported, weights=reported.weights or weights)
            fit = {**fit, **_exact_weights(fit, planned)}
            if reported.cache_dtype != _planned_cache_dtype(deployment) or not keeps_every_token(planned):
                not_judged |= {"kv_token"}
    if "unused_gib" in fit:
        notes.append("the model is an encoder: it keeps nothing of a sequence, and its server has no KV cache")
    figures = figures_of(reported, fit, origin, _UNREAD, not_judged=not_judged)
    return Memory(
        stack=deployment.stack,
        is_read=reported.has_figures,
        plan_origin=origin,
        figures=figures,
        findings=findings_of(figures),
        notes=tuple(clean_text(note, _NOTE) for note in (*notes, *deployment.region_notes)),
        simulated=deployment.is_simulated,
    )


def _exact_weights(fit: Mapping[str, Any], model: "Model") -> dict[str, float]:
    """The planned weights to the byte: outputs have two decimals, which a model for tests does not fill."""
    is_alone = fit and not any(fit.get(name) for name in ("draft_gib", "adapters_gib", "offloaded_gib"))
    return {"weights_gib": model.weight_bytes / GIB} if is_alone else {}


def _planned_cache_dtype(deployment: Deployment) -> str:
    """`kv-cache-dtype` of the arguments that were deployed."""
    arguments = deployment.server_outputs.get("arguments")
    texts = [str(each) for each in arguments] if isinstance(arguments, list) else []
    values = [text.partition("=")[2] for text in texts if text.startswith("--kv-cache-dtype=")]
    return values[-1] if values else "auto"


def _plan_facts(context: Context, deployment: Deployment) -> tuple[Mapping[str, Any], str, str]:
    """The plan's fit, its model argument ("" where it is not recorded), and where it is from."""
    # A program of one's own exports what it wants; the component that serves the model records what it planned.
    recorded = deployment.outputs.get("plan") or deployment.server_outputs.get("planned_memory")
    fit = recorded.get("fit") if isinstance(recorded, Mapping) else None
    if isinstance(recorded, Mapping) and isinstance(fit, Mapping) and fit:
        weights = recorded.get("weights")
        model = weights.get("model") if isinstance(weights, Mapping) else None
        return fit, model if isinstance(model, str) else "", "plan of the last deploy"
    try:
        made, _ = plan_of(context, deployment.stack)
    except (UserError, OSError) as error:
        unknown = f"unknown: the state records no plan, and the stack file has none: {one_line(error)}"
        return {}, "", clean_text(unknown, _NOTE)
    return made.fit.as_output(), made.weights.model, "plan of the stack file, as the state records none"


def _by_log(context: Context, deployment: Deployment, since: str, notes: list[str]) -> Reported:
    """The log's figures; a log that cannot be read is a note, as the metrics have figures too."""
    lines: list[LogLine] = []
    try:
        for text in LOG_TEXTS:
            region = deployment.region or None
            asked = LogsArguments(stack=deployment.stack, since=since, text=text, limit=_MOST_LINES, region=region)
            lines += logs(context, asked).lines
    except UserError as error:
        notes.append(f"the log could not be read: {one_line(error)}")
        return Reported()
    reported = reported_by_log(sorted(dict.fromkeys(lines), key=lambda line: line.time or ""))
    if not reported.has_figures:
        of_machines = ": the console of a machine has the lines of its container only if that ended"
        notes.append(f"the log has no line about memory since {since}{of_machines if deployment.leases else ''}")
    return reported


def _by_metrics(context: Context, deployment: Deployment, notes: list[str], *, wake: bool) -> Reported:
    """The metrics' figures; a server that is asleep or does not answer is a note."""
    try:
        instances = instances_of(context, deployment)
        if not instances.is_awake and not wake:
            notes.append(asleep(instances))
            return Reported()
        with DeployedServer(context, deployment) as server:
            seconds = _WAKE_SECONDS if wake else _SECONDS
            reply = server.ask("/metrics", max_bytes=MAX_BYTES, seconds=seconds)
            sample = parse(reply.text, time.monotonic()) if reply.status == 200 else None
            if sample is None:
                raise server.refusal_error("/metrics", reply)
            model = _served_model(server)
    except UserError as error:
        notes.append(f"the metrics could not be read: {one_line(error)}")
        return Reported()
    return replace(reported_by_metrics(sample.cache_config), model=model)


def _served_model(server: DeployedServer) -> str:
    """The model argument that the server states at /v1/models, "" where it states none."""
    try:
        entries = server.ask("/v1/models", max_bytes=_MAX_MODELS, seconds=_SECONDS).json().get("data")
    except UserError:
        return ""
    # An adapter has its base model as its parent.
    roots = [each.get("root") for each in entries or () if isinstance(each, dict) and not each.get("parent")]
    return clean_text(roots[0], _NOTE) if roots and isinstance(roots[0], str) else ""


def _number_text(value: float | None, unit: str) -> str:
    return "unknown" if value is None else number(value, unit)
