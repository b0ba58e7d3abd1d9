"""docs/sweeps.md shows commands that the command line takes, and figures of its own that the code has."""

import importlib.util
import inspect
import shlex
from pathlib import Path

import pytest

from bezel.cli.main import parse
from bezel_bench.commands.ab import servers_of
from bezel_bench.commands.goodput import plan_of
from bezel_bench.commands.rates import plan_of as rates_of
from bezel_bench.metrics import statistics
from bezel_bench.sweep import ab, goodput, run
from bezel_bench.sweep.inference import knees, reach
from bezel_bench.sweep.inference.repeats import REPEATABLE
from tests.support.docs.markdown import ROOT, between, blocks
from tools.bench import ab_power
from tools.bench.sweeps import engine_trials, engines, knee_rates, made_up, methods, trials
from tools.bench.sweeps import twins as simulated
from tools.bench.sweeps.grids import made_up_grids, read, twins

DOCUMENT = ROOT / "docs" / "sweeps.md"


def test_every_command_that_it_shows_is_taken() -> None:
    lines = [shlex.split(line, comments=True) for text in blocks(DOCUMENT, "sh") for line in text.splitlines()]
    scripts = [line[2] for line in lines if line[1] == "-m"]
    assert scripts == ["tools.bench.sweeps.made_up", "tools.bench.sweeps.trials", "tools.bench.sweeps.trials"]
    assert all(importlib.util.find_spec(script) for script in scripts)
    options = [parse(line[1:]) for line in lines if line[1] != "-m"]
    assert [one.action for one in options] == ["sweep", "rates", "goodput", "ab", "ab"]
    search, slos = plan_of(options[2])
    assert search.limits == {"ttft_p99": 500.0, "tpot_p99": 50.0}
    assert {one.metric for one in slos} == {"ttft", "tpot"}
    rates, _ = rates_of(options[1])
    assert (rates.steps, rates.users, rates.limits) == (10, 128, {"ttft_p99": 500.0})
    assert [list(servers_of(one)) for one in options[3:]] == [
        ["plain", "mtp"],
        ["spec_tokens=0", "spec_tokens=2", "spec_tokens=3", "spec_tokens=4"],
    ]


def test_the_figures_that_it_names_are_those_of_the_code() -> None:
    text = " ".join(DOCUMENT.read_text().split())
    assert f"`--share` ({run.SHARE:.0%})".replace("%", " %") in text
    assert f"the {REPEATABLE:.0%} by which two runs".replace("%", " %") in text
    assert reach.LEAST == 9
    assert "fewer than nine errors" in text
    assert f"fewest users with {knees.SHARE:.0%} of the plateau".replace("%", " %") in text
    assert f"none more than {knees.FAR - 1:.0%} above".replace("%", " %") in text
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


def test_equal_servers_differ_in_at_most_one_comparison_in_twenty() -> None:
    assert len(error_rates()) == len(ab_power.NOISES) * len(ab_power.SHARES)
    assert all(wrong <= 0.05 for wrong, *_ in error_rates().values())
    assert error_rates()["2%", "10%"][1] >= 0.8, "one slow run in ten hides few differences"


@pytest.mark.slow
def test_the_error_rates_are_those_of_a_small_rerun() -> None:
    wrong, real, fewer = error_rates()["2%", "10%"]
    trials = 300
    assert ab_power.difference_share(0.0, 0.02, 0.1, ab.ROUNDS, trials) <= wrong + 0.03
    assert abs(ab_power.difference_share(ab_power.GAIN, 0.02, 0.1, ab.ROUNDS, trials) - real) <= 0.1
    assert abs(ab_power.difference_share(ab_power.GAIN, 0.02, 0.1, 6, trials) - fewer) <= 0.1


def test_the_table_of_sweeps_is_that_of_the_stored_outcomes() -> None:
    made = trials.read_stored()
    assert between(DOCUMENT, "made by: .venv/bin/python -m tools.bench.sweeps.trials") == trials.table(made)
    kinds = [trials.kind(grid) for grid in made]
    assert [kinds.count(kind) for kind in trials.KINDS] == [8, 8, trials.MADE_UP]
    assert all(outcome.share <= run.SHARE for outcomes in made.values() for outcome in outcomes.values())


