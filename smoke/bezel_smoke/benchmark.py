"""`ShortBenchmark`: resource that measures the first figures of a deployment, as outputs of its stack.

Runs after the health check, again when the revision or its settings change, and fails only when no request succeeds.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pulumi

from bezel_base.errors import Problem
from bezel_components.base.check_resource import CheckResource
from bezel_components.base.dynamic import Progress, own_urn
from bezel_components.base.failure_explanation import diagnose_failure
from bezel_smoke.base import SmokeError, SmokeProvider

if TYPE_CHECKING:
    from bezel_bench.cell.cell import MeasuredCell
    from bezel_bench.load.plan import Endpoint, Load
    from bezel_bench.result.document import Cell

# Text of each kind of failure, for the diagnosis.
_MEANING = {
    "truncated": "the stream ended early, without its [DONE]",
    "error_in_stream": "the server reported an error inside a stream",
    "no_answer": "there was no response",
    "refused": "the connection was refused",
    "reset": "the connection broke before the response",
    "bad_json": "an event of a stream is not JSON",
}
# Longest wait for an idle server: one with other users is never idle.
_IDLE_SECONDS = 10.0
# Time limit for the server's response after the load: it was idle or full a moment ago.
_END_SECONDS = 30.0
_RATES = {"requests_per_second": 3, "input_tokens_per_second": 1, "output_tokens_per_second": 1}
# Endpoints of models that pool which the load client knows, by its names of them.
_POOLED: "dict[str, Endpoint]" = {
    "/v1/embeddings": "embeddings",
    "/v1/rerank": "rerank",
    "/classify": "classify",
    "/pooling": "pooling",
}
_LATENCIES = ("ttft", "tpot", "e2e")
TOKEN = "pulumi-python:dynamic/smoke:ShortBenchmark"  # noqa: S105 - a type token


@dataclass(frozen=True)
class ShortBenchmarkArgs:
    """Load of the benchmark and its target.

    Attributes:
        url: The address for the requests, and the audience of the identity token.
        audience: As of `HealthCheckArgs`.
        revision: As of `HealthCheckArgs`: a new value runs the benchmark again.
        template: A fingerprint of the declared template of the service's revisions: a change of it shows already in
            the preview, in which the provider still has the old revision. `VllmService` writes that of its service,
            which only it knows.
        service: As of `HealthCheckArgs`; with it the conditions and the log explain a failed benchmark.
        served_model: The model's id at the server.
        requests: Number of requests; fewer than three times `concurrency` is noted in the figures.
        concurrency: Concurrent requests: the number that the plan expects one instance to hold.
        prompt_tokens: Exact length of a prompt, where the server counts tokens.
        output_tokens: Exact length of a response.
        seed: Seed of the prompts' words.
        public: Whether anyone may call the service.
        deadline_seconds: Time limit for beginning a request, and for its response.
        impersonate: As of `HealthCheckArgs`.
        pooled_at: As of `HealthCheckArgs`: its requests are measured without responses of a length; a server that only
            a plugin can ask is not measured, which the figures say.
        simulated: Marks the figures as a simulated server's; `BEZEL_SIMULATED=1` in the environment does so too.
    """

    url: pulumi.Input[str]
    revision: pulumi.Input[str]
    service: pulumi.Input[str]
    served_model: pulumi.Input[str]
    requests: pulumi.Input[int] = 24
    concurrency: pulumi.Input[int] = 8
    prompt_tokens: pulumi.Input[int] = 256
    output_tokens: pulumi.Input[int] = 64
    seed: pulumi.Input[int] = 0
    public: pulumi.Input[bool] = False
    deadline_seconds: pulumi.Input[float] = 300
    impersonate: pulumi.Input[str] | None = None
    simulated: pulumi.Input[bool] = False
    audience: pulumi.Input[str] | None = None
    template: pulumi.Input[str] | None = None
    pooled_at: pulumi.Input[str] | None = None


class ShortBenchmarkProvider(SmokeProvider):
    """Provider that sends the load and stores its figures."""

    kind = "benchmark"
    required = ("url", "revision", "service", "served_model")
    positive = ("requests", "concurrency", "prompt_tokens", "output_tokens", "deadline_seconds")
    settings = tuple(ShortBenchmarkArgs.__dataclass_fields__)

    def run(self, props: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """See `SmokeProvider.run`: the output is `figures`."""
        pooled_at = props.get("pooled_at")
        if pooled_at is not None and pooled_at not in _POOLED:
            return {"figures": _record_without_figures(simulated=_is_simulated(props))}
        load = _load(props)
        measured, notes = _measure(props, load, progress)
        cell = measured.cell
        if sum(cell.failures.values()) == cell.requests:
            raise SmokeError(_all_failed(cell, load, props["service"]))
        _check_that_it_still_serves(props, progress)
        return {"figures": figures(measured, notes, simulated=_is_simulated(props))}


class ShortBenchmark(CheckResource, module="smoke", name="ShortBenchmark"):
    """The first figures of one revision.

    Attributes:
        figures: `simulated, state, requests, completed, failed` (by kind), `concurrency, seed, run, seconds`,
            `checks` (the result of each), `notes, prompt_tokens, output_tokens, requests_per_second,
            input_tokens_per_second, output_tokens_per_second`, and `ttft_ms, tpot_ms, e2e_ms` with `p50`, `max`
            and, of a hundred requests or more, `p99` each.
    """

    figures: pulumi.Output[dict[str, Any]]

    def __init__(self, name: str, args: ShortBenchmarkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {**vars(args), "urn": own_urn(name, TOKEN, opts), "figures": None}
        super().__init__(ShortBenchmarkProvider(), name, props, opts)


def _is_simulated(props: dict[str, Any]) -> bool:
    return bool(props.get("simulated")) or os.environ.get("BEZEL_SIMULATED") == "1"


def _record_without_figures(*, simulated: bool) -> dict[str, Any]:
    """The record of a benchmark that was not run: nothing in it is a figure."""
    return {
        "simulated": simulated,
        "state": "not_measured",
        "requests": 0,
        "completed": 0,
        "failed": {},
        "checks": {},
        "notes": ["vLLM pools with this model, and only a plugin of the server can ask it: nothing was measured"],
    }


def _check_that_it_still_serves(props: dict[str, Any], progress: Progress) -> None:
    """Check the server after the load: a lease may end, or an instance die, while the load runs.

    Raises:
        SmokeError: The server no longer answers.
    """
    from bezel_smoke.poller import CheckFailedError, polling

    with polling(props, progress, _END_SECONDS) as poller:
        try:
            poller.response("end", "GET", "/health")
        except CheckFailedError as failure:
            what = f"the service answered the benchmark and does not respond after it: {failure.what}"
            raise SmokeError(diagnose_failure(props["service"], what, (failure.what,))) from None


def _load(props: dict[str, Any]) -> "Load":
    import secrets

    from bezel_bench.load.plan import Closed, Load, PromptPlan, Stop, Target

    # Numbers come back from the engine as floats.
    requests, deadline = int(props["requests"]), float(props["deadline_seconds"])
    return Load(
        target=Target(
            props["url"].rstrip("/"),
            props["served_model"],
            endpoint=_POOLED.get(props.get("pooled_at") or "", "chat"),
            public=bool(props.get("public")),
        ),
        pattern=Closed(min(int(props["concurrency"]), requests)),
        stop=Stop(requests=requests, seconds=deadline),
        prompts=PromptPlan(
            input_tokens=int(props["prompt_tokens"]),
            output_tokens=int(props["output_tokens"]),
            seed=int(props.get("seed") or 0),
            # Else a server that still holds the last run's prompts would answer from its cache.
            run=secrets.token_hex(4),
        ),
        deadline_seconds=deadline,
    )


def _measure(props: dict[str, Any], load: "Load", progress: Progress) -> "tuple[MeasuredCell, tuple[str, ...]]":
    from bezel_bench.cell.cell import measure_load
    from bezel_bench.cell.plan import ServerView
    from bezel_bench.result.records import Manifest
    from bezel_bench.server.http_probe import asker
    from bezel_bench.server.manifest import this_client
    from bezel_smoke.poller import server_of

    with server_of(props) as server:
        headers = server.headers()
    manifest = Manifest(
        title="short benchmark",
        url=load.target.url,
        model=load.target.model,
        client=this_client(workers=1, tls=load.target.url.startswith("https:")),
        started_at=datetime.now(UTC),
        seed=load.prompts.seed,
    )
    ask = asker(load.target, lambda: headers, seconds=min(60.0, load.deadline_seconds))
    view = ServerView(ask, lambda: manifest, drain_seconds=_IDLE_SECONDS)
    return measure_load("smoke", load, view, lambda: headers, progress)


def _all_failed(cell: "Cell", load: "Load", service: str) -> Problem:
    """The problem of a benchmark without one successful request, by the kinds of failures or the service's log."""
    failed, prompts = cell.failures, load.prompts
    kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(failed.items()))
    what = f"all {cell.requests} requests of the benchmark failed ({kinds})"
    if any(kind in failed for kind in ("http_401", "http_403")):
        repair = "grant the caller roles/run.invoker (access.invokers), or set smoke.impersonate."
    elif "http_404" in failed or "http_4xx" in failed:
        message = next((f" The server's message: {text}" for text in cell.failure_examples.values() if text), "")
        repair = (
            f"check that {load.target.model!r} is served, has a chat template, and that {prompts.input_tokens} + "
            f"{prompts.output_tokens} tokens fit vllm.max-model-len.{message}"
        )
    elif "timeout" in failed or "not answered within" in cell.failure_examples.get("no_answer", ""):
        what += f": no response was complete within {load.deadline_seconds:.0f} s"
        repair = "lower smoke.requests, or smoke.output_tokens."
    else:
        errors = tuple(
            f"{_MEANING.get(kind) or f'{kind}, {cell.failure_examples[kind]}'} ({count} of {cell.requests})"
            for kind, count in sorted(failed.items())
        )
        return diagnose_failure(service, what, errors)
    return Problem(f"service {service.rpartition('/')[2]}", None, f"{what}.", repair)


