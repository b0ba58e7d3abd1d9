"""Hours of a lease: Cloud Scheduler requests it at each start of its hours and deletes it at each end.

A job sends the very request that a deploy sends (`bezel.leases.requests`), so a deploy knows the lease as its own: by
its name, its labels and the hash of its body. A start while the lease is there is refused by Google (409), as the name
is taken: there is never a second one. That holds within one zone, so a lease with hours has one. An end that finds
nothing (404) changes nothing. Both count as failed attempts of the job and are repeated, as are a start while the last
lease is still being deleted and an end while the machine is still being provisioned, which Google refuses for a while:
five times within 35 minutes.

A request that finds no capacity within its patience fails later, when no job sees it: a queued resource is then FAILED
and keeps its name, a machine of Compute Engine is gone. The same holds for a lease that was preempted. So each start
is tried again, after the patience, until the hours end (`bezel.planner.base.hours.retries`): one job deletes a queued
resource without `force`, which Google refuses while it has a node, and ten minutes later another one sends the
request again, which Google refuses while the lease is there. Where that request is accepted, there was no lease: its
entry in the log is what the alert looks for. A request that still waits may be deleted and begin to wait anew.

Google ends a lease after its run duration, also if no job ever comes. Leaves out the hours themselves
(`bezel.planner.base.hours`), the account of the jobs (`SchedulingIdentity`), and the addresses of machines that come
and go (`NodeNetwork.addresses`).

Example:
    ```python
    from bezel_components.tpu_lease import TpuLease, TpuLeaseArgs

    terms = {
        "project": "acme-llm", "name": "bezel-by-day", "stack": "by-day", "back_end": "queued_resource",
        "body": queued_body("bezel-by-day", accelerator_type="v6e-4", runtime_version="v2-alpha-tpuv6e",
                            labels=labels("bezel-by-day", "by-day"), metadata=metadata, service_account=identity.email,
                            network=network.network, tags=(network.tag,), run_seconds=43200),
    }
    zone = ZoneChoice("us-east5-a", 7200)
    windows = (Window("0 8 * * 1-5", "0 18 * * 1-5", "Europe/Berlin"),)
    by_day = TpuLease("by-day", TpuLeaseArgs(
        **terms, zones=(zone,), subnetworks=network.subnetworks, hourly_usd={"us-east5-a": 5.4}, run_seconds=43200,
        hours=windows, checked="1",
    ), opts=pulumi.ResourceOptions(depends_on=[network, identity, weights, server]))
    hours = LeaseHours("hours", LeaseHoursArgs(
        **terms, location="us-east5", zone=zone, subnetwork=network.subnetworks["us-east5"], windows=windows,
        account=scheduling.email, request=by_day.request, checked="1",
    ), opts=pulumi.ResourceOptions(depends_on=[scheduling, by_day]))
    ```
"""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import pulumi
from pulumi.dynamic import Resource
from pulumi_gcp import cloudscheduler

from bezel.leases.requests import SCOPE, BackEndName, LeaseSpec, ZoneChoice
from bezel.planner.base.hours import Window, retries
from bezel_components.base.arguments import ComponentArgs, Text, child_options
from bezel_components.base.dynamic import own_urn
from bezel_components.providers.lease_hours import LeaseAfterChecksProvider

_TOKEN = "pulumi-python:dynamic/components:LeaseAfterChecks"  # noqa: S105 - a type's name
_DEADLINE = "60s"
# Attempts after 2, 4, 8, 10 and 10 minutes; bezel.planner.rules.hours_checks knows their sum.
_RETRIES = cloudscheduler.JobRetryConfigArgs(
    retry_count=5, min_backoff_duration="120s", max_backoff_duration="600s", max_doublings=2
)
# A later try is repeated by the next one only: an attempt after the hours could lease a machine that no job returns.
_NONE = cloudscheduler.JobRetryConfigArgs(retry_count=0)
_DOES = {
    "start": "Requests",
    "end": "Deletes",
    "clear": "Deletes a failed request of",
    "again": "Requests once more",
}


class LeaseHoursArgs(ComponentArgs):
    """Arguments of `LeaseHours`: those of the lease, as `TpuLease` has them, and its hours."""

    project: str
    location: str
    """Region of the jobs."""
    name: str
    stack: str
    back_end: BackEndName
    zone: ZoneChoice
    """The only zone of the lease."""
    subnetwork: Text
    body: Mapping[str, Any]
    windows: tuple[Window, ...]
    account: str
    """E-mail address of the jobs' account."""
    request: Text
    """Identity of the request of the last deploy."""
    checked: Text
    """Another text after each check of the server."""


