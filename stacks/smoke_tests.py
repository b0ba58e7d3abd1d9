"""Health check and short benchmark of a deployment, the same for all kinds of stacks."""

from collections.abc import Mapping
from typing import Any

import pulumi

from bezel.planner import AnyPlan, PlanError, Problem, SmokePlan
from smoke.benchmark import ShortBenchmark, ShortBenchmarkArgs
from smoke.health import HealthCheck, HealthCheckArgs

INGRESS = {
    "all": "INGRESS_TRAFFIC_ALL",
    "internal": "INGRESS_TRAFFIC_INTERNAL_ONLY",
    "internal-and-cloud-load-balancing": "INGRESS_TRAFFIC_INTERNAL_LOAD_BALANCER",
}
"""Cloud Run's ingress values."""


def refuse(plan: AnyPlan, problems: list[Problem]) -> None:
    """Stop before anything is declared if the cloud is known to have no room for it.

    Raises:
        PlanError: There are problems; it holds all of them.
    """
    if problems:
        raise PlanError.of(problems, plan.stack)


def check_and_measure(
    wanted: SmokePlan,
    *,
    service: str,
    planned: Mapping[str, Any],
    url: pulumi.Input[str],
    audience: pulumi.Input[str] | None,
    revision: pulumi.Input[str],
    served_model: str,
    public: bool,
    simulated: bool,
    after: pulumi.Resource,
) -> tuple[HealthCheck, ShortBenchmark]:
    """Declare the health check and the short benchmark.

    Args:
        wanted: The checks, and the size of the benchmark.
        service: `projects/P/locations/L/services/S` of the checked service.
        planned: The declared inputs of that service.
        url: Address for the requests.
        audience: Audience of the identity token, where it is another address than `url`.
        revision: A value that changes when the checks must run again.
        served_model: The model's id at the server.
        public: Whether anyone may call it.
        simulated: Whether the server is a simulated one.
        after: A resource that must exist first.
    """
    health = HealthCheck(
        "health",
        HealthCheckArgs(
            service=service,
            planned=planned,
            url=url,
            audience=audience,
            revision=revision,
            served_model=served_model,
            public=public,
            speculative=wanted.speculative,
            min_draft_acceptance=wanted.min_draft_acceptance,
            random_weights=wanted.random_weights,
            deadline_seconds=wanted.deadline_seconds,
            impersonate=wanted.impersonate,
        ),
        opts=pulumi.ResourceOptions(depends_on=[after]),
    )
    benchmark = ShortBenchmark(
        "benchmark",
        ShortBenchmarkArgs(
            url=url,
            audience=audience,
            revision=revision,
            service=service,
            served_model=served_model,
            requests=wanted.requests,
            concurrency=wanted.concurrency,
            prompt_tokens=wanted.prompt_tokens,
            output_tokens=wanted.output_tokens,
            public=public,
            impersonate=wanted.impersonate,
            simulated=simulated,
        ),
        opts=pulumi.ResourceOptions(depends_on=[health]),
    )
    return health, benchmark
