"""Google's client for Python writes and reads Prometheus metrics, and queries them in PromQL."""

import sys

import pytest

from tests.support.clients import programs

pytestmark = [pytest.mark.slow, pytest.mark.clients]


def test_googles_client_writes_lists_and_queries_series(variables):
    made = programs.run([sys.executable, programs.PROGRAMS / "google_written_metrics.py"], variables)
    assert {call.name: call.text for call in made if call.outcome != "passed"} == {}
    assert len(made) >= 12
