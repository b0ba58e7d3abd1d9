"""Servers for the tests of this package, and what became of each test for those who ask."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

from simulated_vllm_support.fixtures import container, environment, mount, serve, servers, settings

__all__ = ["container", "environment", "mount", "serve", "servers", "settings"]

# How long an example takes says how busy the machine is.
hypothesis_settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("busy")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Write what became of each test for tools/vllm/contract.py."""
    file = os.environ.get("BEZEL_VLLM_REPORT")
    if file and (report.when == "call" or report.outcome != "passed"):
        row = {
            "test": report.nodeid,
            "outcome": report.outcome,
            "explained": dict(report.user_properties).get("explained"),
        }
        with Path(file).open("a", encoding="utf-8") as out:
            out.write(json.dumps(row) + "\n")
