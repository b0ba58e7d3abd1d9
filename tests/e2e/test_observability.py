"""What watches a service under the real engine: made, unchanged, changed in place, and gone."""

from bezel.localcloud.core.paths import BILLING_ACCOUNT
from tests.support.e2e.rehearsal import Rehearsal

KINDS = ("alertPolicies", "dashboards", "notificationChannels", "uptimeCheckConfigs", "budgets")
POLICIES = "/monitoring/v3/projects/bezel-local/alertPolicies"


def test_alerts_and_a_dashboard_are_made_changed_and_destroyed(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 4, "output_tokens": 8, "prompt_tokens": 32})
    rehearsal.set("scaling", {"min_instances": 1})
    rehearsal.set("cost", {"max_hourly_usd": 2, "max_idle_hourly_usd": 2})
    watched = {"alerts": True, "dashboard": True, "email": "team@example.com", "max_cold_starts": 20}
    account = BILLING_ACCOUNT.removeprefix("billingAccounts/")
    rehearsal.set("observability", {**watched, "uptime": True, "budget": 300, "billing_account": account})
    first = rehearsal.local("up", "l4-qat")
    assert first.code == 0, first.text
    made = rehearsal.exists()
    assert {kind: len(made[kind]) for kind in KINDS} == {
        "alertPolicies": 6,
        "dashboards": 1,
        "notificationChannels": 1,
        "uptimeCheckConfigs": 1,
        "budgets": 1,
    }

    second = rehearsal.local("up", "l4-qat", "--", "--expect-no-changes")
    assert second.code == 0, second.text

    rehearsal.set("observability.max_error_share", 0.2)
    rehearsal.set("observability.budget", 400)
    third = rehearsal.local("up", "l4-qat")
    assert third.code == 0, third.text
    with rehearsal.api() as api:
        policies = api.get(POLICIES).json()["alertPolicies"]
    (errors,) = [policy for policy in policies if "of requests fail" in policy["displayName"]]
    assert errors["conditions"][0]["conditionThreshold"]["thresholdValue"] == 0.2
    (full,) = [policy for policy in policies if "full KV cache" in policy["displayName"]]
    assert "KV cache usage" in full["conditions"][0]["conditionMatchedLog"]["filter"]
    assert full["alertStrategy"]["notificationRateLimit"] == {"period": "3600s"}
    assert {policy["name"] for policy in policies} == set(made["alertPolicies"])
    with rehearsal.api() as api:
        (budget,) = api.get(f"/billingbudgets/v1/{BILLING_ACCOUNT}/budgets").json()["budgets"]
    assert budget["amount"]["specifiedAmount"]["units"] == "400"

    gone = rehearsal.local("down", "l4-qat")
    assert gone.code == 0, gone.text
    assert rehearsal.local("start").code == 0
    assert not {*KINDS, "services"} & set(rehearsal.exists())
