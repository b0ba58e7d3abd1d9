"""The table of docs/observability.md has the series that are kept, and no other."""

import re
from pathlib import Path

from bezel_catalog.vllm.kept_series import KEPT_SERIES, samples_of_scrape

PAGE = (Path(__file__).parents[2] / "docs/observability.md").read_text(encoding="utf-8")


def test_the_table_of_kept_series_is_that_of_the_catalogue() -> None:
    rows = re.findall(r"^\| `(\S+)` \| (\w+) \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows == [(each.name, each.kind, each.purpose) for each in KEPT_SERIES]


def test_the_page_has_the_samples_of_the_catalogue() -> None:
    month = samples_of_scrape() * 120 * 730 / 1e6
    assert f"{samples_of_scrape()} a scrape at most, {month:.1f} million in a month" in " ".join(PAGE.split())
