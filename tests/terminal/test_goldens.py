"""What commands show on terminals of 80 and of 120 columns, row for row.

The goldens are in `goldens`; `BEZEL_RECORD=1 pytest tests/terminal/test_goldens.py` writes them.
"""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bezel.operations.bench.summary import BenchResult, CellSummary
from bezel.operations.catalog.show import ShowArguments, show
from bezel.operations.context import Context
from bezel.operations.cost.cost import CostArguments, cost
from bezel.operations.doctor.causes import causes_of
from bezel.operations.doctor.check import check
from bezel.operations.doctor.doctor import Doctor
from bezel.operations.keys.door_bucket import UseOfDays
from bezel.operations.keys.list_keys import keys_result
from bezel.operations.keys.shares import bill_parts
from bezel.operations.keys.team_cost import NOT_INCLUDED, TeamCost
from bezel.operations.keys.use import TeamUse, use_result
from bezel.operations.metrics.metrics import MetricsArguments, metrics
from bezel.operations.plan.plan import PlanArguments, plan
from bezel.operations.report.report import StackReportArguments, report
from bezel.operations.status.status import StatusArguments, status
from bezel_base.terminal.layout import lay_out
from bezel_door.key_file import Key
from bezel_door.usage_file import KeyUsage
from tests.support.operations.deployed import NOW, Deployed, deployed_stack, live_service, service_resource, state_of
from tests.support.operations.deployed import SERVICE as PATH
from tests.support.operations.prometheus_server import Prometheus, with_collector
from tests.support.rest.fake_google import Answer, Call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bezel.operations.results import Result

ROOT = Path(__file__).parents[2]
METRICS = (ROOT / "packages/simulated-vllm/tests/fixtures/vllm/metrics.txt").read_text(encoding="utf-8")
GOLDENS = Path(__file__).with_name("goldens")
HASH = "0" * 64
HERE = Context(ROOT, {})
QUOTA = "NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion"
FAILED = {"state": "CONDITION_FAILED", "message": "The user-provided container failed to start and listen on the port."}


def bench() -> BenchResult:
    """A run of three loads of which one failed."""
    cells = [
        CellSummary(
            id=f"{users} users",
            context_tokens=1024,
            users=users,
            rate=None,
            state=state,
            reason=reason,
            requests=40 * users,
            failures={},
            figures={
                "requests_per_second": 1.25 * users,
                "output_tokens_per_second": 160.0 * users,
                "ttft_p50": 91.25,
                "ttft_p99": 1203.5,
                "tpot_p50": None if state == "failed" else 24.5,
            },
            failed_checks=(),
            usd=0.0123,
        )
        for users, state, reason in (
            (1, "ok", ""),
            (16, "saturated", "20.1 requests/s offered, 14.8 completed: the queue of the server grew during the load"),
            (64, "failed", "61 of 2560 requests failed"),
        )
    ]
    return BenchResult(
        kind="run",
        nature="simulated",
        title="gemma-4-12b on one L4",
        model="gemma-4-12b-it-qat-w4a16",
        file="results/run.json",
        cells=tuple(cells),
        cells_left_out=0,
        findings=("the first token takes 13 times as long at p99 as at p50: requests waited for a place in a batch",),
        notes=("the figures are those of a simulated server: none describes hardware",),
    )


def keys() -> Result:
    """Keys of a door: one with every limit, one that ends, one that was revoked."""
    made = datetime(2026, 9, 1, tzinfo=UTC)
    by_id = {
        "k7m2p9q4": Key(HASH, "search", made, None, None, 60, 10_000, 1_000_000, ("gemma", "gemma-legal")),
        "b3x8w1z5": Key(HASH, "billing", made, expires=datetime(2026, 10, 1, tzinfo=UTC)),
        "q1q2q3q4": Key(HASH, "", made, revoked=made),
    }
    busy = KeyUsage(1_203, 4, 17, 1_820_114, 96_240, 2)
    use = UseOfDays(
        {date(2026, 9, 2): {"b3x8w1z5": KeyUsage(12, 0, 0, 3_400, 120)}, date(2026, 9, 21): {"k7m2p9q4": busy}}
    )
    return keys_result("dev", "acme-dev-door", "https://dev-door-abcdefghij-uk.a.run.app", by_id, use, NOW)


def teams() -> Result:
    """Shares of a bill: two teams, callers past the door, and idle instances."""
    uses = [
        TeamUse(team=team, **use_result(KeyUsage(requests=requests, prompt_tokens=read)).model_dump())
        for team, requests, read in (("search", 900, 1_200_000), ("billing", 60, 80_000))
    ]
    prices = (Decimal(1), Decimal(5))
    parts = bill_parts(Decimal("212.345"), uses, idle=Fraction(3, 5), requests=1000, prices=prices)
    return TeamCost(
        since=datetime(2026, 9, 1, tzinfo=UTC),
        usd=Decimal("212.345"),
        parts=parts,
        basis="tokens, one out as 5.0 in, as the plan estimates",
        not_included=NOT_INCLUDED,
        notes=("idle time of v6e4-moe is in the other parts, and earlier leases are not included",),
    )


