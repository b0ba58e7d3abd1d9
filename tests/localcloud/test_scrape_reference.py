"""The recorded answers of Prometheus's relabelling and reading are those of the code that is built from its module."""

from __future__ import annotations

import pytest

from tests.support.plugin.program import go_program
from tools.traffic.scrape_answers import FILE, file_text, reference_answers


@pytest.mark.wide
@pytest.mark.timeout(600)
def test_the_recorded_scrapes_are_those_of_prometheus() -> None:
    written = file_text(reference_answers(go_program("scrape-reference")))
    assert written == FILE.read_text(), "run python -m tools.traffic.scrape_answers"
