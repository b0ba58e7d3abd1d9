"""Use of a Cloud Run service from Cloud Monitoring: without an answer it is unknown, and the reason is said."""

from decimal import Decimal
from typing import Any

import pytest

from bezel.leases.clock import rfc3339
from bezel.operations.deployment.deployment import DeployedService
from bezel.operations.service_use.service_metrics import SampledInstances, billed_time, running_instances
from bezel.operations.service_use.service_use import service_use
from bezel.operations.status.status import StatusArguments, status
from tests.support.operations.deployed import (
    NOW,
    SERVICE,
    Deployed,
    live_service,
    service_inputs,
    service_resource,
    state_of,
)
from tests.support.rest.fake_google import Answer, Call

DISABLED = (
    "Cloud Monitoring API has not been used in project acme before or it is disabled. Enable it by visiting "
    "https://console.developers.google.com/apis/api/monitoring.googleapis.com/overview?project=acme then retry."
)
CREATED = NOW - 3600


def service(**inputs: Any) -> DeployedService:
    return DeployedService(SERVICE, {**service_inputs(), **inputs})


class Monitoring:
    """Cloud Monitoring, which answers with these series or this refusal, and keeps the calls."""

    def __init__(self, cloud: Deployed) -> None:
        self.series: dict[str, list[dict[str, Any]]] = {}
        self.refusal: Answer | None = None
        self.calls: list[Call] = []
        cloud.server.routes.insert(0, self.answer)

    def answer(self, call: Call) -> Answer | None:
        if not call.path.endswith("/timeSeries"):
            return None
        self.calls.append(call)
        metric = call.query["filter"].split('"')[1].rpartition("/")[2]
        series = self.series.get(metric)
        return self.refusal or Answer(json={"timeSeries": series} if series else {})

    def count(self, state: str, *points: tuple[int, int], revision: str = "llm-2") -> None:
        """Add a series of the number of instances: (seconds ago, number), newest first."""
        self.series.setdefault("instance_count", []).append(
            {
                "metric": {"labels": {"state": state}},
                "resource": {"labels": {"revision_name": revision}},
                "points": [
                    {"interval": {"endTime": at(ago)}, "value": {"int64Value": str(number)}} for ago, number in points
                ],
            }
        )

    def bill(self, seconds: float) -> None:
        points = [{"interval": {"endTime": at(0)}, "value": {"doubleValue": seconds}}]
        self.series.setdefault("billable_instance_time", []).append({"points": points})


def at(ago: float) -> str:
    return str(rfc3339(NOW - ago))


@pytest.fixture
def monitoring(cloud: Deployed) -> Monitoring:
    return Monitoring(cloud)


def test_instances_are_those_of_the_newest_sample_of_all_revisions(cloud: Deployed, monitoring: Monitoring) -> None:
    monitoring.count("active", (60, 2), (120, 9))
    monitoring.count("idle", (60, 1), (120, 9))
    monitoring.count("active", (60, 1), revision="llm-1")
    instances = running_instances(cloud.context, service())
    assert instances == SampledInstances(3, 1, NOW - 60)
    assert (instances.count, instances.is_running) == (4, True)
    asked = monitoring.calls[0].query["filter"]
    for term in ('project_id = "acme"', 'location = "us-east4"', 'service_name = "llm"', '"cloud_run_revision"'):
        assert term in asked


def test_a_sample_with_one_readable_state_counts_no_instance_twice(cloud: Deployed, monitoring: Monitoring) -> None:
    monitoring.count("active", (120, 1), (180, 0))
    monitoring.count("idle", (60, 1), (120, 0), (180, 1))
    assert running_instances(cloud.context, service()) == SampledInstances(1, 0, NOW - 120)


def test_a_revision_that_ended_counts_no_more(cloud: Deployed, monitoring: Monitoring) -> None:
    monitoring.count("active", (10, 1))
    monitoring.count("active", (300, 4), revision="llm-1")
    assert running_instances(cloud.context, service()).count == 1