def figures(measured: "MeasuredCell", prompt_notes: Sequence[str], *, simulated: bool) -> dict[str, Any]:
    """The record of a short benchmark, fit for a stack's outputs: a figure that cannot be measured is absent, never 0.

    Args:
        measured: The cell of the load.
        prompt_notes: Notes about the prompts for the reader.
        simulated: Whether the server is a simulated one: then no figure describes hardware.
    """
    cell = measured.cell
    failed = sum(cell.failures.values())
    prompts = (cell.load or {}).get("prompts", {})
    record: dict[str, Any] = {
        "simulated": simulated,
        "state": cell.state,
        "requests": cell.requests,
        "completed": cell.requests - failed,
        "failed": dict(cell.failures),
        "concurrency": cell.users,
        "seed": prompts.get("seed"),
        "run": prompts.get("run"),
        "seconds": round(cell.seconds or 0.0, 3),
        "checks": {check.name: check.state for check in cell.checks},
        "notes": [*_notes(cell, failed), *prompt_notes],
    }
    if measured.samples is not None and record["completed"]:
        good = measured.samples.good()
        record |= {name: int(good[name].sum()) for name in ("prompt_tokens", "output_tokens")}
    record |= {name: round(value, digits) for name, digits in _RATES.items() if (value := cell.value(name)) is not None}
    for name in _LATENCIES:
        if spread := cell.distributions.get(name):
            values = {"p50": spread.p50, "p99": spread.p99, "max": spread.max}
            record[f"{name}_ms"] = {key: round(value, 2) for key, value in values.items() if value is not None}
    return record


def _notes(cell: "Cell", failed: int) -> Iterator[str]:
    if failed:
        yield f"{failed} of {cell.requests} requests failed and are in no figure but `failed`"
    stop = (cell.load or {}).get("stop", {})
    if cell.requests < (stop.get("requests") or 0):
        yield f"only {cell.requests} of {stop['requests']} requests were begun within {stop['seconds']:g} s"
    yield from (f"{check.name}: {check.text}" for check in cell.checks if check.state in {"failed", "suspect"})
    if cell.state in {"client_limited", "queueing"}:
        yield cell.reason
