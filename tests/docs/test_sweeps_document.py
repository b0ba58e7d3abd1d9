"""docs/sweeps.md shows commands that the command line takes, and figures of its own that the code has."""

import shlex

from bezel.bench.sweep import ab, acquisition, goodput, run
from bezel.cli.bench.ab import servers_of
from bezel.cli.bench.goodput import plan_of
from bezel.cli.main import parse
from tests.support.docs.markdown import ROOT, blocks

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
