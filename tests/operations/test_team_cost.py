"""Each team's share of a stack's bill: what Monitoring counted, what the door counted, and what neither says."""

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest

from bezel.operations.keys.team_cost import TeamCost, team_cost
from bezel.operations.metrics.metrics import MetricsArguments, metrics
from bezel.planner.base.money import Priced, Unpriced
from bezel.planner.cost.token_cost import TokenCost
from bezel_door.key_file import Key, write_keys
from bezel_door.usage_file import KeyUsage
from tests.operations.test_service_metrics import Monitoring
from tests.support.operations.deployed import service_resource, state_of
from tests.support.operations.door_cloud import DoorCloud, door_cloud
from tests.support.rest.fake_google import Answer

pytestmark = pytest.mark.slow  # a cloud behind a socket each
MONTH = 1_788_220_800.0  # 2026-09-01T00:00:00Z, of which the tests' present is the 21st
CHEAP, DEAR = Priced(Decimal("0.1")), Priced(Decimal("0.5"))
TOKENS = TokenCost(input=(CHEAP, DEAR), output=(DEAR, DEAR), load="8 users", utilisation=0.5)


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[DoorCloud]:
    with door_cloud(tmp_path) as deployed:
        keys = {"aaaaaaaa": "search", "bbbbbbbb": "billing"}
        made = deployed.time()
        deployed.put("keys.json", write_keys({each: Key("0" * 64, team, made) for each, team in keys.items()}))
        counts = KeyUsage(requests=30, prompt_tokens=1000, completion_tokens=100)
        deployed.use("2026-09-20", aaaaaaaa=counts, bbbbbbbb=KeyUsage(requests=10, prompt_tokens=500))
        yield deployed


@pytest.fixture
def monitoring(cloud: DoorCloud) -> Monitoring:
    counted = Monitoring(cloud.deployed)
    counted.bill(36_000)
    counted.count("active", (0, 25))
    counted.count("idle", (0, 75))
    points = [{"interval": {"endTime": "2026-09-21T00:00:00Z"}, "value": {"int64Value": "50"}}]
    counted.series["request_count"] = [{"metric": {"labels": {"response_code": "200"}}, "points": points}]
    return counted


def cost_of(cloud: DoorCloud, tokens: TokenCost = TOKENS) -> TeamCost:
    with cloud.context() as context:
        shares = team_cost(context, context.deployment("dev"), MONTH, tokens)
    assert shares is not None
    return shares


def test_shares_are_of_what_was_paid_idle_and_asked_by_others(cloud: DoorCloud, monitoring: Monitoring) -> None:
    shares = cost_of(cloud)
    assert shares.usd is not None
    assert {part.name: part.percent for part in shares.parts} == {
        "search": Decimal("15.0"),
        "billing": Decimal("5.0"),
        "other callers": Decimal("5.0"),
        "idle": Decimal("75.0"),
    }
    assert sum(part.usd or 0 for part in shares.parts) == round(shares.usd, 2)
    assert shares.notes == ()
    assert "one out as 5.0 in" in shares.basis
    aligners = [call.query.get("aggregation.perSeriesAligner") for call in monitoring.calls]
    asked = [aligner for aligner in aligners if aligner]
    assert asked == ["ALIGN_SUM"] * 3


def test_what_monitoring_does_not_say_is_named_and_is_not_0(cloud: DoorCloud, monitoring: Monitoring) -> None:
    del monitoring.series["instance_count"]
    shares = cost_of(cloud, TokenCost(input=(Unpriced("no row"), DEAR), output=None, load="", utilisation=1.0))
    assert [part.name for part in shares.parts] == ["search", "billing", "other callers"]
    assert shares.notes == (
        "idle time of llm in us-east4 is in the other parts: Cloud Monitoring has no sample of its instances",
    )
    assert "in and out alike" in shares.basis
    refusal = {"error": {"code": 403, "message": "no right.", "status": "PERMISSION_DENIED"}}
    monitoring.refusal = Answer(403, refusal)
    shares = cost_of(cloud)
    assert shares.usd is None
    assert {part.usd for part in shares.parts} == {None}
    assert len([note for note in shares.notes if "no right" in note]) == 3
    assert "unknown USD" not in shares.model_dump_json()


def test_use_that_cannot_be_read_leaves_the_bill(cloud: DoorCloud, monitoring: Monitoring) -> None:
    cloud.put("keys.json", b"{")
    shares = cost_of(cloud)
    assert shares.usd is not None
    assert (shares.parts, len(shares.notes)) == ((), 1)
    assert monitoring.calls


def test_a_stack_without_a_door_has_no_shares_and_asks_nothing(cloud: DoorCloud, monitoring: Monitoring) -> None:
    cloud.deployed.keep("dev", state_of(service_resource(), url="https://llm.example"))
    with cloud.context() as context:
        assert team_cost(context, context.deployment("dev"), MONTH, TOKENS) is None
    assert monitoring.calls == []


def test_metrics_of_a_sleeping_server_have_the_use_of_keys(cloud: DoorCloud, monitoring: Monitoring) -> None:
    monitoring.series = {}
    cloud.use("2026-09-21", aaaaaaaa=KeyUsage(requests=3, failures=1, prompt_tokens=70_000, completion_tokens=9))
    with cloud.context() as context:
        report = metrics(context, MetricsArguments(stack="dev"))
    assert not report.is_read
    assert [(each.team, each.requests, each.failures, each.tokens) for each in report.keys] == [
        ("search", 3, 1, 70_009)
    ]
    assert report.text().splitlines()[-1].split() == ["aaaaaaaa", "search", "3", "1", "0", "70,000", "9"]
    cloud.put("keys.json", b"{")
    with cloud.context() as context:
        report = metrics(context, MetricsArguments(stack="dev"))
    assert report.keys == ()
    assert any("the use of keys is not known" in note for note in report.notes)
