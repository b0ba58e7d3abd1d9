"""``ShortBenchmark``: the first figures of a deployment, as outputs of its stack.

Runs after the health check, again when the revision or its settings change, and fails only when no request succeeds.
"""

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pulumi
from pulumi.dynamic import Resource

from bezel.plugin import Progress, own_urn
from smoke.resource import SmokeError, SmokeProvider

if TYPE_CHECKING:
    from smoke.load import Load

# What a kind of failure means, for the diagnosis.
_MEANING = {
    "truncated": "the stream ended early, without its [DONE]",
    "broken_stream": "the connection broke in the middle of a stream",
    "error_in_stream": "the server reported an error inside a stream",
    "no_answer": "the connection broke before there was an answer",
    "connect": "nobody took the connection",
    "bad_json": "an event of a stream is no JSON",
}
TOKEN = "pulumi-python:dynamic/smoke:ShortBenchmark"  # noqa: S105 - a type token


@dataclass(frozen=True)
class ShortBenchmarkArgs:
    """What is sent, and where to.

    Attributes:
        url: The address that is asked, and the audience of the identity token.
        audience: As of ``HealthCheckArgs``.
        revision: As of ``HealthCheckArgs``: a new value runs the benchmark again.
        service: As of ``HealthCheckArgs``; with it a benchmark that fails is explained by the conditions and the log.
        served_model: The model's id at the server.
        requests: How many in all; fewer than three times ``concurrency`` is noted in the figures.
        concurrency: How many at once: what the plan expects one instance to hold.
        prompt_tokens: Length of a prompt, about.
        output_tokens: Length of an answer, exactly.
        seed: Of the prompts' words.
        public: Whether anybody may call the service.
        deadline_seconds: After which what still runs counts as failed.
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
    """Sends the load and keeps its figures."""

    kind = "benchmark"
    required = ("url", "revision", "service", "served_model")
    positive = ("requests", "concurrency", "prompt_tokens", "output_tokens", "deadline_seconds")
    settings = tuple(ShortBenchmarkArgs.__dataclass_fields__)

    def run(self, props: dict[str, Any], progress: Progress) -> dict[str, Any]:
        """See ``SmokeProvider.run``: the output is ``figures``."""
        # Late: the program only declares the resource, in every preview.
        from bezel.rest import Credentials
        from smoke.figures import figures
        from smoke.load import Load, run
        from smoke.server import Server

        load = Load(
            url=props["url"].rstrip("/"),
            model=props["served_model"],
            # Numbers come back from the engine as floats.
            requests=int(props["requests"]),
            concurrency=int(props["concurrency"]),
            prompt_tokens=int(props["prompt_tokens"]),
            output_tokens=int(props["output_tokens"]),
            seed=int(props.get("seed") or 0),
            deadline_seconds=float(props["deadline_seconds"]),
        )
        credentials = None if props.get("public") else Credentials(props.get("impersonate"))
        with Server(load.url, credentials, audience=props.get("audience") or "") as server:
            headers = server.headers()
        samples, seconds = run(load, headers, progress)
        simulated = bool(props.get("simulated")) or os.environ.get("BEZEL_SIMULATED") == "1"
        found = figures(load, samples, seconds, simulated=simulated)
        if not found["completed"]:
            raise SmokeError(_all_failed(found["failed"], load) or _explained(found["failed"], load, props["service"]))
        return {"figures": found}


class ShortBenchmark(Resource, module="smoke", name="ShortBenchmark"):
    """The first figures of one revision.

    Attributes:
        figures: ``simulated, requests, completed, failed`` (by kind), ``concurrency, seed, seconds, notes,
            prompt_tokens, output_tokens, requests_per_second, input_tokens_per_second, output_tokens_per_second``, and
            ``ttft_ms, tpot_ms, e2e_ms`` with ``p50`` and ``p99`` each.
    """

    figures: pulumi.Output[dict[str, Any]]

    def __init__(self, name: str, args: ShortBenchmarkArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {**vars(args), "urn": own_urn(name, TOKEN, opts), "figures": None}
        super().__init__(ShortBenchmarkProvider(), name, props, opts)


def _all_failed(failed: dict[str, int], load: "Load") -> str:
    """The whole text where the kinds of failures name what is wrong, else ""."""
    if any(kind in failed for kind in ("http_401", "http_403")):
        repair = "Grant the caller roles/run.invoker (access.invokers), or set smoke.impersonate."
    elif "http_404" in failed or "http_400" in failed:
        repair = (
            f"Check that {load.model!r} is served, has a chat template, and that {load.prompt_tokens} + "
            f"{load.output_tokens} tokens fit vllm.max-model-len."
        )
    elif "timeout" in failed:
        repair = f"Nothing came within {load.deadline_seconds:.0f} s: lower smoke.requests, or smoke.output_tokens."
    else:
        return ""
    return f"{_title(failed, load)}\nrepair: {repair}"


def _explained(failed: dict[str, int], load: "Load", service: str) -> str:
    """The failures, and what the platform and the container said."""
    from bezel.rest import Credentials, GoogleClient
    from smoke.diagnosis import explain
    from smoke.platform import report

    told = tuple(f"{_MEANING.get(kind, kind)} ({count} of {load.requests})" for kind, count in sorted(failed.items()))
    with GoogleClient(Credentials(), timeout_seconds=10, deadline_seconds=20) as google:
        return f"{_title(failed, load)}\n{explain(report(google, service, errors=told))}"


def _title(failed: dict[str, int], load: "Load") -> str:
    kinds = ", ".join(f"{kind}: {count}" for kind, count in sorted(failed.items()))
    return f"all {load.requests} requests of the benchmark failed ({kinds})"
