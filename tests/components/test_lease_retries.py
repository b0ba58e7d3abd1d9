"""Later tries of a lease with hours, sent to localcloud's APIs: they lease what is not there, and touch what is."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from bezel.leases.names import labels
from bezel.leases.requests import ZoneChoice, instance_body, queued_body
from bezel.planner.base.hours import Window
from bezel_components.lease_hours import LeaseHours, LeaseHoursArgs
from bezel_localcloud.core.paths import PROJECT
from localcloud_support.in_process import Project, two_region_project
from tests.support.components.fake_engine import declare

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "bezel-moe"
ZONE, WITHOUT_CAPACITY = "us-east5-a", "europe-west4-a"
SERVICES = {"tpu.googleapis.com": "/tpu", "compute.googleapis.com": ""}
PATIENCE, RUN = 1800.0, 14_400


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    cloud_project = two_region_project(tmp_path)
    yield cloud_project
    cloud_project.close()


class Jobs:
    """The jobs of a lease, run by hand: each sends its request."""

    def __init__(self, project: Project, kind: Any, zone: str) -> None:
        self.project = project
        common: Any = {
            "labels": labels(NAME, "moe"), "metadata": {"startup-script": "#!/bin/bash"}, "service_account": None,
            "run_seconds": RUN,
        }  # fmt: skip
        if kind == "queued_resource":
            body = queued_body(NAME, runtime_version="v2-alpha-tpuv6e", accelerator_type="v6e-4", **common)
        else:
            image = "projects/ubuntu-os-accelerator-images/global/images/family/ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e"
            body = instance_body(machine_type="ct6e-standard-4t", source_image=image, **common)
        region = zone.rpartition("-")[0]
        args = LeaseHoursArgs(
            project=PROJECT, location="us-east5", name=NAME, stack="moe", back_end=kind,
            zone=ZoneChoice(zone, PATIENCE), body=body, account="a@b", request="r", checked="1",
            subnetwork=f"projects/{PROJECT}/regions/{region}/subnetworks/net-{region}",
            windows=(Window("0 8 * * 1-5", "0 18 * * 1-5", "UTC"),),
        )  # fmt: skip
        declared = declare(lambda: LeaseHours("hours", args) and {})
        self.targets = {
            job.inputs["name"].split("-")[-2]: job.inputs["httpTarget"] for job in declared.of("cloudscheduler/job:Job")
        }

    def run(self, verb: str) -> int:
        """The status with which a job's request was answered."""
        target = self.targets[verb]
        parts = urlsplit(target["uri"])
        body = json.loads(base64.b64decode(target["body"])) if "body" in target else None
        path = SERVICES[parts.hostname or ""] + parts.path
        return int(self.project.call(target["httpMethod"], path, body, **dict(parse_qsl(parts.query))).status_code)


def queue(project: Project, zone: str) -> str:
    """State of the queued resource, "" where there is none."""
    path = f"/tpu/v2alpha1/projects/{PROJECT}/locations/{zone}/queuedResources/{NAME}"
    answer = project.call("GET", path)
    return answer.json()["state"]["state"] if answer.is_success else ""


def machines(project: Project, zone: str) -> list[str]:
    answer = project.ok("GET", f"/compute/v1/projects/{PROJECT}/zones/{zone}/instances").get("items", [])
    return [one["status"] for one in answer]


@pytest.mark.slow
def test_a_queued_resource_that_failed_is_requested_anew_by_a_later_try(project: Project) -> None:
    jobs = Jobs(project, "queued_resource", WITHOUT_CAPACITY)
    assert jobs.run("start") == 200
    project.passes(PATIENCE + 900)
    assert queue(project, WITHOUT_CAPACITY) == "FAILED"
    assert jobs.run("again") == 409  # its name is taken
    assert jobs.run("clear") == 200
    project.passes(600)
    assert queue(project, WITHOUT_CAPACITY) == ""
    assert jobs.run("again") == 200
    project.passes(60)
    assert queue(project, WITHOUT_CAPACITY) == "WAITING_FOR_RESOURCES"


@pytest.mark.slow
def test_a_lease_that_is_there_stays_and_is_the_only_one(project: Project) -> None:
    jobs = Jobs(project, "queued_resource", ZONE)
    assert jobs.run("start") == 200
    project.passes(900)
    assert queue(project, ZONE) == "ACTIVE"
    assert (jobs.run("clear"), jobs.run("again")) == (400, 409)
    assert queue(project, ZONE) == "ACTIVE"
    project.passes(RUN + 900)  # and one whose time is over is leased anew
    assert queue(project, ZONE) == "SUSPENDED"
    assert jobs.run("clear") == 200
    project.passes(600)
    assert jobs.run("again") == 200
    assert jobs.run("end") in (200, 400)


@pytest.mark.slow
def test_a_start_that_was_refused_is_sent_again_by_a_later_try(project: Project) -> None:
    jobs = Jobs(project, "queued_resource", ZONE)
    assert jobs.run("clear") == 404
    assert jobs.run("again") == 200


@pytest.mark.slow
def test_a_machine_without_capacity_is_requested_again(project: Project) -> None:
    """A machine without capacity is requested again and one that runs is not."""
    jobs = Jobs(project, "flex_start_vm", WITHOUT_CAPACITY)
    assert set(jobs.targets) == {"start", "end", "again"}
    assert jobs.run("start") == 200
    project.passes(PATIENCE + 900)
    assert machines(project, WITHOUT_CAPACITY) == []
    assert jobs.run("again") == 200
    jobs = Jobs(project, "flex_start_vm", ZONE)
    assert jobs.run("start") == 200
    project.passes(900)
    assert machines(project, ZONE) == ["RUNNING"]
    assert jobs.run("again") == 409
    assert machines(project, ZONE) == ["RUNNING"]