class LeaseAfterChecks(Resource, module="components", name="LeaseAfterChecks"):
    """The lease at the end of a deploy: returned outside its hours."""

    def __init__(self, name: str, args: LeaseHoursArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        props = {
            "project": args.project,
            "name": args.name,
            "stack": args.stack,
            "back_end": args.back_end,
            "zones": [{"zone": args.zone.zone, "patience_seconds": args.zone.patience_seconds}],
            "hours": [list(window) for window in args.windows],
            "request": args.request,
            "checked": args.checked,
            "urn": own_urn(name, _TOKEN, opts),
        }
        super().__init__(LeaseAfterChecksProvider(), name, props, opts)


class LeaseHours(pulumi.ComponentResource):
    """Jobs that request a lease at each start of its hours, try again where it is not there, and delete it at each end.

    Make it depend on the checks of the server: a stack whose checks fail is then not leased again each day.
    """

    def __init__(self, name: str, args: LeaseHoursArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:lease:LeaseHours", name, None, opts)
        LeaseAfterChecks(f"{name}-after-checks", args, child_options(self, opts))
        start, end, clear = _targets(args)
        for number, window in enumerate(args.windows):
            jobs = [("start", window.start, start, _RETRIES), ("end", window.end, end, _RETRIES)]
            if again := retries(window, args.zone.patience_seconds):
                jobs += [("clear", again.clear, clear, _NONE)] if clear else []
                jobs += [("again", again.start, start, _NONE)]
            for verb, schedule, target, repeats in jobs:
                cloudscheduler.Job(
                    f"{name}-{verb}-{number}",
                    project=args.project,
                    region=args.location,
                    name=_job(args.name, verb, number),
                    description=f"{_DOES[verb]} the lease {args.name}",
                    schedule=schedule,
                    time_zone=window.zone,
                    attempt_deadline=_DEADLINE,
                    retry_config=repeats,
                    http_target=target,
                    opts=child_options(self, opts),
                )
        self.register_outputs({})


def start_jobs(lease: str, windows: Sequence[Window]) -> tuple[str, ...]:
    """Names of the jobs that request a lease."""
    return tuple(_job(lease, "start", number) for number in range(len(windows)))


def again_jobs(lease: str, windows: Sequence[Window], patience_seconds: float) -> tuple[str, ...]:
    """Names of the jobs that request a lease again; arguments as of `LeaseHours`."""
    numbers = (number for number, window in enumerate(windows) if retries(window, patience_seconds))
    return tuple(_job(lease, "again", number) for number in numbers)


def _job(lease: str, verb: str, number: int) -> str:
    return f"{lease}-{verb}-{number}"


def _targets(
    args: LeaseHoursArgs,
) -> tuple[cloudscheduler.JobHttpTargetArgs, cloudscheduler.JobHttpTargetArgs, cloudscheduler.JobHttpTargetArgs | None]:
    """The requests of a start and of an end, and what deletes a failed request, where that keeps its name."""
    cleared = ""
    if args.back_end == "queued_resource":
        parent = f"https://tpu.googleapis.com/v2alpha1/projects/{args.project}/locations/{args.zone.zone}"
        create = f"{parent}/queuedResources?{urlencode({'queuedResourceId': args.name})}"
        cleared = f"{parent}/queuedResources/{args.name}"
        delete = f"{cleared}?force=true"
    else:
        create = f"https://compute.googleapis.com/compute/v1/projects/{args.project}/zones/{args.zone.zone}/instances"
        delete = f"{create}/{args.name}"
    token = cloudscheduler.JobHttpTargetOauthTokenArgs(service_account_email=args.account, scope=SCOPE)
    return (
        cloudscheduler.JobHttpTargetArgs(
            uri=create,
            http_method="POST",
            headers={"Content-Type": "application/json"},
            body=pulumi.Output.all(args.body, args.subnetwork).apply(lambda values: _encode_body(args, *values)),
            oauth_token=token,
        ),
        cloudscheduler.JobHttpTargetArgs(uri=delete, http_method="DELETE", oauth_token=token),
        cloudscheduler.JobHttpTargetArgs(uri=cleared, http_method="DELETE", oauth_token=token) if cleared else None,
    )


def _encode_body(args: LeaseHoursArgs, body: Mapping[str, Any], subnetwork: str) -> str:
    spec = LeaseSpec(
        project=args.project,
        name=args.name,
        stack=args.stack,
        back_end=args.back_end,
        zones=(args.zone,),
        subnetworks={args.zone.region: subnetwork},
        body=body,
    )
    return base64.b64encode(json.dumps(spec.body_in(args.zone), sort_keys=True).encode()).decode()
