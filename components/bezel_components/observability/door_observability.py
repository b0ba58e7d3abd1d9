"""Metrics of the log of a door of keys, which the stack's dashboard shows by team, and an alert on the door.

Owns the metrics, the alert on the door's failures and its channel. Leaves out the dashboard, which is the server's
(`ServiceObservability`, `LeaseObservability`), and the log (`bezel_door.request_log`).

- A metric whose name changes is replaced: the provider would make the new one and leave the old one.

Example:
    ```python
    from bezel_components.observability.door_figures import DoorFigures
    from bezel_components.observability.door_observability import DoorObservability, DoorObservabilityArgs

    DoorObservability(
        "door-observability",
        DoorObservabilityArgs(
            project="acme-llm", figures=DoorFigures(service="chat-door", location="us-east4"),
            email="llm@acme.example",
        ),
    )
    ```
"""

from collections.abc import Mapping

import pulumi
from pulumi_gcp import logging as cloud_logging

from bezel_components.base.arguments import ComponentArgs, child_options
from bezel_components.observability.alerts import Alert, error_alert
from bezel_components.observability.door_figures import BUCKETS, GROWTH, METRICS, DoorFigures, LogMetric
from bezel_components.observability.policies import declare_alert, declare_channel


class DoorObservabilityArgs(ComponentArgs):
    """Arguments of `DoorObservability`."""

    project: str
    figures: DoorFigures
    """The door, and what its log says."""
    metrics: bool = True
    """Whether its log is counted, for a dashboard."""
    alerts: bool = True
    email: str = ""
    """Address that gets the alert; "" for none."""
    max_error_share: float = 0.05
    labels: Mapping[str, str] = {}
    """Labels of the alert; `VllmService` adds its stack, environment and model."""


class DoorObservability(pulumi.ComponentResource):
    """Metrics of a door's log, and the alert on its failures."""

    def __init__(self, name: str, args: DoorObservabilityArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:observability:DoorObservability", name, None, opts)
        options = child_options(self, opts)
        for metric in METRICS if args.metrics else ():
            replaced = child_options(self, opts, replace_on_changes=["name"])
            _declare_metric(f"{name}-{metric.id}", metric, args, replaced)
        if args.alerts:
            watched = args.figures.service
            channels: list[pulumi.Output[str]] = []
            if args.email:
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
            alert = door_alert(args.figures, args.max_error_share)
            declare_alert(name, alert, project=args.project, channels=channels, labels=args.labels, opts=options)
        self.register_outputs({})


def door_alert(figures: DoorFigures, max_error_share: float) -> Alert:
    """The alert on the share of a door's requests with a 5xx response."""
    return error_alert(
        figures.service,
        figures.service,
        figures.location,
        max_error_share,
        "Callers by key get a 5xx response. The door's own are 502 and 503: it does not reach the server, has no room "
        "for more requests, or cannot read its keys, and its log says which. The others are the server's, whose "
        "alerts say what to do.",
    )


def _declare_metric(name: str, metric: LogMetric, args: DoorObservabilityArgs, opts: pulumi.ResourceOptions) -> None:
    """Declare a metric: a counter of lines, or a distribution of the values of a field."""
    buckets = cloud_logging.MetricBucketOptionsExponentialBucketsArgs(
        num_finite_buckets=BUCKETS, growth_factor=GROWTH, scale=1
    )
    cloud_logging.Metric(
        name,
        project=args.project,
        name=args.figures.name_of(metric),
        description=metric.description,
        filter=args.figures.filter,
        metric_descriptor=cloud_logging.MetricMetricDescriptorArgs(
            metric_kind="DELTA",
            value_type="DISTRIBUTION" if metric.value else "INT64",
            labels=[
                cloud_logging.MetricMetricDescriptorLabelArgs(key=label, value_type="STRING") for label in metric.labels
            ],
        ),
        label_extractors={label: f"EXTRACT(jsonPayload.{label})" for label in metric.labels},
        value_extractor=f"EXTRACT(jsonPayload.{metric.value})" if metric.value else None,
        bucket_options=cloud_logging.MetricBucketOptionsArgs(exponential_buckets=buckets) if metric.value else None,
        opts=opts,
    )
