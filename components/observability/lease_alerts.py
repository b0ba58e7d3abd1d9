"""Alerts of leased machines and their gateway, as plain values. Pure.

Owns what each alert measures. The end of a lease is an entry of Cloud Logging that the machine itself writes
(`components/node/startup.sh`): the metrics of a TPU, such as tpu.googleapis.com/instance/uptime_total, are of the
resource GceTpuWorker, whose labels do not name the lease. The share of failed requests is the gateway's. The server's
log stays on the machine, so there is no alert on its KV cache.
"""

from components.observability.alerts import Alert, LogMatch, error_alert

EVENT = "lease-ends"


def lease_alerts(
    stack: str, gateway: str, location: str, *, project: str, max_error_share: float, renews: bool
) -> tuple[Alert, ...]:
    """Return the alerts of a stack of leases.

    Args:
        stack: Name of the stack, as its machines have it.
        gateway: Name of the gateway's service.
        location: Region of the gateway.
        project: Id of the project.
        max_error_share: Share of requests with a 5xx response over 5 minutes above which an alert opens.
        renews: Whether the next deploy after the end requests another lease.
    """
    again = (
        "The next `pulumi up` after the end requests another lease, at the price that `bezel plan` shows."
        if renews
        else "For another lease set `bezel:lease.renew` to true and run `pulumi up` after the end."
    )
    return (
        Alert(
            EVENT,
            f"{stack}: a lease is about to end",
            LogMatch(end_filter(project, stack), extracted={"lease": "EXTRACT(jsonPayload.lease)"}),
            "WARNING",
            "The lease ${log.extracted_label.lease} ends within half an hour: the platform deletes the machine, and "
            f"without another one the gateway responds with 503. {again} `bezel status {stack}` shows when it ends. "
            "Where no further lease is wanted, nothing has to be done: an ended lease costs nothing more.",
        ),
        error_alert(
            gateway,
            location,
            max_error_share,
            "Look at the gateway's request log for responses 5xx. 503 without a machine means that the lease has ended "
            f"or was preempted: `bezel status {stack}` shows it, and `pulumi up` says what to do. Others are the "
            "server's.",
        ),
    )


def end_filter(project: str, stack: str) -> str:
    """A filter of the entries that say that a lease of a stack is about to end."""
    return (
        f'logName="projects/{project}/logs/bezel-lease" AND resource.type="generic_node" AND '
        f'labels.stack="{stack}" AND jsonPayload.event="{EVENT}"'
    )
