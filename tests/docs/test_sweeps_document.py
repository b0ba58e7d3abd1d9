"""docs/sweeps.md shows commands that the command line takes, and figures of its own that the code has."""

import shlex

import pytest

from bezel.bench.metrics import statistics
from bezel.bench.sweep import ab, acquisition, goodput, run
from bezel.cli.bench.ab import servers_of
from bezel.cli.bench.goodput import plan_of
from bezel.cli.main import parse
from tests.support.docs.markdown import ROOT, between, blocks
from tools.bench import ab_power

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
    assert f"`--error` ({run.ERROR:.0%}".replace("%", " %") in text
    assert f"less than {acquisition.SATURATED - 1:.0%}".replace("%", " %") in text
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
