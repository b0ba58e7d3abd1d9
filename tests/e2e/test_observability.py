"""What watches a service under the real engine: made, unchanged, changed in place, and gone."""

import json
from typing import Any

import pytest

from bezel_localcloud.core.paths import BILLING_ACCOUNT
from localcloud_support.client import until
from tests.support.e2e.rehearsal import Rehearsal

KINDS = ("alertPolicies", "dashboards", "notificationChannels", "uptimeCheckConfigs", "budgets")
LEASE = "v6e1-12b"
ENTRIES = {"resourceNames": ["projects/bezel-local"]}
POLICIES = "/monitoring/v3/projects/bezel-local/alertPolicies"


@pytest.mark.wide
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
    rehearsal.start_cloud()
    assert not {*KINDS, "services"} & set(rehearsal.exists())


@pytest.mark.wide
def test_a_lease_has_an_alert_before_its_end_that_matches_its_notice(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 2, "concurrency": 2, "output_tokens": 4, "prompt_tokens": 32}, LEASE)
    account = BILLING_ACCOUNT.removeprefix("billingAccounts/")
    watched = {"alerts": True, "dashboard": True, "email": "team@example.com"}
    rehearsal.set("observability", {**watched, "budget": 300, "billing_account": account}, LEASE)
    first = rehearsal.local("up", LEASE)
    assert first.code == 0, first.text
    made = rehearsal.exists()
    assert [len(made.get(kind, ())) for kind in KINDS] == [2, 1, 1, 0, 1]
    end = policy(rehearsal, "is about to end")
    assert end["alertStrategy"]["notificationRateLimit"] == {"period": "3600s"}
    matched = {**ENTRIES, "filter": end["conditions"][0]["conditionMatchedLog"]["filter"]}
    assert entries(rehearsal, matched) == []

    # Its first boot was as long ago as the lease takes: the machine has the disk of a later one.
    (booted,) = rehearsal.cloud.glob("nodes/*/root/var/lib/bezel/first-boot")
    booted.write_text(f"{int(booted.read_text()) - 4 * 3600}\n")
    (entry,) = until(lambda: entries(rehearsal, matched), 60)
    assert entry["severity"] == "WARNING"
    assert entry["labels"] == {"stack": LEASE, "lease": f"bezel-{LEASE}"}

    second = rehearsal.local("up", LEASE, "--", "--expect-no-changes")
    assert second.code == 0, second.text
    rehearsal.set("observability.max_error_share", 0.2, LEASE)
    third = rehearsal.local("up", LEASE)
    assert third.code == 0, third.text
    errors = policy(rehearsal, "of requests fail")
    assert errors["conditions"][0]["conditionThreshold"]["thresholdValue"] == 0.2
    assert (rehearsal.exists()["queuedResources"], entries(rehearsal, matched)) == (made["queuedResources"], [entry])

    gone = rehearsal.local("down", LEASE)
    assert gone.code == 0, gone.text
    rehearsal.start_cloud()
    assert not {*KINDS, "queuedResources", "nodes", "services"} & set(rehearsal.exists())
    with rehearsal.api() as api:
        policies = api.post("/crm/v1/projects/bezel-local:getIamPolicy", json={}).json()
    assert f"bezel-{LEASE}@" not in json.dumps(policies)


def policy(rehearsal: Rehearsal, phrase: str) -> dict[str, Any]:
    """The one alert policy with some words in its name."""
    with rehearsal.api() as api:
        policies = api.get(POLICIES).json()["alertPolicies"]
    (match,) = [each for each in policies if phrase in each["displayName"]]
    return dict(match)


def entries(rehearsal: Rehearsal, query: dict[str, Any]) -> list[dict[str, Any]]:
    """Entries of Cloud Logging."""
    with rehearsal.api() as api:
        return list(api.post("/logging/v2/entries:list", json=query).json().get("entries", []))