@pytest.mark.parametrize("kind", trials.KINDS)
def test_ranges_hold_85_to_95_of_100_on_each_kind_of_grid(kind: str) -> None:
    outcomes = {grid: each[methods.OWN] for grid, each in trials.read_stored().items() if trials.kind(grid) == kind}
    count, share, least = trials.ranges_held(outcomes)
    assert count >= 100
    assert 0.85 <= share <= 0.95
    assert (least or 0.0) >= 0.75
    assert min(outcome.figures for outcome in outcomes.values()) >= 0.7


def test_table_of_engines_holds_85_to_95_of_100() -> None:
    lines = between(DOCUMENT, "made by: .venv/bin/python -m tools.bench.sweeps.engine_trials --write").splitlines()[2:]
    rows = [line.strip("| ").split(" | ") for line in lines]
    assert [row[0].partition(" ")[2] for row in rows] == [*engines.KINDS, "of all kinds"]
    assert all(85 <= int(row[3].rstrip("%")) <= 95 for row in rows)
    assert int(rows[-1][0].split(" ")[0]) == engine_trials.GRIDS * len(engines.KINDS)
    assert int(rows[-1][5]) <= 0.02 * int(rows[-1][4])


def test_the_former_method_held_less_on_grids_not_used_for_its_constants() -> None:
    former = {grid: each for grid, each in methods.former().items() if trials.kind(grid) == "made-up"}
    assert set(methods.former()) == set(trials.read_stored())
    assert (trials.ranges_held(former)[2] or 1.0) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize("method", methods.METHODS)
def test_the_stored_outcomes_are_those_of_a_rerun(method: str) -> None:
    for grid in (twins()[0], *made_up_grids(3)):
        again, stored = methods.METHODS[method](grid), trials.read_stored()[grid.name][method]
        assert again.errors == pytest.approx(stored.errors, rel=0.01, abs=1e-4)
        assert again.held == stored.held


def test_a_file_of_a_made_up_grid_is_read_as_that_grid(tmp_path: Path) -> None:
    made = made_up.grid(2)
    read_back = read(made_up.write(made, tmp_path))
    assert read_back.rows == made_up_grids(3)[2].rows
    assert (read_back.grid.contexts, read_back.grid.users) == (made.contexts, made.users)
    assert {place for place, row in read_back.rows.items() if row["success_pct"] != "100"} == set(made.failed)


def knee_table() -> list[list[str]]:
    lines = between(DOCUMENT, "made by: .venv/bin/python -m tools.bench.sweeps.knee_rates").splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_at_most_one_knee_in_a_hundred_is_false_in_the_table() -> None:
    assert [row[0] for row in knee_table()] == [*knee_rates.LAWS, knee_rates.MADE_UP]
    assert all(float(row[4].rstrip("%")) <= 1.0 for row in knee_table())
    assert all(float(row[3].rstrip("%")) >= 90.0 for row in knee_table() if row[3])


@pytest.mark.slow
def test_the_table_of_knees_is_that_of_a_rerun() -> None:
    assert between(DOCUMENT, "made by: .venv/bin/python -m tools.bench.sweeps.knee_rates") == knee_rates.table()


def test_the_generator_of_made_up_grids_imports_nothing_of_the_method() -> None:
    assert "bezel" not in [line.split()[1].partition(".")[0] for line in inspect.getsource(made_up).splitlines()
                           if line.lstrip().startswith(("import ", "from "))]  # fmt: skip


@pytest.mark.slow
def test_the_stored_simulated_servers_are_those_of_the_simulation() -> None:
    for name in list(simulated.SERVERS)[:2]:
        (oracle,) = [each for each in twins() if each.name.endswith(name)]
        ((value,),) = simulated.rows(name, (512,), (16,))
        assert float(oracle.rows[512, 16]["value"]) == value
