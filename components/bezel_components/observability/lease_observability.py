"""Alerts of leased machines and their gateway with the address that they are mailed to, a dashboard and a budget.

Owns the alert policies, their channel and the dashboard of the gateway. Leaves out the notice that the machines write
before their leases end (`node/startup.sh`) and the role that they need for it (`RuntimeIdentity`).

Example:
    ```python
    from bezel_components.observability.lease_observability import LeaseObservability, LeaseObservabilityArgs

    LeaseObservability(
        "observability",
        LeaseObservabilityArgs(
            project="acme-llm", stack="chat", gateway="chat-tpu", location="us-east4", email="llm@acme.example",
        ),
    )
    ```
"""

import json
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_gcp import monitoring

from bezel_components.base.arguments import ComponentArgs, child_options
from bezel_components.observability.budget import StackBudget, StackBudgetArgs
from bezel_components.observability.charts import dashboard
from bezel_components.observability.door_figures import DoorFigures
from bezel_components.observability.figures import ServerFigures
from bezel_components.observability.lease_alerts import lease_alerts
from bezel_components.observability.policies import declare_alert, declare_channel


class LeaseObservabilityArgs(ComponentArgs):
    """Arguments of `LeaseObservability`."""

    project: str
    stack: str
    """Name of the stack in the notices of its machines."""
    gateway: str
    """Name of the gateway's service."""
    location: str
    """Region of the gateway."""
    alerts: bool = True
    dashboard: bool = True
    email: str = ""
    """Address that gets the alerts; "" for none."""
    max_error_share: float = 0.05
    renews: bool = False
    """Whether the next deploy after the end of a lease requests another one."""
    starts: tuple[str, ...] = ()
    """Names of the jobs that request the leases at the starts of their hours; empty without hours."""
    agains: tuple[str, ...] = ()
    """Names of the jobs that request them again later."""
    figures: ServerFigures | None = None
    """The series that the machines' collectors write; None without any."""
    door: DoorFigures | None = None
    """The door of keys whose use the dashboard shows; None without one."""
    budget: StackBudgetArgs | None = None
    """A monthly budget; None for none."""
    labels: Mapping[str, str] = {}
    """Labels of the alerts; `VllmService` adds its stack, environment and model."""


class LeaseObservability(pulumi.ComponentResource):
    """Alert policies of one stack's leases, and the dashboard of their gateway."""

    def __init__(self, name: str, args: LeaseObservabilityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:observability:LeaseObservability", name, None, opts)
        options = child_options(self, opts)
        channels: list[pulumi.Output[str]] = []
        shared: dict[str, Any] = {"project": args.project, "labels": args.labels, "opts": options}
        if (args.alerts or args.budget) and args.email:
            channels.append(declare_channel(name, watched=args.stack, email=args.email, **shared))
        if args.alerts:
            alerts = lease_alerts(
                args.stack,
                args.gateway,
                args.location,
                project=args.project,
                max_error_share=args.max_error_share,
                renews=args.renews,
                starts=args.starts,
                agains=args.agains,
            )
            alerts += args.figures.alerts(args.stack, args.max_error_share) if args.figures else ()
            for alert in alerts:
                declare_alert(name, alert, channels=channels, **shared)
        if args.budget is not None:
            StackBudget(f"{name}-stack", args.budget, channels, opts=options)
        if args.dashboard:
            more = [each for figures in (args.figures, args.door) if figures for each in figures.charts()]
            content = dashboard(f"{args.gateway} ({args.location})", args.gateway, args.location, gpu=False, more=more)
            monitoring.Dashboard(
                f"{name}-dashboard", project=args.project, dashboard_json=json.dumps(content), opts=options
            )
        self.register_outputs({})
