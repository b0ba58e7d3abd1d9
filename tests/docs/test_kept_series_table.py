"""The table of docs/observability.md has the series that are kept, and no other."""

import re
from decimal import Decimal
from pathlib import Path

from bezel.planner.base.money import text
from bezel.planner.team.metrics_plan import metrics_cost
from bezel_catalog.vllm.kept_series import KEPT_SERIES, samples_of_scrape

PAGE = (Path(__file__).parents[2] / "docs/observability.md").read_text(encoding="utf-8")


def test_the_table_of_kept_series_is_that_of_the_catalogue() -> None:
    rows = re.findall(r"^\| `(\S+)` \| (\w+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows == [(each.name, each.kind, each.purpose) for each in KEPT_SERIES]


def test_the_page_has_the_samples_of_the_catalogue() -> None:
    cost, month = metrics_cost(leased=False), Decimal(730)
    page = " ".join(PAGE.split())
    samples = (
        f"{cost.millions(month):.1f} million in a month without a pause: {text(cost.usd_of_samples(month), 2)} USD"
    )
    assert f"{samples_of_scrape()} a scrape at most" in page
    assert samples in page
    assert f"{cost.reads * month:,.0f} in that month, {text(cost.usd_of_reads(month), 2)} USD" in page
