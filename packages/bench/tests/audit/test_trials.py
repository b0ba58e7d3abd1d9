"""Clean runs are not accused, faults put into them are found: seeds that no threshold was chosen by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench_support.audit_clean import KINDS, clean_case
from bench_support.audit_injected import INJECTIONS, inject
from bezel_bench.audit.runner import audit_files

if TYPE_CHECKING:
    from pathlib import Path

HELD_OUT = 900_000
CLEAN = 200
SHARE = 0.95
EACH = 5


def accusations(folder: Path, seed: int, kind: str | None = None) -> list[str]:
    folder.mkdir(exist_ok=True)
    result = audit_files(clean_case(seed, kind).write(folder))
    return [*result.unreadable, *(f"seed {seed}: {one.name}: {one.arithmetic}" for one in result.findings)]


def is_found(folder: Path, fault: int, seed: int) -> bool:
    folder.mkdir(exist_ok=True)
    one = inject(fault, seed)
    result = audit_files(one.case.write(folder))
    return any(finding.kind == fault and one.item in finding.items for finding in result.findings)


@pytest.mark.parametrize("kind", KINDS)
def test_a_clean_case_of_each_kind_is_not_accused(tmp_path: Path, kind: str) -> None:
    assert not accusations(tmp_path / "a", HELD_OUT, kind)


@pytest.mark.slow
@pytest.mark.parametrize("fault", INJECTIONS)
def test_each_way_of_a_fault_is_found_where_it_was_put(tmp_path: Path, fault: int) -> None:
    ways = len(INJECTIONS[fault])
    outcomes = [is_found(tmp_path / str(seed), fault, HELD_OUT // ways * ways + seed) for seed in range(ways)]
    assert all(outcomes)


@pytest.mark.slow
@pytest.mark.wide_except("0")
@pytest.mark.parametrize("first", range(0, CLEAN, 50))
def test_none_of_two_hundred_clean_cases_is_accused(tmp_path: Path, first: int) -> None:
    seeds = range(first, first + 50)
    accused = [text for seed in seeds for text in accusations(tmp_path / str(seed), HELD_OUT + 1 + seed)]
    assert not accused


@pytest.mark.slow
def test_nearly_all_faults_put_in_at_random_are_found(tmp_path: Path) -> None:
    outcomes = [
        is_found(tmp_path / f"{fault}-{seed}", fault, HELD_OUT + seed) for fault in INJECTIONS for seed in range(EACH)
    ]
    assert sum(outcomes) >= SHARE * len(outcomes)


def test_what_files_are_called_and_their_order_changes_nothing(tmp_path: Path) -> None:
    """Where columns say what was measured, a name is only a name."""
    case = inject(11, 0).case
    paths = case.write(tmp_path)
    before = audit_files(paths).findings
    renamed = paths[0].rename(tmp_path / f"renamed{paths[0].suffix}")
    again = audit_files([renamed, *reversed(paths[1:])]).findings
    assert [(one.kind, one.arithmetic) for one in before] == [(one.kind, one.arithmetic) for one in again]
