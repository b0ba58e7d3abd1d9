"""Changes of real trees: a stack that `bezel ci changed` leaves out has the same plan before and after."""

from __future__ import annotations

import functools
import os
import re
import shutil
from datetime import date
from importlib.util import cache_from_source
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from bezel.gitops.changed import command
from bezel.gitops.changed.rules import Concerned, FileChange
from bezel.model_sources.rows import row_of
from bezel_catalog.project_models.text import with_row
from tests.support.gitops.working_copy import ROOT, WorkingCopy, tracked_files
from tests.support.model_sources.described import description_of

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.slow
PROGRAM = re.compile(
    r"(?!packages/[^/]+/(?:tests|docs)/)(bezel|bootstrap|components|packages|policies|services|smoke|stacks)/|__main__\.py$|Pulumi\.[\w.-]+$|pyproject\.toml$"
)
PRICES, RULE = "packages/catalog/bezel_catalog/data/prices.csv", "bezel/planner/base/money.py"
Edit = tuple[str, str, str]
L4_ROW, TPU_ROW = "no zonal redundancy,us-east4,instance-based,gpu-second,", "v6e chip,us-south1,on-demand,chip-hour,"
L4_EAST: Edit = (PRICES, f"{L4_ROW}0.0001867", f"{L4_ROW}0.0001900")
UNUSED: Edit = (PRICES, f"{TPU_ROW}2.70", f"{TPU_ROW}2.71")
STACK: Edit = ("Pulumi.v6e1-12b.yaml", "max-num-seqs: 64", "max-num-seqs: 32")
SERVICES, LEASES = {"l4-qat", "l4-e2b"}, {"v6e1-12b", "v6e4-12b"}


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program, with its compiled modules where there are some: eleven processes load it."""
    tree: Path = tmp_path_factory.mktemp("trees") / "old"
    names = [name for name in tracked_files() if PROGRAM.match(name)]
    for name in names:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, tree / name)
    for name in names:
        compiled = Path(cache_from_source(str(ROOT / name))) if name.endswith(".py") else None
        if compiled and compiled.is_file():
            copy = Path(cache_from_source(str(tree / name)))
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(compiled, copy)
    return tree


@pytest.fixture(scope="module")
def plans_of() -> Callable[[Path], command.Plans]:
    return functools.cache(command.plans)


def edited_tree(old: Path, edits: tuple[Edit, ...]) -> Path:
    new = old.with_name(f"new{len(list(old.parent.iterdir()))}")
    shutil.copytree(old, new, copy_function=os.link)
    for path, before, after in edits:
        text = (new / path).read_text()
        assert before in text, path
        (new / path).unlink()  # the old tree has the same file
        (new / path).write_text(text.replace(before, after, 1))
    return new


@pytest.mark.wide_except("price-and-stack")
@pytest.mark.parametrize(
    ("edits", "among", "beside"),
    [
        ((L4_EAST, UNUSED), SERVICES, {*LEASES, "rtx6000-fp8"}),
        ((STACK, L4_EAST), {*SERVICES, "v6e1-12b"}, {"v6e4-12b"}),
        (((RULE, '= "unknown"', '= "unknown"  # changed'),), {*SERVICES, *LEASES}, set()),
    ],
    ids=["prices", "price-and-stack", "rule"],
)
def test_a_stack_left_out_has_the_same_plan(
    edits: tuple[Edit, ...], among: set[str], beside: set[str], old: Path, plans_of: Callable[[Path], command.Plans]
) -> None:
    new = edited_tree(old, edits)
    affected = command.compare_trees(
        old, new, [FileChange("M", path) for path in {path for path, _, _ in edits}], plans_of
    )
    before, after = plans_of(old), plans_of(new)
    assert before.keys() == after.keys() >= {"l4-qat", "v6e1-12b"}
    assert all(before[stack] == after[stack] for stack in after.keys() - affected.reasons.keys())
    assert among <= affected.reasons.keys()
    assert not beside & affected.reasons.keys()
    assert not affected.every


def test_row_of_a_projects_model_concerns_the_stacks_that_name_it(old: Path) -> None:
    rows = with_row("", row_of(description_of(), "ours", date(2026, 11, 1)))
    before = edited_tree(old, ())
    stack = (before / "Pulumi.l4-qat.yaml").read_text()
    for name in before.glob("Pulumi.*.yaml"):
        name.unlink()
    (before / "Pulumi.l4-qat.yaml").write_text(stack)
    ours = stack.replace("gemma-4-12b-it-qat-w4a16", "ours").replace("kv-cache-dtype: fp8", "max-logprobs: 20")
    (before / "Pulumi.ours.yaml").write_text(ours.replace("32768", "8192") + "  bezel:weights: {path: ours}\n")
    (before / "catalog.toml").write_text(rows)
    new = edited_tree(before, (("catalog.toml", "weight_bytes = 279_168", "weight_bytes = 999_279_168"),))
    assert command.plans(before)["ours"]["kind"] == "service"
    affected = command.compare_trees(before, new, [FileChange("M", "catalog.toml")], command.plans)
    assert {*affected.reasons} == {"ours"}


def test_a_tree_that_cannot_be_planned_concerns_every_stack(
    old: Path, plans_of: Callable[[Path], command.Plans]
) -> None:
    def older(tree: Path) -> command.Plans:
        if tree == old:
            raise command.UnplannedError("the stacks could not be planned (ImportError)")
        return plans_of(old)

    new = edited_tree(old, ())
    affected = command.compare_trees(old, new, [FileChange("M", PRICES)], older)
    assert affected.reasons.keys() == plans_of(old).keys()
    assert "cannot be followed" in affected.every[0].why
    assert command.compare_trees(old, new, [FileChange("M", "docs/a.md")], older) == Concerned({})


def test_a_tree_with_a_broken_module_fails_with_the_last_line(tmp_path: Path) -> None:
    (tmp_path / "bezel").mkdir()
    (tmp_path / "bezel" / "__init__.py").write_text("raise RuntimeError('planted')")
    with pytest.raises(command.UnplannedError, match="planted"):
        command.plans(tmp_path)


def test_the_code_of_a_tree_gets_no_credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "planted")
    (tmp_path / "bezel").mkdir()
    (tmp_path / "bezel" / "__init__.py").write_text("import os; raise RuntimeError(sorted(os.environ))")
    with pytest.raises(command.UnplannedError, match="PATH") as seen:
        command.plans(tmp_path)
    assert "GITHUB_TOKEN" not in str(seen.value)


def test_the_commits_of_a_branch_are_compared(tmp_path: Path) -> None:
    copy = WorkingCopy.of(tmp_path / "copy", "", [name for name in tracked_files() if PROGRAM.match(name)])
    copy.git("mv", "Pulumi.l4-e2b.yaml", "Pulumi.small.yaml")
    path, before, after = L4_EAST
    copy.write(path, (copy.folder / path).read_text().replace(before, after))
    copy.commit("Change a price, rename a stack")
    report = command.changed_stacks(copy.folder, "HEAD~1", {})
    assert {"small", "l4-qat"} <= set(report.stacks)
    assert "v6e1-12b" not in report.stacks
    assert report.concerned.deleted == ("l4-e2b",)
    reasons = {entry["stack"]: entry["reasons"] for entry in report.as_json()["stacks"]}  # type: ignore[attr-defined]
    assert reasons["l4-qat"] == [f"{PRICES}: its plan differs (cost, token_cost)"]
