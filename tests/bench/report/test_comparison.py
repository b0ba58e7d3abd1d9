"""Two saved results: worse only beyond chance and tolerance, and what cannot be compared is not called the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from bezel.bench.report.comparison import Comparison, compare
from bezel.bench.result.document import Cell, Result, save
from bezel.bench.result.records import Metric
from bezel.cli.main import main
from tests.support.bench.results import manifest


def metric(value: float | None, spread: float | None = 1.0, unit: str = "requests/s") -> Metric:
    if value is None:
        return Metric(value=None, unit=unit, why="nothing was measured")
    if spread is None:
        return Metric(value=value, unit=unit, n=9)
    return Metric(value=value, unit=unit, low=value - spread, high=value + spread, n=9, confidence=0.95, how="t")


def cell(name: str = "run", **changed: Any) -> Cell:
    figures = changed.pop("figures", {"requests_per_second": metric(100.0)})
    given: dict[str, Any] = {"users": 8, "context_tokens": 128, "output_tokens": 64, "pattern": "closed"}
    return Cell(id=name, **{**given, "prompts": "unique", "state": "ok", "metrics": figures, "requests": 9, **changed})


def result(*cells: Cell, nature: Any = "measured", accelerator: str = "nvidia-l4") -> Result:
    return Result(kind="run", nature=nature, manifest=manifest("t", accelerator), cells=list(cells))


def judged(before: float, after: float, name: str = "requests_per_second", spread: float | None = 1.0) -> str:
    old, new = (result(cell(figures={name: metric(value, spread)})) for value in (before, after))
    return compare(old, new, 0.05).verdict


@pytest.mark.parametrize(
    ("before", "after", "name", "verdict"),
    [
        (100, 90, "requests_per_second", "worse"),
        (100, 110, "requests_per_second", "better"),
        (100, 110, "ttft_p50", "worse"),
        (100, 90, "ttft_p99", "better"),
        (100, 96, "requests_per_second", "same"),  # within the tolerance
        (10, 11, "requests_per_second", "not_shown"),  # within chance
    ],
)
def test_a_figure_is_judged_by_its_direction_beyond_chance_and_tolerance(
    before: float, after: float, name: str, verdict: str
) -> None:
    assert judged(before, after, name) == verdict


def test_without_intervals_a_difference_is_unknown_and_none_is_the_same() -> None:
    assert judged(100, 80, spread=None) == "unknown"
    assert judged(100, 101, spread=None) == "same"


def test_repeats_of_a_load_are_one_figure_with_their_own_interval() -> None:
    old = result(
        *(cell(f"r{at}", repeat=at, figures={"goodput": metric(value, 50)}) for at, value in enumerate((100, 101, 99)))
    )
    new = result(
        *(cell(f"r{at}", repeat=at, figures={"goodput": metric(value, 50)}) for at, value in enumerate((80, 81, 79)))
    )
    (figure,) = compare(old, new, 0.05).figures
    assert (figure.before.cells, figure.change) == (3, "worse")
    assert figure.before.low is not None
    assert 95 < figure.before.low < 100


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (result(cell()), result(cell(), nature="simulated"), "one is measured, the other simulated"),
        (result(cell()), result(cell(users=9)), "no load in common"),
        (
            result(cell()),
            result(cell(state="failed", reason="all requests failed", metrics={})),
            "no measurement that is ok",
        ),
        (result(cell(figures={})), result(cell()), "no figure was measured in both"),
    ],
)
def test_what_cannot_be_compared_is_unknown_with_the_reason(before: Result, after: Result, why: str) -> None:
    found = compare(before, after, 0.05)
    assert found.verdict == "unknown"
    assert any(why in reason for reason in found.refusals)


def test_what_else_differs_is_said() -> None:
    found = compare(result(cell(), cell("b", users=2)), result(cell(), accelerator="v6e-1"), 0.05)
    assert any("accelerator: nvidia-l4 before, v6e-1 after" in note for note in found.notes)
    assert any("is in the first result only" in note for note in found.notes)


def test_the_command_prints_the_figures_and_ends_with_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {name: tmp_path / f"{name}.json" for name in ("old", "new", "other")}
    save(result(cell()), files["old"])
    save(result(cell(figures={"requests_per_second": metric(80.0)})), files["new"])
    save(result(cell(users=1)), files["other"])

    def code(*words: str) -> int:
        return main(["bench", "compare", *(str(files.get(word, word)) for word in words)])

    assert code("old", "new") == 1
    said = capsys.readouterr().out
    assert "-20.0%" in said
    assert "verdict: worse" in said
    assert code("new", "old") == code("old", "old") == code("old", "new", "--tolerance", "30") == 0
    assert code("old", "other") == 3
    assert code("old", "new", "--tolerance", "-1") == 2
    capsys.readouterr()
    code("old", "new", "--json")
    found = Comparison.model_validate(json.loads(capsys.readouterr().out))
    assert found.verdict == "worse"
    assert code("old", "none") == 1


def test_two_repeats_that_cannot_tell_show_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def repeats(*values: float) -> Result:
        return result(
            *(cell(f"r{at}", repeat=at, figures={"goodput": metric(value)}) for at, value in enumerate(values))
        )

    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, one in zip(files, (repeats(80, 120), repeats(60, 82)), strict=True):
        save(one, file)
    assert main(["bench", "compare", *map(str, files)]) == 4
    shown = capsys.readouterr().out
    assert "verdict: no difference shown" in shown
    assert "(-" not in shown, "no figure is negative"
    save(repeats(99, 101), files[1])
    assert main(["bench", "compare", *map(str, files)]) == 0, "within the tolerance"