def doctor() -> Doctor:
    """A machine without a login, and one warning."""
    checks = (
        check("tools", "pulumi", "ok", "v3.213.0"),
        check("tools", "gcloud", "warning", "an older version", "update it: `gcloud components update`."),
        check(
            "login",
            "Google Cloud",
            "problem",
            "login to Google; cannot be read: Your default credentials were not found. To set up Application Default "
            "Credentials, see https://cloud.google.com/docs/authentication/external/set-up-adc for more information.",
            "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to the path of a key.",
        ),
        check(
            "quotas",
            f"{QUOTA} in us-east4",
            "unknown",
            "no answer within 45 s",
        ),
    )
    return Doctor(stacks=("l4-qat",), is_logged_in=False, checks=checks, causes=causes_of(checks))


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Deployed]:
    """A stack that serves."""
    with deployed_stack(tmp_path) as deployed:
        deployed.keep(
            "dev", state_of(service_resource(), url="https://bezel-dev-abcdefghij-uk.a.run.app", model="gemma")
        )
        deployed.live[PATH] = live_service()
        yield deployed


def two_stacks(cloud: Deployed) -> Result:
    """The status of both stacks, whose server has failed."""
    cloud.keep("trial", state_of(service_resource(), url="https://bezel-trial-abcdefghij-uk.a.run.app", model="gemma"))
    cloud.live[PATH], cloud.requests = live_service(terminalCondition=FAILED), []
    return status(cloud.context, StatusArguments())


def nothing_billed(call: Call) -> Answer | None:
    """Cloud Monitoring's answer where it knows of no instance."""
    return Answer(json={}) if call.path.endswith("/timeSeries") else None


def over_time(cloud: Deployed, show: Callable[[Context], Result]) -> Result:
    """A result about the past of a stack, whose two servers ran yesterday and today."""
    collected = Prometheus()
    cloud.keep("dev", state_of(with_collector(), url="https://bezel-dev-abcdefghij-uk.a.run.app", model="gemma"))
    cloud.server.routes[:0] = [collected.answer, nothing_billed]
    for hours, instance in ((30, "a1"), (29, "a1"), (3, "b2")):
        collected.scrape(METRICS, NOW - hours * 3600, instance)
    return show(cloud.context)


RESULTS: dict[str, Callable[[Deployed], Result]] = {
    "plan": lambda _: plan(HERE, PlanArguments(stack="l4-qat-mtp")),
    "plan-all": lambda _: plan(HERE, PlanArguments(stack="l4-qat-mtp", all=True)),
    "plan-leased": lambda _: plan(HERE, PlanArguments(stack="v6e4-moe")),
    "cost": lambda _: cost(HERE, CostArguments(stack="l4-qat-mtp")),
    "catalog": lambda _: show(HERE, ShowArguments(section="tpus")),
    "status": lambda cloud: status(cloud.context, StatusArguments(stack="dev")),
    "status-of-two": two_stacks,
    "keys": lambda _: keys(),
    "teams": lambda _: teams(),
    "metrics-since": lambda cloud: over_time(cloud, lambda it: metrics(it, MetricsArguments(stack="dev", since="24h"))),
    "report": lambda cloud: over_time(cloud, lambda it: report(it, StackReportArguments(stack="dev", since="2d"))),
    "doctor": lambda _: doctor(),
    "bench": lambda _: bench(),
}


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("name", RESULTS)
def test_a_command_shows_what_is_recorded(cloud: Deployed, name: str, width: int) -> None:
    shown = "".join(f"{line}\n" for line in lay_out(RESULTS[name](cloud).page(), width))
    file = GOLDENS / f"{name}-{width}.txt"
    if os.environ.get("BEZEL_RECORD") == "1":
        file.write_text(shown, encoding="utf-8")
    assert shown == file.read_text(encoding="utf-8"), (
        "look at why: BEZEL_RECORD=1 pytest tests/terminal/test_goldens.py writes it"
    )


def test_a_coloured_screen_shows_the_recorded_words() -> None:
    coloured = lay_out(doctor().page(), 80, is_coloured=True)
    assert "\x1b[1;31mPROBLEM\x1b[0m" in "\n".join(coloured)
    for sequence in ("\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[32m", "\x1b[33m"):
        coloured = [line.replace(sequence, "") for line in coloured]
    assert "".join(f"{line.rstrip()}\n" for line in coloured) == (GOLDENS / "doctor-80.txt").read_text()
