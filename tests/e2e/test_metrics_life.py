"""Figures over time under the real engine: a collector beside the server, an objective, and both gone again."""

from typing import Any

import pytest

from bezel.planner.team.series_labels import series_matchers
from localcloud_support.client import until
from tests.support.e2e.rehearsal import BOTH_PACKS, Rehearsal

STACK, LEASE = "l4-qat", "v6e1-12b"
POLICIES = "/monitoring/v3/projects/bezel-local/alertPolicies"
SERIES = "/monitoring/v1/projects/bezel-local/location/global/prometheus/api/v1/query"
SERVICE = "/run/v2/projects/bezel-local/locations/us-east4/services/bezel-l4-qat"


def read(rehearsal: Rehearsal) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The service, and the alert policies."""
    with rehearsal.api() as api:
        return api.get(SERVICE).json(), api.get(POLICIES).json().get("alertPolicies", [])


def query(rehearsal: Rehearsal, text: str) -> list[dict[str, Any]]:
    """The result of a query in PromQL."""
    with rehearsal.api() as api:
        return list(api.get(SERIES, params={"query": text}).json()["data"]["result"])


def written_series(rehearsal: Rehearsal, text: str) -> list[dict[str, Any]]:
    """The result of a query for generated tokens, once those of the checks are in it: a scrape may come amid them."""

    def is_whole(result: list[dict[str, Any]]) -> bool:
        return sum(float(each["value"][1]) for each in result) >= 8

    series: list[dict[str, Any]] = until(lambda: result if is_whole(result := query(rehearsal, text)) else [], 60)
    return series


@pytest.mark.wide
def test_figures_are_kept_watched_and_left_again(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 2, "concurrency": 2, "output_tokens": 4, "prompt_tokens": 32})
    rehearsal.set("cost", {"max_hourly_usd": 2})
    rehearsal.set("observability", {"alerts": True, "dashboard": True, "metrics": True})
    first = rehearsal.local("up", STACK, "--", *BOTH_PACKS)
    assert first.code == 0, first.text
    service, policies = read(rehearsal)
    assert [each["name"] for each in service["template"]["containers"]] == ["vllm", "collector"]
    assert not [each for each in policies if "conditionMatchedLog" in each["conditions"][0]]
    assert [each for each in policies if "full KV cache" in each["displayName"]]
    assert len(rehearsal.exists()["secrets"]) == 1
    written = 'sum(max_over_time(vllm:generation_tokens_total{cluster="__run__",namespace="bezel-l4-qat"}[1w]))'
    assert len(written_series(rehearsal, written)) == 1

    rehearsal.set("observability.max_ttft_seconds", 2)
    second = rehearsal.local("up", STACK)
    assert second.code == 0, second.text
    assert service["latestReadyRevision"] == read(rehearsal)[0]["latestReadyRevision"]
    assert len(read(rehearsal)[1]) == len(policies) + 1
    third = rehearsal.local("up", STACK, "--", "--expect-no-changes")
    assert third.code == 0, third.text

    rehearsal.set("observability", {"alerts": True})
    fourth = rehearsal.local("up", STACK)
    assert fourth.code == 0, fourth.text
    service, policies = read(rehearsal)
    assert [each["name"] for each in service["template"]["containers"]] == ["vllm"]
    assert [each for each in policies if "conditionMatchedLog" in each["conditions"][0]]
    assert "secrets" not in rehearsal.exists()
    gone = rehearsal.local("down", STACK)
    assert gone.code == 0, gone.text
    rehearsal.start_cloud()
    assert not {"secrets", "services", "alertPolicies", "dashboards"} & set(rehearsal.exists())


@pytest.mark.wide
def test_each_gated_revision_writes_figures_before_it_gets_traffic(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 2, "concurrency": 2, "output_tokens": 4, "prompt_tokens": 32})
    rehearsal.set("cost", {"max_hourly_usd": 2})
    rehearsal.set("rollout", "gated")
    first = rehearsal.local("up", STACK)
    assert first.code == 0, first.text
    rehearsal.set("observability", {"metrics": True})
    second = rehearsal.local("up", STACK, "--", *BOTH_PACKS)
    assert second.code == 0, second.text
    service, _ = read(rehearsal)
    assert [each["name"] for each in service["template"]["containers"]] == ["vllm", "collector"]
    (serving,) = [each for each in service["traffic"] if each.get("percent")]
    assert (serving["percent"], serving["revision"][-9:-4]) == (100, "00002")
    # The checks asked it while the revision before it, which has no collector, had the traffic.
    written = "sum by (revision_name) (max_over_time(vllm:generation_tokens_total[1w]))"
    (series,) = written_series(rehearsal, written)
    assert series["metric"] == {"revision_name": serving["revision"]}
    third = rehearsal.local("up", STACK, "--", "--expect-no-changes")
    assert third.code == 0, third.text


@pytest.mark.wide
def test_a_leased_machine_writes_its_figures_and_its_alerts_read_them(rehearsal: Rehearsal) -> None:
    rehearsal.set("smoke", {"requests": 2, "concurrency": 2, "output_tokens": 4, "prompt_tokens": 32}, LEASE)
    rehearsal.set("observability", {"alerts": True, "metrics": True}, LEASE)
    first = rehearsal.local("up", LEASE, "--", *BOTH_PACKS)
    assert first.code == 0, first.text
    matchers = series_matchers(f"bezel-{LEASE}", leased=True)
    written = f"sum by (instance) (max_over_time(vllm:generation_tokens_total{{{matchers}}}[1w]))"
    (series,) = written_series(rehearsal, written)
    assert series["metric"] == {"instance": f"bezel-{LEASE}:8000"}
    second = rehearsal.local("up", LEASE, "--", "--expect-no-changes")
    assert second.code == 0, second.text
    gone = rehearsal.local("down", LEASE)
    assert gone.code == 0, gone.text