def test_zero_is_an_answer_and_no_sample_is_none(cloud: Deployed, monitoring: Monitoring) -> None:
    unknown = running_instances(cloud.context, service())
    assert (unknown.count, unknown.is_running, unknown.sampled_at) == (None, False, None)
    assert "no sample" in unknown.unknown_because
    monitoring.count("idle", (60, 0))
    zero = running_instances(cloud.context, service())
    assert (zero.count, zero.is_running, zero.unknown_because) == (0, False, "")


def test_a_disabled_api_is_said_in_google_s_words(cloud: Deployed, monitoring: Monitoring) -> None:
    error = {"error": {"code": 403, "message": DISABLED, "status": "PERMISSION_DENIED"}}
    monitoring.refusal = Answer(403, json=error)
    because = running_instances(cloud.context, service()).unknown_because
    command = "`gcloud services enable monitoring.googleapis.com --project=acme`"
    assert because.endswith(
        f"Cloud Monitoring API has not been used in project acme before or it is disabled: {command}"
    )
    billed = billed_time(cloud.context, service(), CREATED)
    assert (billed.seconds, billed.unknown_because) == (None, because)


def test_the_cost_so_far_is_the_billed_time_at_the_price_of_an_instance(
    cloud: Deployed, monitoring: Monitoring
) -> None:
    monitoring.bill(1800)
    monitoring.bill(1800)
    _, cost = service_use(cloud.context, service(), CREATED)
    # An instance costs 1.04652 USD an hour, however many the service may have.
    assert (cost.usd, cost.instance_seconds, cost.is_partial) == (Decimal("1.04652"), 3600, False)
    _, same = service_use(cloud.context, service(scaling={"maxInstanceCount": 7}), CREATED)
    assert same.usd == cost.usd
    query = next(call.query for call in monitoring.calls if "billable" in call.query["filter"])
    assert (query["aggregation.perSeriesAligner"], query["aggregation.alignmentPeriod"]) == ("ALIGN_SUM", "3600s")
    assert query["interval.startTime"] == at(3600)


def test_a_service_older_than_six_weeks_has_the_cost_of_six_weeks(cloud: Deployed, monitoring: Monitoring) -> None:
    monitoring.bill(3600)
    _, cost = service_use(cloud.context, service(), NOW - 90 * 86_400)
    assert (cost.is_partial, cost.since.isoformat()) == (True, "2026-08-10T14:13:20+00:00")


@pytest.mark.parametrize(
    ("seconds", "inputs", "because"),
    [
        (None, {}, "no billable time of it yet"),
        (60.0, {"location": "mars-north1"}, "no price of an instance"),
        (60.0, {"scaling": {}, "template": {"nodeSelector": {"accelerator": "nvidia-l4"}}}, "no price of an instance"),
    ],
)
def test_a_cost_that_cannot_be_known_is_unknown_with_its_reason(
    cloud: Deployed, monitoring: Monitoring, seconds: float | None, inputs: Any, because: str
) -> None:
    if seconds is not None:
        monitoring.bill(seconds)
    _, cost = service_use(cloud.context, service(**inputs), CREATED)
    assert cost.usd is None
    assert because in str(cost.unknown_because)


def test_status_shows_instances_with_their_age_and_the_cost_so_far(cloud: Deployed, monitoring: Monitoring) -> None:
    cloud.keep("dev", state_of(service_resource()))
    cloud.live[SERVICE] = live_service()
    unknown = status(cloud.context, StatusArguments(stack="dev"))
    assert (unknown.stacks[0].usd_so_far, unknown.exit_code) == (None, 0)
    assert unknown.text().count("unknown (Cloud Monitoring has no") == 2
    monitoring.count("idle", (75, 1))
    monitoring.bill(3600)
    report = status(cloud.context, StatusArguments(stack="dev"))
    (stack,) = report.stacks
    assert stack.instances is not None
    assert (stack.instances.count, stack.instances.age_seconds, stack.usd_so_far) == (1, 75, Decimal("1.04652"))
    assert "1 (0 active, 1 idle), sampled 75 s ago" in report.text()
    assert "1.0465 USD since 2026-09-21 13:13 UTC" in report.text()
