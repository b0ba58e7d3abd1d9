"""The recorded answers of Prometheus's engine are those of the program that is built from its Go module."""

from __future__ import annotations

import pytest

from tests.support.plugin.program import go_program
from tools.traffic.promql_answers import FILE, file_text, reference_answers


@pytest.mark.wide
@pytest.mark.timeout(600)
def test_the_recorded_answers_are_those_of_prometheus() -> None:
    written = file_text(reference_answers(go_program("promql-reference")))
    assert written == FILE.read_text(), "run python -m tools.traffic.promql_answers"
