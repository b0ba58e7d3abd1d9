"""Registry of operations: the one table that the command line, the MCP server and the documentation are made from.

An operation is named here and imported when it is called. Its arguments and its result are described by the models in
its signature, `def function(context: Context, arguments: XArguments) -> XResult`.
"""

import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_type_hints

from bezel.operations.context import Context
from bezel.operations.results import Arguments, Result
from bezel.operations.touches import Touches

Kind = Literal["reading", "changing", "job"]


@dataclass(frozen=True)
class Operation:
    """An operation.

    Attributes:
        name: Its name, which is also that of the MCP tool, with `_` between words.
        function: `MODULE:FUNCTION` below `bezel.operations`.
        kind: `reading` changes nothing; `changing` needs a confirmed plan; `job` runs for minutes, with progress.
        help: What it does, in one line.
        command: Its words on the command line, e.g. `secret set`.
        apply: Of a changing operation, `MODULE:FUNCTION` that carries out the plan which `function` returns.
        touches: What it touches; an operation without it is not served to a client that is limited to some stacks.
    """

    name: str
    function: str
    kind: Kind
    help: str
    command: str
    apply: str = ""
    touches: Touches | None = None

    def load(self) -> Callable[[Context, Any], Result]:
        """The function; of a changing operation, the one that plans."""
        return _loaded(self.function)

    def load_apply(self) -> Callable[[Context, Any], Result]:
        """The function that carries out a plan: `apply(context: Context, plan: Plan) -> Outcome`."""
        return _loaded(self.apply)

    def check_scope(self, context: Context, arguments: Arguments) -> None:
        """Check that arguments name nothing beyond the stack, for a caller that is limited to some stacks.

        Raises:
            BeyondStackError: They do.
            UserError: The stack cannot be planned.
        """
        if self.touches is not None and self.touches.check:
            _loaded(self.touches.check)(context, arguments)

    def arguments(self) -> type[Arguments]:
        """The model of its arguments."""
        function = self.load()
        name = list(inspect.signature(function).parameters)[1]
        model: type[Arguments] = get_type_hints(function)[name]
        return model

    def result(self) -> type[Result]:
        """The model of its result; of a changing operation, its plan."""
        model: type[Result] = get_type_hints(self.load())["return"]
        return model

    def outcome(self) -> type[Result]:
        """The model of what `apply` returns."""
        model: type[Result] = get_type_hints(self.load_apply())["return"]
        return model


