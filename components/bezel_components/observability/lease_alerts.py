"""Alerts of leased machines and their gateway, as plain values. Pure.

Owns what each alert measures. The end of a lease is an entry of Cloud Logging that the machine itself writes
(`components/bezel_components/node/startup.sh`): the metrics of a TPU, such as tpu.googleapis.com/instance/uptime_total,
are of the resource GceTpuWorker, whose labels do not name the lease. Leases with hours end as planned, day by day:
there it is the refusal of a start, which Cloud Scheduler logs. A start without capacity is accepted, and fails when no
job asks: what tells is that a later try is accepted too, as a lease that is there refuses it. The share of failed
requests is the gateway's. The server's log stays on the machine, so there is an alert on its KV cache only where a
collector writes its series (`figure_alerts`).
"""

from collections.abc import Sequence

from bezel_base.text.shell import shell_word
from bezel_components.observability.alerts import Alert, LogMatch, error_alert

EVENT = "lease-ends"
REFUSED = "start-refused"
NOT_LEASED = "not-leased"


def lease_alerts(
    stack: str,
    gateway: str,
    location: str,
    *,
    project: str,
    max_error_share: float,
    renews: bool,
    starts: Sequence[str] = (),
    agains: Sequence[str] = (),
) -> tuple[Alert, ...]:
    """Return the alerts of a stack of leases.

    Args:
        stack: Name of the stack, as its machines have it.
        gateway: Name of the gateway's service.
        location: Region of the gateway.
        project: Id of the project.
        max_error_share: Share of requests with a 5xx response over 5 minutes above which an alert opens.
        renews: Whether the next deploy after the end requests another lease.
        starts: Names of the jobs that request the leases; empty without hours.
        agains: Names of the jobs that request them again later.
    """
    if starts:
        lease = [_refusal_alert(stack, location, [*starts, *agains])]
        lease += [_not_leased(stack, location, agains)] if agains else []
    else:
        lease = [_ends(stack, project, renews=renews)]
    errors = error_alert(
        gateway,
        gateway,
        location,
        max_error_share,
        "Look at the gateway's request log for responses 5xx. 503 without a machine means that the lease has ended or "
        f"was preempted, or that it is outside its hours: `bezel status {shell_word(stack)}` shows it, and `pulumi "
        "up` says what "
        "to do. Others are the server's.",
    )
    return *lease, errors


def _ends(stack: str, project: str, *, renews: bool) -> Alert:
    again = (
        "The next `pulumi up` after the end requests another lease, at the price that `bezel plan` shows."
        if renews
        else "For another lease set `bezel:lease.renew` to true and run `pulumi up` after the end."
    )
    return Alert(
        EVENT,
        f"{stack}: a lease is about to end",
        LogMatch(end_filter(project, stack), extracted={"lease": "EXTRACT(jsonPayload.lease)"}),
        "WARNING",
        "The lease ${log.extracted_label.lease} ends within half an hour: the platform deletes the machine, and "
        f"without another one the gateway responds with 503. {again} `bezel status {shell_word(stack)}` shows when it "
        "ends. Where "
        "no further lease is wanted, nothing has to be done: an ended lease costs nothing more.",
    )


def _refusal_alert(stack: str, location: str, starts: Sequence[str]) -> Alert:
    return Alert(
        REFUSED,
        f"{stack}: a lease could not be requested",
        LogMatch(refused_filter(location, starts), extracted={"job": "EXTRACT(resource.labels.job_id)"}),
        "ERROR",
        "Google refused the request of the job ${log.extracted_label.job}, which is sent again until the hours end: "
        "without a machine the gateway responds with 503 in the hours of the lease. The job's log has the status: 403 "
        "means that its account lacks a role, 429 that the quota is used up. `pulumi up` requests the lease at once, "
        f"and says why it cannot. `bezel status {shell_word(stack)}` shows whether it is there.",
    )


def _not_leased(stack: str, location: str, agains: Sequence[str]) -> Alert:
    return Alert(
        NOT_LEASED,
        f"{stack}: a lease was not there in its hours",
        LogMatch(accepted_filter(location, agains), extracted={"job": "EXTRACT(resource.labels.job_id)"}),
        "WARNING",
        "The job ${log.extracted_label.job} found no lease in its hours, and has requested it again: the request "
        "before got no capacity within its patience, or the machine was preempted or deleted. Until it is granted the "
        f"gateway responds with 503. `bezel status {shell_word(stack)}` shows whether it is there; the job tries again "
        f"until the hours end. `bezel tpu find {shell_word(stack)}` shows other zones.",
    )


def accepted_filter(location: str, jobs: Sequence[str]) -> str:
    """A filter of the attempts of jobs that Google has accepted; one for a lease that is there it refuses (409)."""
    return f"{_attempts(location, jobs)} AND httpRequest.status=200"


def refused_filter(location: str, starts: Sequence[str]) -> str:
    """A filter of the failed attempts of jobs; 409 means that the lease is there already."""
    return f"{_attempts(location, starts)} AND severity>=ERROR AND NOT httpRequest.status=409"


def _attempts(location: str, jobs: Sequence[str]) -> str:
    names = " OR ".join(f'"{name}"' for name in jobs)
    place = f'resource.type="cloud_scheduler_job" AND resource.labels.location="{location}"'
    return f"{place} AND resource.labels.job_id=({names})"


def end_filter(project: str, stack: str) -> str:
    """A filter of the entries that say that a lease of a stack is about to end."""
    return (
        f'logName="projects/{project}/logs/bezel-lease" AND resource.type="generic_node" AND '
        f'labels.stack="{stack}" AND jsonPayload.event="{EVENT}"'
    )
