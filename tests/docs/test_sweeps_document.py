"""docs/sweeps.md shows commands that the command line takes, and figures of its own that the code has."""

import shlex
from dataclasses import replace
from statistics import median

import pytest

from bezel.bench.metrics import statistics
from bezel.bench.sweep import ab, goodput, run, surface
from bezel.cli.bench.ab import servers_of
from bezel.cli.bench.goodput import plan_of
from bezel.cli.main import parse
from tests.support.docs.markdown import ROOT, between, blocks
from tools.bench import ab_power
from tools.bench.sweeps import methods, trials
from tools.bench.sweeps import twins as simulated
from tools.bench.sweeps.grids import twins

DOCUMENT = ROOT / "docs" / "sweeps.md"


def test_every_command_that_it_shows_is_taken() -> None:
    lines = [shlex.split(line)[1:] for text in blocks(DOCUMENT, "sh") for line in text.splitlines()]
    options = [parse(line) for line in lines]
    assert [one.action for one in options] == ["sweep", "goodput", "ab", "ab"]
    search, slos = plan_of(options[1])
    assert search.limits == {"ttft_p99": 500.0, "tpot_p99": 50.0}
    assert {one.metric for one in slos} == {"ttft", "tpot"}
    assert [list(servers_of(one)) for one in options[2:]] == [
        ["plain", "mtp"],
        ["spec_tokens=0", "spec_tokens=2", "spec_tokens=3", "spec_tokens=4"],
    ]


def test_the_figures_that_it_names_are_those_of_the_code() -> None:
    text = " ".join(DOCUMENT.read_text().split())
    assert f"`--share` ({run.SHARE:.0%})".replace("%", " %") in text
    assert f"`--runs` ({goodput.MOST_RUNS})" in text
    assert f"`--rounds`, {ab.ROUNDS})" in text
    assert f"below {ab.MIN_OUTPUT} tokens" in text
    assert f"fewer than {ab.MIN_ROUNDS} rounds" in text
    assert f"than {statistics.TRIMMED_FROM} rounds have none to spare" in text


def error_rates() -> dict[tuple[str, str], list[float]]:
    """The table of error rates, by its first two columns."""
    lines = between(DOCUMENT, "made by: .venv/bin/python -m tools.bench.ab_power").splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {(noise, slow): [float(cell.rstrip("%")) / 100 for cell in cells] for noise, slow, *cells in rows}


def test_equal_servers_seem_to_differ_in_no_more_than_one_comparison_in_twenty() -> None:
    assert len(error_rates()) == len(ab_power.NOISES) * len(ab_power.SHARES)
    assert all(wrong <= 0.05 for wrong, *_ in error_rates().values())
    assert error_rates()["2%", "10%"][1] >= 0.8, "one slow run in ten hides few differences"


@pytest.mark.slow
def test_the_error_rates_are_those_of_a_small_rerun() -> None:
    wrong, found, fewer = error_rates()["2%", "10%"]
    trials = 300
    assert ab_power.shown(0.0, 0.02, 0.1, ab.ROUNDS, trials) <= wrong + 0.03
    assert abs(ab_power.shown(ab_power.GAIN, 0.02, 0.1, ab.ROUNDS, trials) - found) <= 0.1
    assert abs(ab_power.shown(ab_power.GAIN, 0.02, 0.1, 6, trials) - fewer) <= 0.1


def test_the_table_of_sweeps_is_that_of_the_stored_outcomes() -> None:
    made = trials.stored()
    assert between(DOCUMENT, "made by: .venv/bin/python -m tools.bench.sweeps.trials") == trials.table(made)
    assert len(made) == 16
    assert all(outcome.share <= run.SHARE for outcomes in made.values() for outcome in outcomes.values())


@pytest.mark.parametrize("kind", ["measured", "simulated"])
def test_the_sweep_halves_the_largest_errors_of_the_baseline_and_no_model_does_on_every_kind(kind: str) -> None:
    made = trials.stored()
    found = {}
    for method in methods.METHODS:
        rows = [
            row
            for row in trials.judged(made, trials.keys(method))
            if row.grid.startswith(trials.SIMULATED) == (kind == trials.SIMULATED)
        ]
        found[method] = median(row.p90 for row in rows)
    (baseline,) = [p90 for method, p90 in found.items() if method.startswith("baseline")]
    assert found[methods.OWN] <= baseline / 2
    models = [p90 for method, p90 in found.items() if method.startswith("model")]
    assert len(models) == 3
    assert kind == "measured" or min(models) > baseline / 2


def test_the_width_of_the_ranges_is_that_of_all_grids() -> None:
    outcomes = [each[methods.OWN] for each in trials.stored().values() if each[methods.OWN].errors]
    assert trials.width(outcomes) == pytest.approx(surface.WIDTH, abs=0.05)


def test_no_grid_has_a_say_in_what_it_judges() -> None:
    made = trials.stored()
    names = trials.keys(next(method for method in methods.METHODS if method.startswith("model 1")))
    grid = next(iter(made))
    worse = {name: replace(each, errors=[9 * error for error in each.errors]) for name, each in made[grid].items()}
    before, after = (trials.judged(each, names)[0] for each in (made, made | {grid: worse}))
    assert before.chosen == after.chosen
    assert before.held != after.held, "its own errors count for it, all the same"


@pytest.mark.slow
@pytest.mark.parametrize("method", [method for method in methods.METHODS if not method.startswith("model")])
def test_the_stored_outcomes_are_those_of_a_rerun_on_one_grid(method: str) -> None:
    oracle = twins()[0]
    (again,) = methods.METHODS[method].values()
    assert again(oracle).errors == pytest.approx(trials.stored()[oracle.name][method].errors, rel=0.01, abs=1e-4)


@pytest.mark.slow
def test_the_stored_outcomes_of_a_model_are_those_of_a_rerun_on_one_grid() -> None:
    oracle = twins()[0]
    method = next(method for method in methods.METHODS if method.startswith("model 3"))
    candidate, again = next(iter(methods.METHODS[method].items()))
    stored = trials.stored()[oracle.name][trials.key(method, candidate)]
    assert trials.relative(again(oracle), 0.9) == pytest.approx(trials.relative(stored, 0.9), rel=0.1)


@pytest.mark.slow
def test_the_stored_simulated_servers_are_those_of_the_simulation() -> None:
    for name in list(simulated.SERVERS)[:2]:
        (oracle,) = [each for each in twins() if each.name.endswith(name)]
        ((value,),) = simulated.rows(name, (512,), (16,))
        assert float(oracle.rows[512, 16]["value"]) == value