def _loaded(place: str) -> Callable[[Context, Any], Result]:
    module, _, name = place.partition(":")
    function: Callable[[Context, Any], Result] = getattr(importlib.import_module(f"bezel.operations.{module}"), name)
    return function


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        "plan",
        "plan:plan",
        "reading",
        "show what a stack deploys, needs and costs, and where each value comes from",
        "plan",
        touches=Touches("stack"),
    ),
    Operation(
        "cost",
        "pricing.cost:cost",
        "reading",
        "show what a stack costs per hour, month, lease, cold start and million tokens, with each price's source",
        "cost",
        touches=Touches("stack"),
    ),
    Operation(
        "config",
        "configuration.config:config",
        "reading",
        "show the requests that a deploy sends for a stack's services and machines, or the same as gcloud commands",
        "config",
        touches=Touches("stack", arguments=("gcloud",)),
    ),
    Operation(
        "status",
        "status:status",
        "reading",
        "show whether stacks serve, since when, on what revision or lease, and what they cost",
        "status",
        touches=Touches("stack"),
    ),
    Operation(
        "watch",
        "watching.page:watch",
        "reading",
        "show on one page what a stack does and costs at the moment: load, latencies, instances, lease",
        "watch",
        touches=Touches("stack", arguments=("interval", "wake")),
    ),
    Operation(
        "metrics",
        "serving.metrics:metrics",
        "reading",
        "show a server's load, latencies and failures, what is unhealthy about them and what to do",
        "metrics",
        touches=Touches("stack", arguments=("seconds", "wake")),
    ),
    Operation(
        "memory",
        "memory_layout.memory:memory",
        "reading",
        "show a server's memory as it reports it beside the plan's, and where the plan was wrong",
        "memory",
        touches=Touches("stack", arguments=("since", "wake")),
    ),
    Operation(
        "logs",
        "logs:logs",
        "reading",
        "show logs of the server, the platform, requests, or leased machines, without credentials",
        "logs",
        touches=Touches(
            "stack",
            arguments=(
                "source",
                "revision",
                "node",
                "severity",
                "text",
                "since",
                "limit",
                "page",
                "follow",
                "deadline",
            ),
        ),
    ),
    Operation(
        "endpoint",
        "serving.endpoint:endpoint",
        "reading",
        "show where callers reach a stack, as whom, and by which command",
        "endpoint",
        touches=Touches("stack"),
    ),
    Operation(
        "models",
        "serving.models:models",
        "reading",
        "list the models that a stack's server serves",
        "models",
        touches=Touches("stack", arguments=("wake",)),
    ),
    Operation(
        "query",
        "serving.query:query",
        "reading",
        "ask a stack's server one prompt, with an image too, and show its answer and times",
        "query",
        touches=Touches("stack", arguments=("prompt", "image", "max_tokens", "stats", "wake")),
    ),
    Operation(
        "analyze_logs",
        "diagnosis.analyze_logs:analyze_logs",
        "reading",
        "diagnose a server from its log: by rules, and by the stack's own model beside them",
        "analyze-logs",
        touches=Touches("stack", arguments=("since", "limit", "max_tokens", "wake")),
    ),
    Operation(
        "advise",
        "diagnosis.advise:advise",
        "reading",
        "advise what to change on a stack: by rules, and by the stack's own model beside them",
        "advise",
        touches=Touches("stack", arguments=("since", "limit", "max_tokens", "wake")),
    ),
    Operation(
        "zones",
        "zone_choice.zones:zones",
        "reading",
        "show in which zones a stack's leased hardware exists, is accepted, has quota, and at what price",
        "zones",
        touches=Touches("stack", arguments=("zone",)),
    ),
    Operation(
        "tpu_list",
        "leases.list_leases:list_leases",
        "reading",
        "list every lease of this program: those of its stacks, and those requested by hand",
        "tpu list",
        touches=Touches("project", withheld=("project", "zone")),
    ),
    Operation(
        "tpu_describe",
        "leases.describe_lease:describe_lease",
        "reading",
        "show everything known of a lease: its boot, the end of its console",
        "tpu describe",
        touches=Touches("project", withheld=("project", "zone", "name")),
    ),
    Operation(
        "tpu_create",
        "leases.create_lease:plan_create",
        "changing",
        "request a TPU slice or a machine with GPUs, without a stack, for a limited time",
        "tpu create",
        "leases.create_lease:apply_create",
        touches=Touches(
            "project",
            withheld=(
                "name",
                "hardware",
                "zone",
                "network",
                "subnetwork",
                "service_account",
                "duration",
                "patience",
                "project",
            ),
        ),
    ),
    Operation(
        "tpu_delete",
        "leases.delete_lease:plan_delete",
        "changing",
        "return a lease, and wait until it is gone",
        "tpu delete",
        "leases.delete_lease:apply_delete",
        touches=Touches("project", withheld=("project", "zone", "name")),
    ),
    Operation(
        "secret_show",
        "secrets.secret_show:show",
        "reading",
        "show whether a secret has a value, which stacks read it, and the command by which a person sets it",
        "secret show",
        touches=Touches("stack", arguments=("name",), check="secrets.secret_show:check_scope"),
    ),
    Operation(
        "model_files",
        "model_files.model_files:model_files",
        "reading",
        "show the model files of buckets, complete or not, and the models of Vertex AI's registry",
        "model-files",
        touches=Touches("stack"),
    ),
    Operation(
        "explain",
        "explanation.explain:explain",
        "reading",
        "explain a policy, setting, checkpoint, hardware, vLLM option or variable: what is allowed, and why",
        "explain",
        touches=Touches("records", arguments=("subject", "vllm_version")),
    ),
    Operation(
        "quota",
        "quotas.quota:quota",
        "reading",
        "show limit and use of GPUs, TPU chips, CPUs and memory in each region and zone, and requests for more",
        "quota",
        touches=Touches("stack", arguments=("region", "zone")),
    ),
    Operation(
        "compare",
        "comparison.compare:compare",
        "reading",
        "compare one model on every accelerator: memory, cost, estimated speed",
        "compare",
        touches=Touches("records", arguments=("model", "context", "simulate")),
    ),
    Operation(
        "bench_run",
        "benchmarking.run_bench:run_bench",
        "job",
        "send one load, measure it, check the figures",
        "bench run",
        touches=Touches(
            "stack",
            arguments=(
                "model",
                "out",
                "simulated",
                "wake",
                "users",
                "rate",
                "requests",
                "seconds",
                "input_tokens",
                "output_tokens",
                "repeats",
                "slo",
            ),
            withheld=("url",),
        ),
    ),
    Operation(
        "bench_sweep",
        "benchmarking.sweep:sweep",
        "job",
        "measure throughput over contexts and users, as densely as needed",
        "bench sweep",
        touches=Touches(
            "stack",
            arguments=(
                "model",
                "out",
                "simulated",
                "wake",
                "contexts",
                "users",
                "output_tokens",
                "requests_per_user",
                "full",
                "metric",
                "max_minutes",
                "max_usd",
            ),
            withheld=("url",),
        ),
    ),
    Operation(
        "bench_report",
        "benchmarking.report:report",
        "job",
        "report on results: warnings, findings, tables, and pages with charts",
        "bench report",
        touches=Touches("results", arguments=("results", "out", "markdown")),
    ),
    Operation(
        "bench_audit",
        "benchmarking.audit:audit",
        "reading",
        "find impossible figures in benchmark results",
        "bench audit",
        touches=Touches("results", arguments=("files", "machine", "model")),
    ),
    Operation(
        "catalog_show",
        "catalogue.show:show",
        "reading",
        "show the catalogue's records, each with its date and source",
        "catalog show",
        touches=Touches("records", arguments=("section",)),
    ),
    Operation(
        "doctor",
        "checkup.doctor:doctor",
        "reading",
        "check tools, login, project, APIs, quotas, regions, weights and stack files, each with what to do",
        "doctor",
        touches=Touches("stack", arguments=("deadline",)),
    ),
    Operation(
        "deploy",
        "deploy:plan_deploy",
        "changing",
        "plan a deploy of a stack, ask, then deploy exactly that",
        "deploy",
        "deploy:apply_deploy",
        touches=Touches("stack", arguments=("wait",)),
    ),
    Operation(
        "scale",
        "stack_edits.scale:plan_scale",
        "changing",
        "plan another minimum or maximum of a service's instances, ask, then write the stack's file and deploy it",
        "scale",
        "stack_edits.scale:apply_scale",
        touches=Touches("stack", arguments=("min", "max", "wait")),
    ),
    Operation(
        "restart",
        "stack_edits.restart:plan_restart",
        "changing",
        "plan a new revision of a service that is the same as the last one, ask, then deploy it",
        "restart",
        "stack_edits.restart:apply_restart",
        touches=Touches("stack", arguments=("wait",)),
    ),
    Operation(
        "rollback",
        "rollback.rollback:plan_rollback",
        "changing",
        "plan a move of a service's traffic to the last revision that passed its check, ask, then move and pin it",
        "rollback",
        "rollback.rollback:apply_rollback",
        touches=Touches("stack", arguments=("to", "wait")),
    ),
    Operation(
        "container",
        "node.container:plan_container",
        "changing",
        "start, stop or restart the container of a stack's leased machines, which are billed as before",
        "container",
        "node.container:apply_container",
        touches=Touches("stack", arguments=("action", "lease", "wait")),
    ),
    Operation(
        "destroy",
        "destroy:plan_destroy",
        "changing",
        "show what destroying a stack deletes, ask for its name, then destroy it",
        "destroy",
        "destroy:apply_destroy",
        touches=Touches("stack", arguments=("wait",)),
    ),
    Operation(
        "weights_copy",
        "model_files.weights_copy:plan_copy",
        "changing",
        "copy a stack's model into its bucket, from the hub, a bucket or Model Garden; a repeated copy continues",
        "weights copy",
        "model_files.weights_copy:apply_copy",
        touches=Touches("stack", arguments=("origin", "deadline"), check="model_files.weights_copy:check_scope"),
    ),
    Operation(
        "quota_request",
        "quotas.request:plan_request",
        "changing",
        "request a higher quota from Google, and show the state of the request",
        "quota request",
        "quotas.request:apply_request",
        touches=Touches(
            "stack",
            arguments=("quota", "amount", "region", "zone", "email", "justification"),
            check="quotas.request:check_scope",
        ),
    ),
)


def operation(name: str) -> Operation:
    """The operation of that name.

    Raises:
        KeyError: There is none.
    """
    return {each.name: each for each in OPERATIONS}[name]
