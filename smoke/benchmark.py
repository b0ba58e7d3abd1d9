"""``ShortBenchmark``: resource that measures the first figures of a deployment, as outputs of its stack.

Runs after the health check, again when the revision or its settings change, and fails only when no request succeeds.
"""

import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.dynamic import Resource

from components.dynamic import Progress, own_urn
from smoke.base import SmokeError, SmokeProvider

if TYPE_CHECKING:
    from bezel.bench.cell.cell import MeasuredCell
    from bezel.bench.load.plan import Load
    from bezel.bench.result.document import Cell

# Text of each kind of failure, for the diagnosis.
_MEANING = {
    "truncated": "the stream ended early, without its [DONE]",
    "error_in_stream": "the server reported an error inside a stream",
    "no_answer": "there was no answer",
    "refused": "nobody took the connection",
    "reset": "the connection broke before there was an answer",
    "bad_json": "an event of a stream is no JSON",
}
# Longest wait for an idle server: one with other users is never idle.
_IDLE_SECONDS = 10.0
# Time limit for the server's response after the load: it was idle or full a moment ago.
_END_SECONDS = 30.0
TOKEN = "pulumi-python:dynamic/smoke:ShortBenchmark"  # noqa: S105 - a type token


@dataclass(frozen=True)
class ShortBenchmarkArgs:
    """Load of the benchmark and its target.

    Attributes:
        url: The address for the requests, and the audience of the identity token.
        audience: As of ``HealthCheckArgs``.
        revision: As of ``HealthCheckArgs``: a new value runs the benchmark again.
        service: As of ``HealthCheckArgs``; with it the conditions and the log explain a failed benchmark.
        served_model: The model's id at the server.
        requests: Number of requests; fewer than three times ``concurrency`` is noted in the figures.
        concurrency: Concurrent requests: the number that the plan expects one instance to hold.
        prompt_tokens: Exact length of a prompt, where the server counts tokens.
        output_tokens: Exact length of a response.
        seed: Seed of the prompts' words.
        public: Whether anyone may call the service.
        deadline_seconds: Time limit for beginning a request, and for its response.
        impersonate: As of ``HealthCheckArgs``.
        simulated: Marks the figures as a simulated server's; ``BEZEL_SIMULATED=1`` in the environment does so too.
    """

    url: pulumi.Input[str]
    revision: pulumi.Input[str]
    service: pulumi.Input[str]
    served_model: pulumi.Input[str]
    requests: pulumi.Input[int] = 24
    concurrency: pulumi.Input[int] = 8
    prompt_tokens: pulumi.Input[int] = 128
    output_tokens: pulumi.Input[int] = 64
    seed: pulumi.Input[int] = 0
    public: pulumi.Input[bool] = False
    deadline_seconds: pulumi.Input[float] = 300
    impersonate: pulumi.Input[str] | None = None
    simulated: pulumi.Input[bool] = False
    audience: pulumi.Input[str] | None = None


