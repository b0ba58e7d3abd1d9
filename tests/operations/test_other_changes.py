"""Changes besides the one that was asked for are named; those that follow from it are not."""

from typing import Any

import pytest

from bezel.operations.changes.plan import PlannedChange
from bezel.operations.stack_edits.other_changes import other_changes

SERVICE = "gcp:cloudrunv2/service:Service"


def change(*properties: str, op: Any = "update", type_: str = SERVICE) -> PlannedChange:
    return PlannedChange(op=op, name="one", type=type_, properties=properties)


@pytest.mark.parametrize(
    "changed",
    [
        change("scaling.minInstanceCount"),
        change("scaling"),
        change("scaling.minInstanceCount", 'template.annotations["bezel-restarted-at"]', "template.labels"),
        change(
            "scaling.minInstanceCount",
            'annotations["bezel-rollback"]',
            'effectiveAnnotations["bezel-rollback"]',
            "traffics[0].revision",
        ),
        change(op="create", type_="pulumi-python:dynamic/components:TrafficSwitch"),
        change(op="replace", type_="pulumi-python:dynamic/smoke:HealthCheck"),
        change("revision", type_="pulumi-python:dynamic/components:TrafficSwitch"),
    ],
)
def test_what_was_asked_for_and_what_follows_is_no_other_change(changed: PlannedChange) -> None:
    assert other_changes([changed], "scaling") == ()


@pytest.mark.parametrize(
    "changed",
    [
        change("scalings.minInstanceCount"),
        change("scaling.minInstanceCount", "template.containers[0].image"),
        change("scaling.minInstanceCount", "traffics[0].revision"),
        change("scaling.minInstanceCount", 'annotations["other"]'),
        change("template.containers[0].image", 'annotations["bezel-rollback"]'),
        change("scaling.minInstanceCount", op="replace"),
        change(op="create"),
        change(op="delete", type_="gcp:storage/bucket:Bucket"),
    ],
)
def test_any_other_is_named(changed: PlannedChange) -> None:
    assert "it changes one otherwise too" in other_changes([changed], "scaling")[0]
