"""Alert policies, and the e-mail channel that they notify, as resources of Pulumi.

Owns the translation of an `Alert` into a policy. Leaves out which alerts there are (`alerts.py`, `lease_alerts.py`).
"""

from collections.abc import Mapping, Sequence

import pulumi
from pulumi_gcp import monitoring

from bezel_components.observability.alerts import Alert, LogMatch, Threshold

AUTO_CLOSE = "86400s"


def declare_channel(
    name: str, *, project: str, watched: str, email: str, labels: Mapping[str, str], opts: pulumi.ResourceOptions
) -> pulumi.Output[str]:
    """Declare the channel that mails to an address, and return its name."""
    channel = monitoring.NotificationChannel(
        f"{name}-channel",
        project=project,
        type="email",
        display_name=f"Alerts of {watched}",
        labels={"email_address": email},
        user_labels=labels,
        opts=opts,
    )
    name_of_channel: pulumi.Output[str] = channel.id
    return name_of_channel


def declare_alert(
    name: str,
    alert: Alert,
    *,
    project: str,
    channels: Sequence[pulumi.Input[str]],
    labels: Mapping[str, str],
    opts: pulumi.ResourceOptions,
) -> None:
    """Declare the policy of an alert; without channels its incidents are shown in the console."""
    monitoring.AlertPolicy(
        f"{name}-{alert.id}",
        project=project,
        display_name=alert.name,
        combiner="OR",
        conditions=[_condition(alert)],
        severity=alert.severity,
        notification_channels=list(channels),
        documentation=monitoring.AlertPolicyDocumentationArgs(content=alert.repair),
        alert_strategy=_strategy(alert),
        user_labels=labels,
        opts=opts,
    )


def _strategy(alert: Alert) -> monitoring.AlertPolicyAlertStrategyArgs:
    if not isinstance(alert.condition, LogMatch):
        return monitoring.AlertPolicyAlertStrategyArgs(auto_close=AUTO_CLOSE)
    limit = monitoring.AlertPolicyAlertStrategyNotificationRateLimitArgs(period=f"{alert.condition.every_seconds}s")
    return monitoring.AlertPolicyAlertStrategyArgs(auto_close=AUTO_CLOSE, notification_rate_limit=limit)


def _condition(alert: Alert) -> monitoring.AlertPolicyConditionArgs:
    wanted = alert.condition
    if isinstance(wanted, LogMatch):
        matched = monitoring.AlertPolicyConditionConditionMatchedLogArgs(
            filter=wanted.filter, label_extractors=dict(wanted.extracted) or None
        )
        return monitoring.AlertPolicyConditionArgs(display_name=alert.id, condition_matched_log=matched)
    if not isinstance(wanted, Threshold):
        query = monitoring.AlertPolicyConditionConditionPrometheusQueryLanguageArgs(
            query=wanted.query,
            duration=f"{wanted.seconds}s",
            evaluation_interval=f"{wanted.every_seconds}s",
            disable_metric_validation=wanted.is_written_late or None,
        )
        return monitoring.AlertPolicyConditionArgs(display_name=alert.id, condition_prometheus_query_language=query)
    aligned = {
        "alignment_period": "60s",
        "per_series_aligner": wanted.aligner,
        "cross_series_reducer": "REDUCE_SUM",
    }
    ratio = [monitoring.AlertPolicyConditionConditionThresholdDenominatorAggregationArgs(**aligned)]
    threshold = monitoring.AlertPolicyConditionConditionThresholdArgs(
        filter=wanted.filter,
        denominator_filter=wanted.denominator or None,
        denominator_aggregations=ratio if wanted.denominator else None,
        comparison="COMPARISON_GT",
        threshold_value=wanted.above,
        duration=f"{wanted.seconds}s",
        aggregations=[monitoring.AlertPolicyConditionConditionThresholdAggregationArgs(**aligned)],
    )
    return monitoring.AlertPolicyConditionArgs(display_name=alert.id, condition_threshold=threshold)