class ShortBenchmarkProvider(SmokeProvider):
    """Provider that sends the load and stores its figures."""

    kind = "benchmark"
    required = ("url", "revision", "service", "served_model")
    positive = ("requests", "concurrency", "prompt_tokens", "output_tokens", "deadline_seconds")
    settings = tuple(ShortBenchmarkArgs.__dataclass_fields__)

    def run(self, props: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """See ``SmokeProvider.run``: the output is ``figures``."""
        # Late: the program only declares the resource, in every preview.
        from bezel.errors import UserError
        from smoke.outputs import figures

        load = _load(props)
        try:
            measured, told = _measured(props, load, progress)
        except UserError as error:
            raise SmokeError(f"the benchmark cannot be run: {error}") from None
        cell = measured.cell
        if sum(cell.failures.values()) == cell.requests:
            raise SmokeError(_all_failed(cell, load) or _explained(cell, props["service"]))
        _check_that_it_still_serves(props, progress)
        simulated = bool(props.get("simulated")) or os.environ.get("BEZEL_SIMULATED") == "1"
        return {"figures": figures(measured, told, simulated=simulated)}


class ShortBenchmark(Resource, module="smoke", name="ShortBenchmark"):
    """The first figures of one revision.

    Attributes:
        figures: ``simulated, state, requests, completed, failed`` (by kind), ``concurrency, seed, run, seconds``,
            ``checks`` (the result of each), ``notes, prompt_tokens, output_tokens, requests_per_second,
            input_tokens_per_second, output_tokens_per_second``, and ``ttft_ms, tpot_ms, e2e_ms`` with ``p50``, ``max``
            and, of a hundred requests or more, ``p99`` each.
    """

    figures: pulumi.Output[dict[str, Any]]

    def __init__(self, name: str, args: ShortBenchmarkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {**vars(args), "urn": own_urn(name, TOKEN, opts), "figures": None}
        super().__init__(ShortBenchmarkProvider(), name, props, opts)


def _check_that_it_still_serves(props: dict[str, Any], progress: Progress) -> None:
    """Check the server after the load: a lease may end, or an instance die, while the load runs.

    Raises:
        SmokeError: The server no longer answers.
    """
    from bezel.rest import Credentials
    from smoke.client import Server
    from smoke.poller import CheckFailedError, Poller

    credentials = None if props.get("public") else Credentials(props.get("impersonate"))
    with Server(props["url"], credentials, audience=props.get("audience") or "") as server:
        probe = Poller(
            server,
            props["served_model"],
            min(
                _END_SECONDS,
                float(props["deadline_seconds"]),
                float(os.environ.get("BEZEL_DEADLINE_SECONDS") or "inf"),
            ),
            show=progress,
            clock=time.monotonic,
            sleep=time.sleep,
        )
        try:
            probe.answered("end", "GET", "/health")
        except CheckFailedError as failure:
            raise SmokeError(
                f"the service answered the benchmark and does not answer after it: {failure.what}\n"
                + _cause(props["service"], failure.what)
            ) from None


def _load(props: dict[str, Any]) -> "Load":
    import secrets

    from bezel.bench.load.plan import Closed, Load, PromptPlan, Stop, Target

    # Numbers come back from the engine as floats.
    requests, deadline = int(props["requests"]), float(props["deadline_seconds"])
    return Load(
        target=Target(props["url"].rstrip("/"), props["served_model"], public=bool(props.get("public"))),
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


def _measured(props: dict[str, Any], load: "Load", progress: Progress) -> "tuple[MeasuredCell, tuple[str, ...]]":
    from bezel.bench.cell.measure import measure_load
    from bezel.bench.cell.plan import ServerView
    from bezel.bench.result.manifest_schema import Manifest, ServedBy
    from bezel.bench.server.http_probe import asker
    from bezel.bench.server.manifest import this_client
    from bezel.rest import Credentials
    from smoke.client import Server

    credentials = None if load.target.public else Credentials(props.get("impersonate"))
    with Server(load.target.url, credentials, audience=props.get("audience") or "") as server:
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
    view = ServerView(ask, manifest, ServedBy(), drain_seconds=_IDLE_SECONDS)
    return measure_load("smoke", load, view, lambda: headers, progress)


def _all_failed(cell: "Cell", load: "Load") -> str:
    """The complete text where the kinds of failures show the cause, else ""."""
    failed, prompts = cell.failures, load.prompts
    if any(kind in failed for kind in ("http_401", "http_403")):
        repair = "Grant the caller roles/run.invoker (access.invokers), or set smoke.impersonate."
    elif "http_404" in failed or "http_4xx" in failed:
        told = next((f" It says: {text}" for text in cell.failure_examples.values() if text), "")
        repair = (
            f"Check that {load.target.model!r} is served, has a chat template, and that {prompts.input_tokens} + "
            f"{prompts.output_tokens} tokens fit vllm.max-model-len.{told}"
        )
    elif "timeout" in failed or "not answered within" in cell.failure_examples.get("no_answer", ""):
        repair = f"Nothing came within {load.deadline_seconds:.0f} s: lower smoke.requests, or smoke.output_tokens."
    else:
        return ""
    return f"{_title(cell)}\nrepair: {repair}"


def _explained(cell: "Cell", service: str) -> str:
    """The failures, with the messages of the platform and the container."""
    told = tuple(
        f"{_MEANING.get(kind) or f'{kind}, {cell.failure_examples[kind]}'} ({count} of {cell.requests})"
        for kind, count in sorted(cell.failures.items())
    )
    return f"{_title(cell)}\n{_cause(service, *told)}"


def _cause(service: str, *errors: str) -> str:
    """The diagnosis of a service with these errors, from the platform's and the container's messages."""
    from bezel.rest import Credentials, GoogleClient
    from smoke.diagnosis import explain
    from smoke.platform import report

    with GoogleClient(Credentials(), timeout_seconds=10, deadline_seconds=20) as google:
        return explain(report(google, service, errors=errors))


def _title(cell: "Cell") -> str:
    kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(cell.failures.items()))
    return f"all {cell.requests} requests of the benchmark failed ({kinds})"
