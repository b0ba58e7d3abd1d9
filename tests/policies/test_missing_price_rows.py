"""A row that is taken out of the price list closes the plan and the policies, and both name it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.policies.harness import INSTANCE, ROOT, SERVICE, instance, service

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

ROWS = {
    "cloud-run, gpu nvidia-l4 no zonal redundancy, us-east4, instance-based": (SERVICE, service()),
    "cloud-run, memory, us-east4, instance-based": (SERVICE, service()),
    "tpu, v6e chip, us-east5, flex-start": (INSTANCE, instance()),
}
PRICES = "bezel_catalog/data/prices.csv"
LINES = (ROOT / "packages/catalog" / PRICES).read_text().splitlines(keepends=True)
ASK = """
import json, sys
from bezel_policies.config import UsdLimits
from bezel_policies.hardware_cost.rules import hourly_ceiling
from bezel.resource_cost.inputs import Inputs
from bezel.planner import PlanError, make_plan
token, inputs, settings = json.load(sys.stdin)
for problem in hourly_ceiling(token, Inputs(inputs), UsdLimits(limits={"dev": 1000})):
    print("policy:", " ".join(str(problem).split()))
try:
    make_plan(settings, project="p", stack="l4-qat")
except PlanError as error:
    print("plan:", " ".join(str(error).split()))
"""
STACK = {"model": "gemma-4-12b-it-qat-w4a16", "accelerator": "nvidia-l4", "region": "us-east4"}


@pytest.fixture(scope="module")
def catalogue(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the rules whose price list a test writes: it is compiled once."""
    tmp_path = tmp_path_factory.mktemp("rules")
    for name in ("packages/base/bezel_base", "packages/catalog/bezel_catalog", "policies/bezel_policies", "bezel"):
        target = tmp_path / name.rpartition("/")[2]
        shutil.copytree(ROOT / name, target)
    return tmp_path


def write_prices(catalogue: Path, lines: list[str]) -> None:
    """Make these lines the price list of the copy."""
    (catalogue / PRICES).write_text("".join(lines))


def message_of(catalogue: Path, token: str, inputs: object) -> str:
    """What plan and policy say with the prices of that copy."""
    return subprocess.run(
        [sys.executable, "-c", ASK],
        cwd=catalogue,
        input=json.dumps([token, inputs, STACK]),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout


@pytest.mark.wide_except("cloud-run, gpu*", "tpu*")
@pytest.mark.parametrize("row", ROWS)
def test_a_row_that_is_gone_closes_what_needs_it(catalogue: Path, row: str) -> None:
    kept = [line for line in LINES if not line.startswith(",".join(row.split(", ")))]
    assert len(kept) == len(LINES) - 1
    write_prices(catalogue, kept)
    text = message_of(catalogue, *ROWS[row])
    assert f"Missing: {row}" in text
    assert ("plan:" in text and f"Missing price row: {row}" in text) == row.startswith("cloud-run")


def test_with_every_row_nothing_is_said(catalogue: Path) -> None:
    write_prices(catalogue, LINES)
    assert message_of(catalogue, SERVICE, service()) == ""
