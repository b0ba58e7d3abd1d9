"""Alerts and a dashboard under the real engine: made, unchanged, changed in place, and gone."""

from tests.support.e2e.rehearsal import Rehearsal

POLICIES = "/monitoring/v3/projects/bezel-local/alertPolicies"


def test_alerts_and_a_dashboard_are_made_changed_and_destroyed(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32})
    rehearsal.set(
        "observability", {"alerts": True, "dashboard": True, "email": "team@example.com", "max_cold_starts": 20}
    )
    first = rehearsal.local("up", "l4-qat")
    assert first.code == 0, first.text
    made = rehearsal.exists()
    assert {kind: len(made[kind]) for kind in ("alertPolicies", "dashboards", "notificationChannels")} == {
        "alertPolicies": 3,
        "dashboards": 1,
        "notificationChannels": 1,
    }

    second = rehearsal.local("up", "l4-qat", "--", "--expect-no-changes")
    assert second.code == 0, second.text

    rehearsal.set("observability.max_error_share", 0.2)
    third = rehearsal.local("up", "l4-qat")
    assert third.code == 0, third.text
    with rehearsal.api() as api:
        policies = api.get(POLICIES).json()["alertPolicies"]
    (errors,) = [policy for policy in policies if "fail" in policy["displayName"]]
    assert errors["conditions"][0]["conditionThreshold"]["thresholdValue"] == 0.2
    assert {policy["name"] for policy in policies} == set(made["alertPolicies"])

    gone = rehearsal.local("down", "l4-qat")
    assert gone.code == 0, gone.text
    assert rehearsal.local("start").code == 0
    assert not {"alertPolicies", "dashboards", "notificationChannels", "services"} & set(rehearsal.exists())
