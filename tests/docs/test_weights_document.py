"""The tables of loadings say what the planner does, and each way of loading is explained."""

import subprocess
import sys

import pytest

from bezel.planner.vllm.loading import LOADINGS
from tests.support.docs.markdown import ROOT, between

DOCUMENT = ROOT / "docs" / "weights.md"


@pytest.mark.slow
def test_the_tables_of_loadings_are_the_planners() -> None:
    command = [sys.executable, "-m", "tools.docs.planner.weights"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert between(DOCUMENT, "made by: .venv/bin/python -m tools.docs.planner.weights") == printed, (
        "run `python -m tools.docs.planner.weights --write`"
    )


def test_each_way_says_when_to_take_it() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert all(f"- **`{name}`**" in text for name in LOADINGS)
