"""Every test is run by one recipe of the Makefile; by two what is fast and what outside clients run."""

import itertools
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from _pytest.mark.expression import Expression

ROOT = Path(__file__).parents[2]
MARKS = ("slow", "wide", "long", "clients", "gitops")
COLLECTING = ("fast", "rules", "test-wide", "test-long")
TWICE = {"fast", "clients"}


def read_selections() -> dict[str, str]:
    """Return the `-m` of each recipe that runs pytest."""
    text = (ROOT / "Makefile").read_text()
    recipe = r"^([a-z-]+):[^\n]*"
    command = r"\n\t@\.venv/bin/pytest [^\n]*-m \"?([^\"\n]+?)\"?(?: tests/\w+)?$"
    return dict(re.findall(recipe + command, text, re.MULTILINE))


def recipes_of(marks: set[str]) -> list[str]:
    """Return the recipes that select a test with these marks."""
    return [
        recipe
        for recipe, selection in read_selections().items()
        if Expression.compile(selection).evaluate(lambda name, **_: name in marks)
    ]


def is_possible(marks: set[str]) -> bool:
    """Tell whether a test can have these marks: the conftest makes what is wide or long slow."""
    return not (
        (marks & {"wide", "long", "clients"} and "slow" not in marks) or ("gitops" in marks and "long" not in marks)
    )


POSSIBLE = [
    marks
    for length in range(len(MARKS) + 1)
    for marks in map(set, itertools.combinations(MARKS, length))
    if is_possible(marks) and not {"clients", "gitops"} <= marks
]


@pytest.mark.parametrize("marks", POSSIBLE, ids=lambda marks: "-".join(sorted(marks)) or "none")
def test_marks_lead_to_one_recipe(marks: set[str]) -> None:
    recipes = set(recipes_of(marks))
    assert len(recipes - TWICE) == 1 or recipes == {"clients"}
    assert ("clients" in recipes) == ("clients" in marks)
    assert ("fast" in recipes) == (not marks)
    assert "fast" not in recipes or "rules" in recipes


def test_conftest_knows_the_selections() -> None:
    """Otherwise a recipe would import the modules of all tests."""
    text = (ROOT / "conftest.py").read_text()
    assert [recipe for recipe in COLLECTING if f'"{read_selections()[recipe]}"' not in text] == []


@pytest.mark.wide
@pytest.mark.timeout(600)
def test_every_test_is_run_by_one_recipe(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    selections = [read_selections()[recipe] for recipe in COLLECTING]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "tests.support.tools.collection"]
    options = [f"--collection-report={report}", f"--collection-selections={json.dumps(selections)}"]
    run = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True, timeout=500, check=False)
    assert run.returncode == 0, run.stdout[-4000:] + run.stderr[-2000:]
    collected = json.loads(report.read_text())
    counts: Counter[str] = Counter()
    lost = []
    for test in collected["tests"]:
        recipes = recipes_of(set(test["marks"]))
        counts.update(recipes)
        dropped = [read_selections()[recipe] in test["ignored by"] for recipe in recipes if recipe in COLLECTING]
        if len(set(recipes) - TWICE) > 1 or not recipes or any(dropped):
            lost.append((test["id"], recipes))
    assert lost == []
    assert all(counts[recipe] for recipe in read_selections())
    assert collected["patterns without a case"] == []
