"""Health check and short benchmark of a deployment: the same for both kinds of services."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import pulumi

from bezel.planner import AnyPlan
from bezel.planner.base.money import Priced
from bezel_services import environment
from bezel_services.children import Children
from bezel_services.declared import DeclaredResources
from bezel_smoke.benchmark import ShortBenchmark, ShortBenchmarkArgs
from bezel_smoke.health import HealthCheck, HealthCheckArgs


def check_and_measure(
    plan: AnyPlan,
    children: Children,
    *,
    service: str,
    declared: Mapping[str, Any],
    resources: DeclaredResources | None,
    url: pulumi.Input[str],
    audience: pulumi.Input[str] | None,
    revision: pulumi.Input[str],
    earlier: Sequence[pulumi.Resource],
    leases: Sequence[Mapping[str, Any]] = (),
    hooks: pulumi.ResourceHookBinding | None = None,
) -> tuple[HealthCheck, ShortBenchmark]:
    """Declare the health check and the short benchmark.

    Args:
        plan: Plan of the service.
        children: Children of its component.
        service: `projects/P/locations/L/services/S` of the checked service.
        declared: The declared inputs of that service.
        resources: All resources that the program declares; None where another process has the program.
        url: Address for the requests.
        audience: Audience of the identity token, where it is another address than `url`.
        revision: A value that changes when the checks must run again.
        earlier: Resources that must exist first.
        leases: The leases that serve behind it: see `HealthCheckArgs`.
        hooks: Run around the operations on both.
    """
    health = check_health(
        plan,
        children,
        service=service,
        declared=declared,
        resources=resources,
        url=url,
        audience=audience,
        revision=revision,
        earlier=earlier,
        leases=leases,
        hooks=hooks,
    )
    smoke = plan.smoke
    benchmark = ShortBenchmark(
        children.name_of("benchmark"),
        ShortBenchmarkArgs(
            **_server(plan, service, url, audience, revision, public=plan.settings.access.public),
            template=template_fingerprint(declared),
            requests=smoke.requests,
            concurrency=smoke.concurrency,
            prompt_tokens=smoke.prompt_tokens,
            output_tokens=smoke.output_tokens,
            simulated=environment.is_simulated(),
        ),
        opts=children.after(health, hooks=hooks),
    )
    return health, benchmark


def check_health(
    plan: AnyPlan,
    children: Children,
    *,
    service: str,
    declared: Mapping[str, Any],
    url: pulumi.Input[str],
    audience: pulumi.Input[str] | None,
    revision: pulumi.Input[str],
    earlier: Sequence[pulumi.Resource],
    resources: DeclaredResources | None = None,
    leases: Sequence[Mapping[str, Any]] = (),
    hooks: pulumi.ResourceHookBinding | None = None,
    public: bool | None = None,
) -> HealthCheck:
    """Declare the health check; `public` says whether anyone may call at `url`, by default as in the plan.

    The other arguments are those of `check_and_measure`.
    """
    smoke, anyone = plan.smoke, plan.settings.access.public if public is None else public
    return HealthCheck(
        children.name_of("health"),
        HealthCheckArgs(
            **_server(plan, service, url, audience, revision, public=anyone),
            planned=declared,
            resources=None if resources is None else resources.output(),
            speculative=smoke.speculative,
            min_draft_acceptance=smoke.min_draft_acceptance,
            random_weights=smoke.random_weights,
            deadline_seconds=smoke.deadline_seconds,
            leases=list(leases) or None,
            start=_start(plan),
        ),
        opts=children.after(*earlier, hooks=hooks),
    )


def _server(
    plan: AnyPlan,
    service: str,
    url: pulumi.Input[str],
    audience: pulumi.Input[str] | None,
    revision: pulumi.Input[str],
    *,
    public: bool,
) -> dict[str, Any]:
    """The arguments that both checks have."""
    return {
        "service": service,
        "url": url,
        "audience": audience,
        "revision": revision,
        "served_model": plan.served_model,
        "public": public,
        "impersonate": plan.smoke.impersonate,
        "pooled_at": plan.smoke.pooled_at,
    }


def _start(plan: AnyPlan) -> dict[str, Any]:
    """What a start of the server takes by the plan: seconds and USD, each as [low, high]; None for an unknown price."""
    costs = [plan.cost.start(seconds) for seconds in plan.start.seconds]
    prices = [float(cost.usd) for cost in costs if isinstance(cost, Priced)]
    usd = prices if len(prices) == len(costs) else None
    return {"seconds": [round(seconds) for seconds in plan.start.seconds], "usd": usd}


def template_fingerprint(declared: Mapping[str, Any]) -> pulumi.Output[str]:
    """A fingerprint of the declared template: a new one makes a new revision, which the preview does not know yet."""
    text = pulumi.Output.json_dumps(declared["template"], default=vars, sort_keys=True)
    return text.apply(lambda value: hashlib.sha256(value.encode()).hexdigest()[:16])
