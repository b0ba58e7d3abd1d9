"""Schedule of a Cloud Run service's minimum of instances, by Cloud Scheduler with an account of its own.

Each entry is a job that changes the service's own minimum (`scaling.minInstanceCount`), and nothing else: no revision
is made, and the revision's own minimum stays below it. The service does not declare that field, so a deploy, a preview
and drift take what a job has set as it is. An update of the service may bring back an older minimum: `ScheduledMinimum`
sets the present one after each, and 0 once there is no schedule any more. Leaves out when entries occur
(bezel_base.cron).

Example:
    ```python
    ScalingSchedule(
        "schedule",
        ScalingScheduleArgs(
            project="acme-llm", location="us-east4", service="chat", account_id="chat-schedule",
            runtime_account=identity.email, service_inputs=service.fingerprint,
            entries=(Entry("0 8 * * 1-5", "Europe/Berlin", 1), Entry("0 18 * * *", "Europe/Berlin", 0)),
        ),
        opts=pulumi.ResourceOptions(depends_on=[service]),
    )
    ```
"""

import base64
import json

import pulumi
from pulumi_gcp import cloudrunv2, cloudscheduler, serviceaccount

from bezel.planner.base.schedule import Entry
from bezel_components.base.arguments import ComponentArgs, child_options
from bezel_components.base.check_resource import CheckResource
from bezel_components.base.granted_roles import ACCOUNT_USER, SERVICE_DEVELOPER
from bezel_components.providers.scheduled_minimum import MASK, ScheduledMinimumProvider
from bezel_components.runtime_identity import declare_account

_API = "https://run.googleapis.com/v2"
_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
_RETRIES, _DEADLINE = 5, "60s"


class ScalingScheduleArgs(ComponentArgs):
    """Arguments of `ScalingSchedule`."""

    project: str
    location: str
    service: str
    """Name of the service."""
    runtime_account: str
    """E-mail address of the account that the service runs as."""
    account_id: str
    """Id of the schedule's own account: 6 to 30 characters."""
    entries: tuple[Entry, ...]
    service_inputs: str
    """A fingerprint of the service's declaration: with another one the service is updated."""
    deadline_seconds: float = 300.0
    """Time limit for the platform to set the minimum."""


class ScheduledMinimumArgs(ComponentArgs):
    """Arguments of `ScheduledMinimum`."""

    service: str
    """`projects/P/locations/L/services/S`."""
    entries: tuple[tuple[str | int, ...], ...]
    """The schedule, each entry as [cron, time zone, minimum]."""
    service_inputs: str
    """A fingerprint of the service's declaration: with another one the minimum is set again."""
    deadline_seconds: float = 300.0
    """Time limit for the platform to set the minimum."""


class ScheduledMinimum(CheckResource, module="components", name="ScheduledMinimum"):
    """The minimum of the present time, set with each deploy that changes the service or its schedule.

    Attributes:
        minimum: The service's minimum, as last seen.
    """

    minimum: pulumi.Output[int]

    def __init__(self, name: str, args: ScheduledMinimumArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        entries = [list(entry) for entry in args.entries]
        super().__init__(
            ScheduledMinimumProvider(), name, {**args.model_dump(), "entries": entries, "minimum": None}, opts
        )


class ScalingSchedule(pulumi.ComponentResource):
    """Jobs that change the minimum of a service, their account, and the minimum of the present time."""

    def __init__(self, name: str, args: ScalingScheduleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:cloudrun:ScalingSchedule", name, None, opts)
        purpose = f"Scales {args.service} by schedule"
        account, email = declare_account(self, name, opts, args.project, args.account_id, purpose)
        member = f"serviceAccount:{email}"
        # Rights on this one service, and to name its account in an update of it.
        updates = cloudrunv2.ServiceIamMember(
            f"{name}-updates",
            project=args.project,
            location=args.location,
            name=args.service,
            role=SERVICE_DEVELOPER,
            member=member,
            opts=child_options(self, opts, depends_on=[account]),
        )
        names = serviceaccount.IAMMember(
            f"{name}-names",
            service_account_id=f"projects/{args.project}/serviceAccounts/{args.runtime_account}",
            role=ACCOUNT_USER,
            member=member,
            opts=child_options(self, opts, depends_on=[account]),
        )
        service = f"projects/{args.project}/locations/{args.location}/services/{args.service}"
        minimum = ScheduledMinimumArgs(
            service=service,
            entries=args.entries,
            service_inputs=args.service_inputs,
            deadline_seconds=args.deadline_seconds,
        )
        present = ScheduledMinimum(f"{name}-present", minimum, child_options(self, opts))
        for number, entry in enumerate(args.entries):
            body = json.dumps({"scaling": {"minInstanceCount": entry.minimum}})
            cloudscheduler.Job(
                f"{name}-{number}",
                project=args.project,
                region=args.location,
                name=f"{args.service}-scaling-{number}",
                description=f"Sets the minimum of instances of {args.service} to {entry.minimum}",
                schedule=entry.cron,
                time_zone=entry.zone,
                attempt_deadline=_DEADLINE,
                retry_config=cloudscheduler.JobRetryConfigArgs(retry_count=_RETRIES),
                http_target=cloudscheduler.JobHttpTargetArgs(
                    uri=f"{_API}/{service}?updateMask={MASK}",
                    http_method="PATCH",
                    headers={"Content-Type": "application/json"},
                    body=base64.b64encode(body.encode()).decode(),
                    oauth_token=cloudscheduler.JobHttpTargetOauthTokenArgs(service_account_email=email, scope=_SCOPE),
                ),
                opts=child_options(self, opts, depends_on=[updates, names, present]),
            )
        self.register_outputs({})
