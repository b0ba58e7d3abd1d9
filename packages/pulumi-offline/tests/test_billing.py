"""Budgets and notification channels of the stand-in: what differs on the wire from what a program writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from bezel_pulumi_offline.lifecycle.values import decode
from pulumi_offline_support.programs import PROGRAMS, with_change

if TYPE_CHECKING:
    from pulumi_offline_support.client import Provider
    from pulumi_offline_support.google import FakeGoogle

BUDGET, CHANNEL = "gcp:billing/budget:Budget", "gcp:monitoring/notificationChannel:NotificationChannel"
BY_ID = {"budgetFilter": {"projects": ["projects/bezel-local"]}}


def create(gcp: Provider, google: FakeGoogle, kind: str, program: dict[str, Any]) -> tuple[str, dict[str, Any], Any]:
    """Id, state, and the body that was sent."""
    resource_id, made = gcp.create(kind, program)
    return resource_id, made, google.requests_of("POST")[-1].body


def test_labels_are_lists_of_one_and_last_periods_amount_an_empty_object(google: FakeGoogle, gcp: Provider) -> None:
    program = PROGRAMS[BUDGET] | {"amount": {"lastPeriodAmount": True}, "budgetFilter": {"labels": {"team": "llm"}}}
    resource_id, made, sent = create(gcp, google, BUDGET, program)
    assert sent["budgetFilter"]["labels"] == {"team": ["llm"]}
    assert sent["amount"] == {"lastPeriodAmount": {}}
    assert (made["budgetFilter"]["labels"], made["amount"]["lastPeriodAmount"]) == ({"team": "llm"}, True)
    again = gcp.read(BUDGET, resource_id, made, gcp.inputs(BUDGET, program))
    assert not gcp.diff(BUDGET, resource_id, decode(again.properties), program).diffs


def test_a_project_by_its_id_stays_as_planned_until_a_refresh(google: FakeGoogle, gcp: Provider) -> None:
    """The refresh shows its number."""
    program = PROGRAMS[BUDGET] | BY_ID
    resource_id, made = gcp.create(BUDGET, program)
    assert made["budgetFilter"]["projects"] == ["projects/bezel-local"]
    google.things[f"/billingbudgets/v1/{resource_id}"]["budgetFilter"]["projects"] = ["projects/123456789012"]
    again = gcp.read(BUDGET, resource_id, made, gcp.inputs(BUDGET, program))
    actual = decode(again.properties)
    assert actual["budgetFilter"]["projects"] == ["projects/123456789012"]
    assert gcp.diff(BUDGET, resource_id, actual, program).diffs == ["budgetFilter"], "as with the published provider"


def test_a_budget_names_every_value_of_a_changed_block(google: FakeGoogle, gcp: Provider) -> None:
    channel = "projects/bezel-local/notificationChannels/7"
    program = PROGRAMS[BUDGET] | {"allUpdatesRule": {"monitoringNotificationChannels": [channel]}}
    resource_id, made, sent = create(gcp, google, BUDGET, program)
    assert sent["notificationsRule"] == {"schemaVersion": "1.0", "monitoringNotificationChannels": [channel]}
    more = with_change(program, "allUpdatesRule.disableDefaultIamRecipients", True)
    gcp.update(BUDGET, resource_id, made, with_change(more, "displayName", "other"))
    (patch,) = google.requests_of("PATCH")
    assert patch.query["updateMask"].startswith("displayName,notificationsRule.pubsubTopic,")
    assert "amount" not in patch.query["updateMask"]


def test_a_custom_period_is_a_start_and_perhaps_an_end(google: FakeGoogle, gcp: Provider) -> None:
    period = {"startDate": {"year": 2026, "month": 1, "day": 1}}
    _, made, sent = create(gcp, google, BUDGET, PROGRAMS[BUDGET] | {"budgetFilter": {"customPeriod": period}})
    assert sent["budgetFilter"]["customPeriod"] == period
    assert made["budgetFilter"]["customPeriod"]["endDate"] is None


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        ("amount.lastPeriodAmount", True, "last_period_amount"),
        ("budgetFilter.calendarPeriod", "WEEK", "calendar_period"),
        ("budgetFilter.customPeriod", {"startDate": {"year": 2026, "month": 13, "day": 1}}, "month"),
        ("allUpdatesRule", {"schemaVersion": "1.0"}, "monitoring_notification_channels"),
    ],
)
def test_a_budget_that_the_published_provider_refuses_is_refused(
    path: str, value: object, word: str, gcp: Provider
) -> None:
    failures = gcp.check(BUDGET, with_change(PROGRAMS[BUDGET], path, value)).failures
    assert any(word in failure.reason for failure in failures), failures


def test_a_channel_sends_its_labels_and_whether_it_is_enabled_each_time(google: FakeGoogle, gcp: Provider) -> None:
    resource_id, made, sent = create(gcp, google, CHANNEL, {"type": "email"})
    assert sent == {"type": "email", "labels": {}, "enabled": True}
    made = gcp.update(CHANNEL, resource_id, made, {"type": "email", "enabled": False})
    assert google.requests_of("PATCH")[-1].body == {"type": "email", "labels": {}, "enabled": False}
    forced = {"type": "email", "enabled": False, "forceDelete": True}
    made = gcp.update(CHANNEL, resource_id, made, forced)
    assert len(google.requests_of("PATCH")) == 2, (
        "only the deletion policy counts as the provider's own, as with a service"
    )
    assert "force" not in str(google.requests_of("PATCH")[-1])
    gcp.delete(CHANNEL, resource_id, made)
    assert google.requests_of("DELETE")[-1].query["force"] == "true"


def test_a_channels_secrets_are_refused(gcp: Provider) -> None:
    program = {"type": "slack", "sensitiveLabels": {"authToken": "planted"}}
    (failure,) = gcp.check(CHANNEL, program).failures
    assert "sensitiveLabels" in failure.reason
    assert "planted" not in failure.reason
