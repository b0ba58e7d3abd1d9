"""`bezel plan`: what stands in the stack's file is told as its own, and the day is asked before a price is believed."""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

import pytest

from bezel.cli.plan import print_plan
from bezel.planner import PlanError
from bezel.pulumi_engine.project import Project

ROOT = Path(__file__).parents[2]
STACK = """
config:
  gcp:project: mine
  bezel:model: gemma-4-12b-it-qat-w4a16
  bezel:accelerator: nvidia-l4
  bezel:region: us-east4
"""


def planned(folder: Path, more: str) -> int:
    """Print the plan of a stack with more in its file; the exit code."""
    shutil.copy(ROOT / "Pulumi.yaml", folder)
    (folder / "Pulumi.one.yaml").write_text(STACK + more)
    return print_plan(Project(folder), argparse.Namespace(stack="one"))


@pytest.mark.parametrize(("more", "origin"), [("", "catalogue default"), ("  bezel:environment: dev\n", "stack file")])
def test_a_default_that_the_file_says_is_reported_as_the_files(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str, origin: str
) -> None:
    assert planned(tmp_path, more) == 0
    assert re.search(rf"^  environment +dev +\({origin}\)$", capsys.readouterr().out, re.MULTILINE)


def test_a_price_of_a_day_to_come_is_refused(tmp_path: Path) -> None:
    row = "{item: vcpu, region: us-east4, usd_per_unit: 0.000018, as_of: 2099-01, source: a list}"
    with pytest.raises(PlanError, match=r"bezel:cost\.prices\.0\.as_of = 2099-01"):
        planned(tmp_path, f"  bezel:cost: {{prices: [{row}]}}\n")
