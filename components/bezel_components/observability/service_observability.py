"""Alerts of a Cloud Run service with the address that they are mailed to, a dashboard, an uptime check and a budget.

Owns the alert policies, their channel and the dashboard. Leaves out the budget of the whole project
(`bootstrap/bezel_bootstrap/spending_alert.py`) and the collector that writes vLLM's own metrics (`metrics`). A policy
mails to no one without an address: its incidents are shown in the console.

Example:
    ```python
    from bezel_components.observability.service_observability import ServiceObservability, ServiceObservabilityArgs

    ServiceObservability(
        "observability",
        ServiceObservabilityArgs(
            project="acme-llm", service="chat", location="us-east4", email="llm@acme.example", alerts=True,
            dashboard=True, start_seconds=1830,
        ),
    )
    ```
"""

import json
from collections.abc import Mapping, Sequence

import pulumi
from pulumi_gcp import monitoring

from bezel_components.base.arguments import ComponentArgs, child_options
from bezel_components.observability.alerts import service_alerts
from bezel_components.observability.budget import StackBudget, StackBudgetArgs
from bezel_components.observability.charts import dashboard
from bezel_components.observability.door_figures import DoorFigures
from bezel_components.observability.figures import ServerFigures
from bezel_components.observability.policies import AUTO_CLOSE, declare_alert, declare_channel
from bezel_components.observability.uptime import PERIOD_SECONDS, UptimeCheck, UptimeCheckArgs

_UNREACHABLE = (
    "Google's checkers do not get an answer: look at the service's revision and at its log. With 403 the right of the "
    "Monitoring service agent to call the service is missing."
)
_NO_ADDRESS = (
    "Google's checkers get no answer at the address: `bezel endpoint` shows its records and whether its certificate is "
    "issued, which takes minutes to hours for a new one; `bezel status` shows each region behind it."
)


class ServiceObservabilityArgs(ComponentArgs):
    """Arguments of `ServiceObservability`."""

    project: str
    service: str
    """Name of the service."""
    location: str
    alerts: bool = True
    dashboard: bool = True
    email: str = ""
    """Address that gets the alerts; "" for none."""
    start_seconds: int = 1830
    """Time that an instance may take to start."""
    max_error_share: float = 0.05
    max_cold_starts: int | None = None
    idle_hours: int | None = None
    logs_statistics: bool = True
    """Whether vLLM logs its statistics, which one alert reads where there are no `figures`."""
    figures: ServerFigures | None = None
    """The series that a collector writes; None without one."""
    uptime: UptimeCheckArgs | None = None
    """A check from outside; None for none. Its alert is made with the others."""
    several_regions: bool = False
    """Whether the service runs in other regions too: alerts name the region then, and instances are idle while no
    region gets a request."""
    domain: str = ""
    """Domain of the address in front of the service, which is checked as well where `uptime` is; "" without one."""
    door: DoorFigures | None = None
    """The door of keys whose use the dashboard shows; None without one."""
    budget: StackBudgetArgs | None = None
    """A monthly budget; None for none."""
    labels: Mapping[str, str] = {}
    """Labels of the alerts; `VllmService` adds its stack, environment and model."""


class ServiceObservability(pulumi.ComponentResource):
    """Alert policies and dashboard of one service."""

    def __init__(self, name: str, args: ServiceObservabilityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:observability:ServiceObservability", name, None, opts)
        options = child_options(self, opts)
        watched = f"{args.service} ({args.location})" if args.several_regions else args.service
        channels: list[pulumi.Output[str]] = []
        if (args.alerts or args.budget) and args.email:
            channels.append(
                declare_channel(
                    name,
                    project=args.project,
                    watched=watched,
                    email=args.email,
                    labels=args.labels,
                    opts=options,
                )
            )
        alerts = service_alerts(
            args.service,
            args.location,
            max_error_share=args.max_error_share,
            start_seconds=args.start_seconds,
            max_cold_starts=args.max_cold_starts,
            idle_hours=args.idle_hours,
            logs_statistics=args.logs_statistics and args.figures is None,
            several_regions=args.several_regions,
        )
        if args.figures is not None:
            alerts += args.figures.alerts(watched, args.max_error_share)
        for alert in alerts if args.alerts else ():
            declare_alert(name, alert, project=args.project, channels=channels, labels=args.labels, opts=options)
        if args.uptime is not None:
            check = UptimeCheck(f"{name}-uptime", args.uptime, opts=options)
            if args.alerts:
                _declare_unreachable(f"{name}-unreachable", watched, check, _UNREACHABLE, args, channels, options)
            if args.domain:
                of_address = args.uptime.model_copy(update={"domain": args.domain})
                check = UptimeCheck(f"{name}-address-uptime", of_address, opts=options)
                if args.alerts:
                    policy = f"{name}-address-unreachable"
                    _declare_unreachable(policy, args.domain, check, _NO_ADDRESS, args, channels, options)
        if args.budget is not None:
            StackBudget(f"{name}-stack", args.budget, channels, opts=options)
        if args.dashboard:
            more = [each for figures in (args.figures, args.door) if figures for each in figures.charts()]
            content = dashboard(f"{args.service} ({args.location})", args.service, args.location, more=more)
            monitoring.Dashboard(
                f"{name}-dashboard", project=args.project, dashboard_json=json.dumps(content), opts=options
            )
        self.register_outputs({})


def _declare_unreachable(
    name: str,
    watched: str,
    check: UptimeCheck,
    repair: str,
    args: ServiceObservabilityArgs,
    channels: Sequence[pulumi.Input[str]],
    opts: pulumi.ResourceOptions,
) -> None:
    """Declare the alert of a check from outside."""
    monitoring.AlertPolicy(
        name,
        project=args.project,
        display_name=f"{watched}: checks from outside fail",
        combiner="OR",
        conditions=[_unreachable(check.filter)],
        severity="CRITICAL",
        notification_channels=list(channels),
        documentation=monitoring.AlertPolicyDocumentationArgs(content=repair),
        alert_strategy=monitoring.AlertPolicyAlertStrategyArgs(auto_close=AUTO_CLOSE),
        user_labels=args.labels,
        opts=opts,
    )


def _unreachable(results: pulumi.Output[str]) -> monitoring.AlertPolicyConditionArgs:
    """Less than half of the checks of ten minutes pass."""
    aggregation = monitoring.AlertPolicyConditionConditionThresholdAggregationArgs(
        alignment_period=f"{2 * PERIOD_SECONDS}s",
        per_series_aligner="ALIGN_FRACTION_TRUE",
        cross_series_reducer="REDUCE_MEAN",
    )
    threshold = monitoring.AlertPolicyConditionConditionThresholdArgs(
        filter=results, comparison="COMPARISON_LT", threshold_value=0.5, duration="0s", aggregations=[aggregation]
    )
    return monitoring.AlertPolicyConditionArgs(display_name="unreachable", condition_threshold=threshold)
