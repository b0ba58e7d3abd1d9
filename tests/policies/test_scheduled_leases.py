"""A job that requests machines buys hardware as a resource does: judged by every policy, and its month by its times."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from tests.support.policies.harness import LEASE, UNKNOWN, queue, request, stack_violations, violations

JOB = "gcp:cloudscheduler/job:Job"
TPU = "https://tpu.googleapis.com/v2alpha1/projects/p/locations/us-east5-b/queuedResources?queuedResourceId=l"
COMPUTE = "https://compute.googleapis.com/compute/v1/projects/p/zones/us-east5-b/instances"
WEEKDAYS = [["0 8 * * 1-5", "0 11 * * 1-5", "Europe/Berlin"]]


def job(body: Any, *, uri: object = TPU, method: str = "POST", schedule: str = "0 8 * * 1-5") -> dict[str, Any]:
    encoded = body if body is UNKNOWN else base64.b64encode(json.dumps(body).encode()).decode()
    token = {"serviceAccountEmail": "hours@p.iam.gserviceaccount.com"}
    target = {"uri": uri, "httpMethod": method, "body": encoded, "oauthToken": token}
    return {"schedule": schedule, "timeZone": "Europe/Berlin", "httpTarget": target}


def machine() -> dict[str, Any]:
    body: dict[str, Any] = request("flex_start_vm")["body"]
    return body


HOLDERS = {"queue": job(queue()), "machine": job(machine(), uri=COMPUTE)}


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_a_job_requests_is_judged_as_a_lease(holder: str) -> None:
    inputs = HOLDERS[holder]
    assert violations("hourly-ceiling", JOB, inputs, {"limits": {"dev": 5.40}}) == []
    assert violations("hourly-ceiling", JOB, inputs, {"limits": {"dev": 5.39}})
    assert violations("lease-ceiling", JOB, inputs, {"limits": {"dev": 21.60}}) == []
    assert violations("lease-ceiling", JOB, inputs, {"limits": {"dev": 21.59}})
    assert violations("allowed-accelerators", JOB, inputs, {"limits": {"dev": ["v6e-1"]}})
    assert violations("own-service-account", JOB, inputs) == []


def test_a_node_that_a_job_creates_without_a_queue_is_refused() -> None:
    """A node that a job creates without a queue has no end and is refused."""
    node = queue()["tpu"]["nodeSpec"][0]["node"]
    inputs = job(node, uri="https://tpu.googleapis.com/v2/projects/p/locations/us-east5-b/nodes?nodeId=n")
    (message,) = violations("run-duration", JOB, inputs)
    assert "This one would never end" in message
    (message,) = violations("allowed-accelerators", JOB, inputs, {"limits": {"dev": ["v6e-1"]}})
    assert "v6e-4" in message
    (message,) = violations("monthly-ceiling", JOB, inputs, {"limits": {"dev": 100}})
    assert "USD a month" in message


@pytest.mark.slow
def test_its_month_is_each_of_its_times_until_the_lease_ends() -> None:
    # Twenty times four hours in four weeks, at 5.40 USD an hour.
    usd = 20 * 4 * 730 / 672 * 5.40
    assert violations("monthly-ceiling", JOB, job(queue()), {"limits": {"dev": usd + 0.01}}) == []
    (message,) = violations("monthly-ceiling", JOB, job(queue()), {"limits": {"dev": usd - 0.01}})
    assert f"{usd:.3f}"[:-1] in message
    hourly = job(queue(), schedule="0 * * * *")
    (message,) = violations("monthly-ceiling", JOB, hourly, {"limits": {"dev": 3941}})
    assert "3942.0000 USD a month" in message  # never more than all hours


@pytest.mark.parametrize(
    ("body", "text"),
    [(UNKNOWN, "not known before the deploy"), ("text", "expected an object"), ({"tpu": {}}, "(not set)")],
)
def test_a_request_that_cannot_be_read_is_refused(body: Any, text: str) -> None:
    (message,) = violations("hourly-ceiling", JOB, job(body))
    assert text in message


def test_a_machine_that_a_job_requests_is_as_safe_as_any_other() -> None:
    node = "tpu.nodeSpec.0.node"
    shared = job(queue({f"{node}.serviceAccount": None}))
    (message,) = violations("own-service-account", JOB, shared)
    assert "httpTarget.body.tpu.nodeSpec.0.node.serviceAccount.email" in message
    (message,) = violations("no-external-address", JOB, job(queue({f"{node}.networkConfig.enableExternalIps": True})))
    assert "enableExternalIps" in message
    assert violations("labels", JOB, job(queue({f"{node}.labels": {}})))


def test_the_jobs_and_the_request_of_one_lease_count_once() -> None:
    """The jobs and the request of one lease count once and its month by its hours."""
    with_hours = request("queued_resource") | {"hours": WEEKDAYS}
    body = queue({"tpu.nodeSpec.0.node.labels.bezel-lease": "l"})
    resources = [(LEASE, with_hours), (JOB, job(body))]
    assert stack_violations("stack-hourly-ceiling", resources, {"limits": {"dev": 5.40}}) == []
    usd = 15 / 168 * 730 * 5.40
    assert stack_violations("stack-monthly-ceiling", resources, {"limits": {"dev": usd + 0.01}}) == []
    (message,) = stack_violations("stack-monthly-ceiling", resources, {"limits": {"dev": usd - 0.01}})
    assert f"{usd:.3f}"[:-1] in message


def test_a_lease_without_hours_costs_a_month_what_it_costs_until_its_end() -> None:
    assert violations("monthly-ceiling", LEASE, request("queued_resource"), {"limits": {"dev": 21.60}}) == []
    with_hours = request("queued_resource") | {"hours": WEEKDAYS}
    assert violations("monthly-ceiling", LEASE, with_hours, {"limits": {"dev": 21.60}})
