"""`bezel plan`: what stands in the stack's file is told as its own, and the day is asked before a price is believed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from bezel.operations.context import Context
from bezel.operations.plan.plan import PlanArguments, PlanReport, plan
from bezel.planner import PlanError

ROOT = Path(__file__).parents[2]
STACK = """
config:
  gcp:project: mine
  bezel:model: gemma-4-12b-it-qat-w4a16
  bezel:accelerator: nvidia-l4
  bezel:region: us-east4
"""


def plan_of_stack(folder: Path, more: str, *, with_origins: bool = False) -> PlanReport:
    """The plan of a stack with more in its file."""
    shutil.copy(ROOT / "Pulumi.yaml", folder)
    (folder / "Pulumi.one.yaml").write_text(STACK + more)
    return plan(Context(folder, {}), PlanArguments(stack="one", all=with_origins))


@pytest.mark.parametrize(("more", "origin"), [("", "catalogue default"), ("  bezel:environment: dev\n", "stack file")])
def test_a_default_that_the_file_says_is_reported_as_the_files(tmp_path: Path, more: str, origin: str) -> None:
    row = re.compile(rf"^  environment +dev +\({origin}\)$", re.MULTILINE)
    assert row.search(plan_of_stack(tmp_path, more, with_origins=True).text())
    assert not row.search(plan_of_stack(tmp_path, more).text())


def test_a_price_of_a_day_to_come_is_refused(tmp_path: Path) -> None:
    row = "{item: vcpu, region: us-east4, usd_per_unit: 0.000018, as_of: 2099-01, source: a list}"
    with pytest.raises(PlanError, match=r"bezel:cost\.prices\.0\.as_of = 2099-01"):
        plan_of_stack(tmp_path, f"  bezel:cost: {{prices: [{row}]}}\n")


def test_the_values_are_those_of_the_stacks_outputs(tmp_path: Path) -> None:
    report = plan_of_stack(tmp_path, "")
    assert report.project == "mine"
    assert {"fit", "weights", "start", "estimate", "cost"} <= report.values.keys()
    assert "--served-model-name=gemma-4-12b-it-qat-w4a16" in report.arguments
