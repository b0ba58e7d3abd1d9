"""Two saved results: worse only beyond chance and tolerance, and what cannot be compared is not called the same."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies

from bench_support.results import manifest, staged_result
from bezel_bench.commands.main import main
from bezel_bench.report.comparison import FIGURES, Comparison, compare
from bezel_bench.result.document import Cell, Result, save
from bezel_bench.result.records import Metric


def metric(value: float | None, spread: float | None = 1.0, unit: str = "requests/s") -> Metric:
    if value is None:
        return Metric(value=None, unit=unit, why="nothing was measured")
    if spread is None:
        return Metric(value=value, unit=unit, n=9)
    return Metric(value=value, unit=unit, low=value - spread, high=value + spread, n=9, confidence=0.95, how="t")


def cell(name: str = "run", **changed: Any) -> Cell:
    figures = changed.pop("figures", {"requests_per_second": metric(100.0)})
    fields: dict[str, Any] = {"users": 8, "context_tokens": 128, "output_tokens": 64, "pattern": "closed"}
    return Cell(id=name, **{**fields, "prompts": "unique", "state": "ok", "metrics": figures, "requests": 9, **changed})


def result(*cells: Cell, nature: Any = "measured", accelerator: str = "nvidia-l4") -> Result:
    return Result(kind="run", nature=nature, manifest=manifest("t", accelerator), cells=list(cells))


def verdict_of(before: float, after: float, name: str = "requests_per_second", spread: float | None = 1.0) -> str:
    old, new = (result(cell(figures={name: metric(value, spread)})) for value in (before, after))
    return compare(old, new, 0.05).verdict


@pytest.mark.parametrize(
    ("before", "after", "name", "verdict"),
    [
        (100, 90, "requests_per_second", "worse"),
        (100, 110, "requests_per_second", "better"),
        (100, 110, "ttft_p50", "worse"),
        (100, 90, "ttft_p99", "better"),
        (100, 98, "requests_per_second", "same"),  # 97 to 99 and 99 to 101: all within the tolerance of each other
        (100, 96, "requests_per_second", "not_shown"),  # means within the tolerance, 101 and 95 not
        (10, 11, "requests_per_second", "not_shown"),  # within chance
    ],
)
def test_a_figure_is_judged_by_its_direction_beyond_chance_and_tolerance(
    before: float, after: float, name: str, verdict: str
) -> None:
    assert verdict_of(before, after, name) == verdict


def test_a_figure_without_interval_is_neither_different_nor_the_same() -> None:
    assert verdict_of(100, 80, spread=None) == "unknown"
    assert verdict_of(100, 101, spread=None) == verdict_of(100, 100, spread=None) == "unknown"


def test_a_figure_without_interval_hides_a_difference_beside_others() -> None:
    def both(latency: float, rate: float = 100.0) -> Result:
        return result(cell(figures={"requests_per_second": metric(rate), "ttft_p99": metric(latency, None, "ms")}))

    assert compare(both(50), both(900), 0.05).verdict == "not_shown"
    assert compare(both(50), both(50, 200), 0.05).verdict == "not_shown"
    assert compare(both(50), both(50, 20), 0.05).verdict == "worse"


SPREADS = strategies.one_of(strategies.none(), strategies.floats(0, 300))
MEANS = strategies.one_of(strategies.just(0.0), strategies.floats(0.01, 1000))
OPPOSITE = {"better": "worse", "worse": "better"}


@pytest.mark.slow
@given(
    name=strategies.sampled_from(sorted(FIGURES)),
    old=strategies.tuples(MEANS, SPREADS),
    new=strategies.tuples(MEANS, SPREADS),
    tolerance=strategies.floats(0, 0.9),
)
def test_a_word_of_a_figure_says_no_more_than_its_intervals(
    name: str, old: tuple[float, float | None], new: tuple[float, float | None], tolerance: float
) -> None:
    before, after = (result(cell(figures={name: metric(*value)})) for value in (old, new))
    comparison = compare(before, after, tolerance)
    (figure,) = comparison.figures
    assert (figure.share is None) == (old[0] == 0)
    assert comparison.verdict == figure.change
    back = compare(after, before, tolerance).figures[0].change
    if old[1] is None or new[1] is None:
        assert figure.change == "unknown"
        return
    (low, high), (least, most) = ((max(0, mean - (half or 0)), mean + (half or 0)) for mean, half in (old, new))
    if figure.change == "same":
        assert most <= low * (1 + tolerance)
        assert high <= least * (1 + tolerance)
        assert back == "same"
    elif figure.change != "not_shown":
        assert high < least or most < low
        assert abs(new[0] - old[0]) > tolerance * old[0]
        assert (figure.change == "better") == ((new[0] > old[0]) == FIGURES[name])
        assert back in (OPPOSITE[figure.change], "not_shown")
    else:
        assert back != "same"


@pytest.mark.slow
@given(
    values=strategies.lists(strategies.floats(0.1, 1000), min_size=2, max_size=5),
    others=strategies.lists(strategies.floats(0.1, 1000), min_size=2, max_size=5),
)
def test_repeats_are_the_same_only_where_their_intervals_are(values: list[float], others: list[float]) -> None:
    (figure,) = compare(repeats(*values), repeats(*others), 0.05).figures
    assert figure.before.low is not None
    assert figure.after.high is not None
    if figure.change == "same":
        assert figure.after.high <= 1.05 * figure.before.low
        assert math.isclose(figure.before.mean, figure.after.mean, rel_tol=0.05)


def repeats(*values: float, figure: str = "goodput") -> Result:
    return result(*(cell(f"r{at}", repeat=at, figures={figure: metric(value)}) for at, value in enumerate(values)))


@pytest.mark.parametrize("name", sorted(FIGURES))
@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ((100, 100.5), (100.2, 100.4), "same"),
        ((197.5, 294.3), (244.5, 252.9), "not_shown"),  # means of 245.9 and 248.7
        ((80, 120), (99, 101), "not_shown"),
        ((99, 101), (80, 120), "not_shown"),
        ((100, 100.5), (150, 150.5), "more"),
        ((150, 150.5), (100, 100.5), "less"),
        ((0, 0), (100, 100.5), "more"),
        ((100, 100.5), (0, 0), "less"),
        ((0, 0), (0, 0), "same"),
        ((100,), (100,), "same"),
        ((100, 100.5), (100.2,), "same"),
    ],
)
def test_every_figure_has_its_word_and_its_exit_code(
    name: str, before: tuple[float, ...], after: tuple[float, ...], changes: str, tmp_path: Path
) -> None:
    word = changes
    if changes in ("more", "less"):
        word = "better" if (changes == "more") == FIGURES[name] else "worse"
    old, new = repeats(*before, figure=name), repeats(*after, figure=name)
    assert [each.change for each in compare(old, new, 0.05).figures] == [word]
    if name not in ("goodput", "ttft_p99"):
        return
    save(old, tmp_path / "old.json")
    save(new, tmp_path / "new.json")
    code = main(["compare", str(tmp_path / "old.json"), str(tmp_path / "new.json")])
    assert code == {"same": 0, "better": 0, "worse": 1, "not_shown": 4}[word]


def test_each_stage_is_a_load_also_one_whose_level_comes_back() -> None:
    comparison = compare(staged_result(), staged_result(), 0.1)
    loads = list(dict.fromkeys(figure.load for figure in comparison.figures))
    assert [load.split(",")[1] for load in loads] == [" stage 1: 4 users", " stage 2: 16 users", " stage 3: 4 users"]
    assert {figure.before.cells for figure in comparison.figures} == {1}
    assert compare(staged_result(), staged_result(levels=(4, 16, 8)), 0.1).notes


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
    comparison = compare(before, after, 0.05)
    assert comparison.verdict == "unknown"
    assert any(why in reason for reason in comparison.refusals)


def test_what_else_differs_is_said() -> None:
    comparison = compare(result(cell(), cell("b", users=2)), result(cell(), accelerator="v6e-1"), 0.05)
    assert any("accelerator: nvidia-l4 before, v6e-1 after" in note for note in comparison.notes)
    assert any("is in the first result only" in note for note in comparison.notes)


def test_the_command_prints_the_figures_and_ends_with_the_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {name: tmp_path / f"{name}.json" for name in ("old", "new", "other")}
    save(result(cell()), files["old"])
    save(result(cell(figures={"requests_per_second": metric(80.0)})), files["new"])
    save(result(cell(users=1)), files["other"])

    def code(*arguments: str) -> int:
        return main(["compare", *(str(files.get(word, word)) for word in arguments)])

    assert code("old", "new") == 1
    output = capsys.readouterr().out
    assert "-20.0%" in output
    assert "verdict: worse" in output
    assert code("new", "old") == code("old", "old") == code("old", "new", "--tolerance", "30") == 0
    assert code("old", "other") == 3
    assert code("old", "new", "--tolerance", "-1") == 2
    capsys.readouterr()
    code("old", "new", "--json")
    comparison = Comparison.model_validate(json.loads(capsys.readouterr().out))
    assert comparison.verdict == "worse"
    assert code("old", "none") == 1


def test_two_repeats_that_cannot_tell_show_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    for file, one in zip(files, (repeats(80, 120), repeats(60, 82)), strict=True):
        save(one, file)
    assert main(["compare", *map(str, files)]) == 4
    shown = capsys.readouterr().out
    assert "verdict: no difference shown" in shown
    assert "(-" not in shown, "no figure is negative"
    save(repeats(99, 101), files[1])
    assert main(["compare", *map(str, files)]) == 4, "means that are close show nothing"
    assert "verdict: no difference shown" in capsys.readouterr().out
    save(repeats(100, 100.1), files[0])
    save(repeats(100, 100.1), files[1])
    assert main(["compare", *map(str, files)]) == 0
    assert "verdict: same" in capsys.readouterr().out
