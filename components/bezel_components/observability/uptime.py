"""Uptime check of a service, or of the address in front of it, with an identity where the service asks for one.

Google's checkers call as the project's Monitoring service agent, which Google creates with the first such check; it
gets the right to call this one service. Each check is a request: a service without an instance would start one.

A check of an address fails until its certificate is issued, and shows what callers get; it does not show a dead region,
which the balancer leaves out. So each service behind it has a check of its own, which brings the right, too.
"""

from urllib.parse import urlsplit

import pulumi
from pulumi_gcp import cloudrunv2, monitoring

from bezel_catalog.metrics import metrics
from bezel_components.base.arguments import ComponentArgs, Text, child_options
from bezel_components.base.granted_roles import INVOKER

CHECK_PASSED = "monitoring.googleapis.com/uptime_check/check_passed"
PERIOD_SECONDS = 300
_TIMEOUT = "30s"


class UptimeCheckArgs(ComponentArgs):
    """Arguments of `UptimeCheck`."""

    project: str
    number: str
    """Number of the project."""
    service: str
    location: str
    url: Text
    """Address of the service."""
    path: str
    """Path that answers 200 while the server is healthy."""
    public: bool = False
    """Whether anybody may call the service: then no identity is sent."""
    domain: str = ""
    """Domain of the address in front of the service, to check that in place of `url`; "" for the service itself."""


class UptimeCheck(pulumi.ComponentResource):
    """Requests every five minutes from Google's checkers of several regions.

    Attributes:
        filter: Filter of the time series of its results.
    """

    def __init__(self, name: str, args: UptimeCheckArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("bezel:observability:UptimeCheck", name, None, opts)
        host = args.domain or pulumi.Output.from_input(args.url).apply(lambda url: urlsplit(url).hostname or "")
        identity = monitoring.UptimeCheckConfigHttpCheckServiceAgentAuthenticationArgs(type="OIDC_TOKEN")
        check = monitoring.UptimeCheckConfig(
            f"{name}-check",
            project=args.project,
            display_name=f"{args.domain or f'{args.service} ({args.location})'} answers",
            period=f"{PERIOD_SECONDS}s",
            timeout=_TIMEOUT,
            http_check=monitoring.UptimeCheckConfigHttpCheckArgs(
                path=args.path,
                port=443,
                use_ssl=True,
                validate_ssl=True,
                service_agent_authentication=None if args.public else identity,
            ),
            monitored_resource=monitoring.UptimeCheckConfigMonitoredResourceArgs(
                type=metrics()[CHECK_PASSED].resource, labels={"project_id": args.project, "host": host}
            ),
            opts=child_options(self, opts),
        )
        if not args.public and not args.domain:
            cloudrunv2.ServiceIamMember(
                f"{name}-invoker",
                project=args.project,
                location=args.location,
                name=args.service,
                role=INVOKER,
                member=f"serviceAccount:service-{args.number}@gcp-sa-monitoring-notification.iam.gserviceaccount.com",
                opts=child_options(self, opts, depends_on=[check]),
            )
        self.filter = check.uptime_check_id.apply(results_of)
        self.register_outputs({})


def results_of(check_id: str) -> str:
    """Filter of the time series of a check's results."""
    metric = metrics()[CHECK_PASSED]
    return f'metric.type="{metric.name}" AND resource.type="{metric.resource}" AND metric.labels.check_id="{check_id}"'
