"""A report about results: nothing dropped, nothing made up, nothing unescaped; colours that all readers tell."""

import csv
import html
import itertools
import re
from html.parser import HTMLParser
from xml.etree.ElementTree import fromstring

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bench_support.colour_vision import SIGHTS, distance, perceive
from bench_support.results import (
    HOSTILE,
    METRIC,
    bare,
    cell,
    check,
    drafts,
    failed_result,
    line,
    manifest,
    saturated_result,
    sweep,
)
from bezel_bench.report.charts.axes import Axis, scale
from bezel_bench.report.charts.heat import HeatMap
from bezel_bench.report.charts.labels import Labels
from bezel_bench.report.charts.palette import DARK, LIGHT, SERIES, cividis, contrast, ink_on
from bezel_bench.report.charts.png import as_slide
from bezel_bench.report.export import as_csv
from bezel_bench.report.format import compact, number, percent
from bezel_bench.report.load_figures import curves_of
from bezel_bench.report.markdown import as_markdown
from bezel_bench.report.page import as_page
from bezel_bench.report.report import Report, report_of
from bezel_bench.report.series import subjects_of
from bezel_bench.report.sweep_figures import grid_figures
from bezel_bench.result.document import Cell, Finding, Result, ServerSeries
from bezel_bench.result.records import Histogram

JUST_APART, READABLE, VISIBLE = 0.07, 4.5, 3.0


@pytest.fixture(scope="module")
def sweep_report() -> Report:
    return report_of([sweep()])


def summary_row(report: Report, name: str) -> list[str]:
    """What the summary says of each server."""
    return next(row[1:] for row in report.summary.rows if row[0] == name)


class Tags(HTMLParser):
    """The tags and attributes of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


def test_hostile_text_becomes_text_and_never_markup() -> None:
    page = as_page(report_of([failed_result(text=HOSTILE)]))
    hostile, tame = Tags(page), Tags(as_page(report_of([failed_result()])))
    assert hostile.tags == tame.tags
    assert hostile.attributes == tame.attributes
    assert not {"script", "img"} & hostile.tags
    assert "&lt;script&gt;alert(1)" in page
    assert not set("\u202e\x00") & set(page)


@pytest.mark.slow
@given(st.one_of(st.just(HOSTILE), st.text(min_size=1, max_size=40), st.from_regex(r"<[a-z]{1,6}[ />|`&*]{0,4}.*")))
def test_hostile_text_is_no_markup_in_markdown_whoever_reads_it(hostile: str) -> None:
    """As Markdown nothing but code of letters and references, as HTML nothing but the tags of our own."""
    text = as_markdown(report_of([failed_result(text=hostile)]))
    assert Tags(text).tags <= {"details", "summary", "code"}
    assert Tags(text).attributes == set()
    codes = re.findall("<code>(.*?)</code>", text)
    assert all(re.fullmatch(r"(?:[A-Za-z0-9 ]|&#[0-9]+;)*", code) for code in codes)
    outside = re.sub("<code>.*?</code>|</?(?:details|summary)>", "", text)
    assert not re.search(r"[<@`]", outside)
    for table in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({row.count("|") for row in table.splitlines()}) == 1


@pytest.mark.parametrize("hostile", ["*weak*", "**strong**", "~~gone~~", "1 < 2 > 1"])
def test_a_mark_among_words_that_are_no_markup_is_a_reference(hostile: str) -> None:
    text = as_markdown(report_of([failed_result(text=hostile)]))
    assert hostile not in text
    assert hostile in html.unescape(text)


def test_hostile_text_can_still_be_read() -> None:
    codes = re.findall("<code>(.*?)</code>", as_markdown(report_of([failed_result(text=HOSTILE)])))
    assert any("alert" in html.unescape(code) and "<" in html.unescape(code) for code in codes)


def test_text_of_our_own_is_no_code() -> None:
    text = as_markdown(report_of([line("12B on L4", "nvidia-l4", 1.0)])).split("What was run")[0]
    assert ("`" in text, "<code>" in text) == (False, False)


@pytest.mark.slow
def test_every_state_of_a_cell_is_in_the_map_with_a_mark_of_its_own(sweep_report: Report) -> None:
    heat = next(figure for figure in sweep_report.figures if figure.name == "heat")
    assert isinstance(heat.picture, HeatMap)
    boxes = heat.picture.boxes
    assert len(boxes) == 13 * 12
    assert {boxes[16384, 512].mark, boxes[8192, 1024].mark, boxes[4, 512].mark, boxes[8, 512].mark} == set("-xCQ")
    assert {box.inferred for box in boxes.values() if box.value is not None} == {True, False}
    assert all(box.value is None or box.inferred for box in boxes.values() if box.mark)
    drawn = "".join(heat.picture.draw(1000).itertext())
    without = {place for place, box in boxes.items() if box.mark == "~~"}
    assert {context for context, _ in without} == {8192}
    assert all("no range: only 8 cells measured" in boxes[place].tooltip for place in without)
    assert "~~" in {value[:2] for row in heat.table.rows for value in row}
    for name in (
        "measured",
        "inferred",
        "inferred, no range",
        "failed",
        "infeasible",
        "limited by the client",
        "queueing",
    ):
        assert name in drawn


def test_a_legend_names_only_what_the_map_has() -> None:
    both = line("L4", "nvidia-l4", 1.0)
    wide = both.model_copy(update={"cells": [*both.cells, cell(64, 1), cell(64, 64)]})
    (figure, *_), _ = grid_figures(subjects_of([wide]))
    drawn = "".join(figure.picture.draw(1000).itertext())
    assert "measured" in drawn
    assert "inferred" not in drawn
    assert "queueing" not in drawn


@pytest.mark.slow
@pytest.mark.parametrize("make", [sweep, drafts, failed_result])
def test_share_of_failed_requests_is_in_every_caption_and_the_summary(make: type[Result]) -> None:
    report = report_of([make()])
    figures = [figure for figure in report.figures if figure.name not in ("differences", "acceptance")]
    assert figures
    assert all(re.search(r"[\d,]+ of [\d,]+ requests failed \(", " ".join(figure.caption)) for figure in figures)
    assert " of " in summary_row(report, "failed requests")[0]


def test_failed_requests_keep_a_distribution_below_the_whole() -> None:
    report = report_of([failed_result()])
    chart = next(figure for figure in report.figures if figure.name == "ttft").picture
    assert chart.lines[0].steps[-1][1] == pytest.approx(0.65)  # type: ignore[attr-defined]


def test_cancelled_requests_are_no_failures_of_a_report_or_a_table() -> None:
    one = failed_result().cells[0].model_copy(update={"failures": {"http_5xx": 66, "cancelled": 4}})
    result = failed_result().model_copy(update={"cells": [one]})
    report = report_of([result])
    chart = next(figure for figure in report.figures if figure.name == "ttft").picture
    assert chart.lines[0].steps[-1][1] == pytest.approx(130 / 196)  # type: ignore[attr-defined]
    assert summary_row(report, "failed requests") == ["66 of 200 (33 %)"]
    assert [row["failed"] for row in csv.DictReader(as_csv(result).splitlines())] == ["66"]
    good = next(figure for figure in report_of([line("", "", 1.0)]).figures if figure.name == "ttft").picture
    assert good.lines[0].steps[-1][1] == pytest.approx(1.0)  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_simulated_figure_says_so_wherever_it_stands(sweep_report: Report) -> None:
    assert all("simulated" in figure.kind for figure in sweep_report.figures)
    assert "Simulated" in sweep_report.warnings[0]
    assert "simulated" in as_slide(sweep_report.figures[0], "source", "DejaVu Sans").lower()
    measured = report_of([line("one", "nvidia-l4", 1.0)])
    assert not any("simulated" in figure.kind for figure in measured.figures)
    assert measured.warnings == []


def test_simulated_and_measured_side_by_side_are_distinguished() -> None:
    report = report_of([line("one", "nvidia-l4", 1.0), line("two", "nvidia-l4", 1.0, nature="simulated")])
    assert any("two" in warning and "one" not in warning for warning in report.warnings)
    assert summary_row(report, "kind") == ["measured", "simulated"]


def test_what_is_not_known_is_unknown_and_never_nought() -> None:
    report = report_of([line("one", "nvidia-l4", 1.0, price=None)])
    assert not any(figure.name == "cost" for figure in report.figures)
    assert any("the price is unknown" in text for text in report.missing)
    assert summary_row(report, "cost_per_million_output_tokens, USD") == ["unknown"]
    assert any(figure.name == "cost" for figure in report_of([line("one", "nvidia-l4", 1.0)]).figures)


def test_an_unknown_price_of_one_of_two_is_said_beside_the_others_cost() -> None:
    report = report_of([line("one", "nvidia-l4", 1.0), line("two", "rtx-pro-6000", 2.0, price=None)])
    cost = next(figure for figure in report.figures if figure.name == "cost")
    assert "The cost of two is unknown." in cost.caption


@pytest.mark.slow
def test_without_a_plateau_no_load_is_best_and_figures_name_their_load() -> None:
    rising = line("L4", "nvidia-l4", 1.0)
    finding = Finding(name="no_plateau", text="At a context of 1024 tokens no plateau was seen.")
    result = rising.model_copy(update={"findings": [finding], "cells": rising.cells[:5]})
    report = report_of([result])
    assert summary_row(report, "best load") == ["none named: no plateau was seen"]
    assert summary_row(report, "figures at")[0].startswith("16 users")
    assert "no plateau was seen" in " ".join(report.findings)
    page, text = as_page(report), as_markdown(report)
    assert "Best load that is ok" not in page
    assert "none named: no plateau was seen" in text
    whole = report_of([rising])
    assert summary_row(whole, "best load") == summary_row(whole, "figures at")
    assert summary_row(whole, "best load")[0].startswith("32 users")
    assert "Best load that is ok" in as_page(whole)


def test_a_single_load_is_not_the_best_of_one() -> None:
    one = line("L4", "nvidia-l4", 1.0)
    alone = one.model_copy(update={"findings": [], "cells": one.cells[:1]})
    assert summary_row(report_of([alone]), "best load") == ["none named: one load was measured"]


def test_the_knee_of_a_sweep_is_ringed_and_only_there() -> None:
    (curve,), _ = curves_of(subjects_of([line("one", "nvidia-l4", 1.0)]))
    assert curve.mark == (32, "knee: 32")
    latency = next(one for one in report_of([line("one", "", 1.0)]).figures if one.name == "latency").picture
    assert [dot.ring for dot in latency.lines[0].dots].count("knee: 32") == 1  # type: ignore[attr-defined]
    without = line("one", "nvidia-l4", 1.0).model_copy(update={"findings": []})
    assert curves_of(subjects_of([without]))[0][0].mark is None


@pytest.mark.slow
def test_a_cell_that_is_not_ok_is_on_no_line_and_not_dropped(sweep_report: Report) -> None:
    chart = next(figure for figure in sweep_report.figures if figure.name == "throughput").picture
    marks = {dot.mark for line in chart.lines for dot in line.dots}  # type: ignore[attr-defined]
    assert {"C", "Q"} <= marks
    trouble = next(table for table in sweep_report.trouble if table.title == "Loads that are not ok")
    assert {row[0] for row in trouble.rows} == {
        "failed", "infeasible", "limited by the client", "queueing before the server",
    }  # fmt: skip


def test_repeats_of_a_load_are_one_mean_with_range_without_failed_ones() -> None:
    good = [cell(64, 8, repeat=turn, seed=turn) for turn in range(3)]
    bad = cell(64, 8, repeat=3, state="failed", reason="counters", factor=9.0)
    (spot,) = subjects_of([line("", "", 1.0).model_copy(update={"cells": [*good, bad]})])[0].spots
    figure = spot.figure(METRIC)
    values = sorted(one.value(METRIC) or 0 for one in good)
    assert figure
    assert (figure.low, figure.high, figure.repeats) == (values[0], values[-1], 3)
    assert figure.value == pytest.approx(sum(values) / 3)
    assert spot.requests == 800


def test_checks_that_fired_come_first_and_failed_ones_warn() -> None:
    report = report_of([failed_result()])
    fired = next(table for table in report.trouble if table.title == "Checks that did not pass")
    assert [row[0] for row in fired.rows] == ["failed", "unknown"]
    assert fired.rows[0][-1] == "the server answered 503: no available instance", "no number by its internal name"
    assert any("1 checks failed" in warning for warning in report.warnings)
    quiet = report_of([line("one", "nvidia-l4", 1.0)])
    assert quiet.trouble == []


def test_a_difference_whose_interval_holds_nought_is_not_shown_as_one() -> None:
    figure = report_of([drafts()]).figures[0]
    assert figure.name == "differences"
    assert [row[-1] for row in figure.table.rows] == ["yes", "yes", "no", "no"]
    drawn = "".join(figure.picture.draw(540).itertext())
    assert "no difference shown" in drawn
    assert "too few rounds" in drawn


def test_two_results_of_one_title_keep_names_of_their_own() -> None:
    names = [one.label for one in subjects_of([line("same", "a", 1.0), line("same", "b", 2.0), line(" ", "c", 1.0)])]
    assert names == ["same", "same (2)", "untitled"]


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_series_are_distinct_to_every_sight_and_against_the_ground(colours: dict[str, str]) -> None:
    series = [colours[f"s{place}"] for place in range(SERIES)]
    for one, other in itertools.combinations(series, 2):
        assert min(distance(one, other, sight) for sight in SIGHTS) > JUST_APART
    assert min(contrast(one, colours["ground"]) for one in series) >= VISIBLE
    for name, ground in itertools.product(("ink", "soft", "bad", "link"), ("ground", "panel")):
        assert contrast(colours[name], colours[ground]) >= READABLE


def test_the_measure_of_colours_finds_what_some_readers_confuse() -> None:
    assert distance("#ad7a2b", "#6f9127", "typical") > JUST_APART
    assert distance("#ad7a2b", "#6f9127", "deuteranopia") < JUST_APART


def test_quantities_grow_lighter_for_every_sight_with_readable_figures() -> None:
    colours = [cividis(place / 40) for place in range(41)]
    for sight in SIGHTS:
        lightness = [perceive(colour, sight)[0] for colour in colours]
        assert lightness == sorted(lightness)
    assert min(contrast(ink_on(colour), colour) for colour in colours) >= READABLE


@pytest.mark.parametrize(
    ("value", "long", "short"),
    [(0, "0", "0"), (0.1234, "0.123", "0.12"), (9.999, "10.0", "10"), (99.96, "100", "100"), (1234.5, "1,234", "1.2k"),
     (999.6, "1,000", "1k"), (35_000, "35,000", "35k"), (2_500_000, "2,500,000", "2.5M"), (-3.2, "-3.20", "-3.2")],
)  # fmt: skip
def test_numbers_keep_three_digits_or_four_characters(value: float, long: str, short: str) -> None:
    assert (number(value), compact(value)) == (long, short)


def test_a_share_that_is_not_nought_never_reads_as_nought() -> None:
    assert [percent(share) for share in (0, 1e-6, 0.5, 0.99999, 1)] == ["0 %", "< 0.1 %", "50 %", "> 99.9 %", "100 %"]


@pytest.mark.parametrize("log", [False, True])
def test_every_value_and_tick_stands_within_its_axis(log: bool) -> None:
    for values in ([5.0], [1.0, 2048.0], [0.03, 0.031], [120.0, 4e6]):
        one = scale(Axis("x", log=log), values, 0, 500)
        assert all(0 <= one(value) <= 500 for value in values)
        ticks = one.ticks(30)
        assert all(0 <= one(tick) <= 500 for tick in ticks)
        assert all(one(high) - one(low) >= 30 for low, high in itertools.pairwise(ticks))


@pytest.mark.slow
@pytest.mark.parametrize("log", [False, True])
@given(values=st.lists(st.floats(0, 1e12), max_size=5))
@example(values=[0.0, 5e-324])  # the histogram of answers whose tokens came all at once
@example(values=[1e-320, 3e-310])
def test_axis_takes_every_size_of_value(log: bool, values: list[float]) -> None:
    one = scale(Axis("x", log=log), values, 0, 500)
    assert one.low < one.high
    assert all(0 <= one(place) <= 500 for place in [*values, *one.ticks(30)])


def test_labels_lie_on_no_label_and_no_marker() -> None:
    labels = Labels(0, 300, 0, 200)
    for x in (100, 104, 108):
        labels.keep_clear(x, 100)
    placed = [labels.place(x, 100, "1,024", far=False) for x in (100, 104, 108)]
    assert len({place for place in placed if place}) == sum(place is not None for place in placed)
    assert labels.place(150, 100, "x" * 60, far=False) is None


@pytest.mark.slow
def test_charts_at_both_widths_are_well_formed_and_within_their_picture(sweep_report: Report) -> None:
    for figure, width in itertools.product(sweep_report.figures, (318.0, 540.0)):
        drawn = figure.picture.draw(width)
        assert drawn.get("role") == "img"
        assert drawn.get("aria-label")
        across, down = (float(part) for part in (drawn.get("viewBox") or "").split()[2:])
        for text in drawn.iter("text"):
            assert 0 <= float(text.get("x") or -1) <= across
            assert 0 <= float(text.get("y") or -1) <= down
    for figure in sweep_report.figures[::3]:
        assert fromstring(as_slide(figure, "source", "DejaVu Sans")).tag.endswith("svg")  # noqa: S314 - our own


def test_a_manifest_says_unknown_where_nothing_is_known() -> None:
    full = dict(report_of([line("one", "nvidia-l4", 1.0)]).manifests[0].rows)
    bare = dict(report_of([failed_result()]).manifests[0].rows)
    assert full["accelerator"] == "nvidia-l4"
    assert (bare["accelerator"], bare["price"], bare["digest"]) == ("unknown", "unknown", "unknown")
    assert manifest("x").command[0] in full["command"]


def test_gaps_of_nought_have_a_place_and_percentiles_lie_on_their_curve() -> None:
    one = cell(64, 1)
    itl = one.distributions["itl"]
    counts = [1000, *([0] * (len(itl.histogram.counts) - 2)), 200]
    many = itl.model_copy(
        update={"min": 0.0, "p50": 0.0, "histogram": Histogram(edges=[0.0, *itl.histogram.edges[1:]], counts=counts)}
    )
    changed = one.model_copy(update={"distributions": {"itl": many}})
    result = line("one", "nvidia-l4", 1.0).model_copy(update={"cells": [changed]})
    chart = next(figure for figure in report_of([result]).figures if figure.name == "itl").picture
    assert not chart.x.log  # type: ignore[attr-defined]
    (curve,) = chart.lines  # type: ignore[attr-defined]
    assert (0.0, 0.5) in curve.steps
    assert [share for _, share in curve.steps] == sorted(share for _, share in curve.steps)
    good = next(figure for figure in report_of([line("one", "", 1.0)]).figures if figure.name == "itl").picture
    assert good.x.log  # type: ignore[attr-defined]


def test_a_line_without_dots_is_in_no_legend_and_its_loads_are_reported() -> None:
    both = line("L4", "nvidia-l4", 1.0)
    none = [bare(8192, users, "infeasible", "too long") for users in (1, 2)]
    result = both.model_copy(update={"cells": [*both.cells, *none]})
    figure = next(figure for figure in report_of([result]).figures if figure.name == "throughput")
    assert "8,192" not in "".join(figure.picture.draw(540).itertext())
    assert any("2 infeasible (-)" in word for word in figure.caption)


@pytest.mark.slow
def test_servers_beyond_those_a_chart_can_show_are_in_the_table_and_said() -> None:
    report = report_of([line(f"number {place}", "nvidia-l4", 1.0) for place in range(7)])
    for name in ("throughput", "ttft"):
        figure = next(figure for figure in report.figures if figure.name == name)
        assert len(figure.picture.lines) == SERIES  # type: ignore[attr-defined]
        assert any(f"{SERIES} of 7" in sentence for sentence in figure.caption)
    assert len(figure.table.rows) == 7


def test_a_result_without_cells_is_a_report_without_figures() -> None:
    report = report_of([line("none", "nvidia-l4", 1.0).model_copy(update={"cells": [], "findings": []})])
    assert report.figures == []
    assert len(report.missing) >= 3
    assert as_page(report)
    assert as_markdown(report)


def test_answers_of_different_lengths_are_warned_of_and_not_side_by_side() -> None:
    one, other = line("one", "nvidia-l4", 1.0), line("other", "nvidia-l4", 1.0)
    equal = report_of([one, other])
    assert equal.side_by_side
    assert not any("mixed" in word for word in equal.figures[0].caption)
    short = [cell.model_copy(update={"output_tokens": 16}) for cell in other.cells]
    mixed = report_of([one, other.model_copy(update={"cells": short})])
    assert mixed.side_by_side is None
    assert any("Responses of 16, 128 tokens are mixed: they" in word for word in mixed.figures[0].caption)


READ = ServerSeries(
    every_seconds=1.0, at_seconds=[1.0, 2.0, 3.0], running=[4, 4, 3], waiting=[1, 0, 0], kv_cache_used=[0.2, 0.4, 0.5],
    generated_tokens=[0, 100, 300],
)  # fmt: skip


def _run(*cells: Cell) -> Result:
    return Result(kind="run", nature="simulated", manifest=manifest("t"), cells=list(cells))


def test_the_servers_own_metrics_are_drawn_over_the_load() -> None:
    cells = [cell(128, 4, server_series=READ), cell(128, 1)]
    made = report_of([_run(*cells)])
    figures = {figure.name: figure for figure in made.figures}
    assert [row[2] for row in figures["server-requests"].table.rows] == ["4", "4", "3", "1", "0", "0"]
    assert [row[2] for row in figures["server-tokens"].table.rows] == ["100", "200"]
    assert [row[2] for row in figures["server-cache"].table.rows] == ["20 %", "40 %", "50 %"]
    assert "4 users" in " ".join(figures["server-cache"].caption)


def test_unreported_figure_is_not_drawn_and_a_single_read_is_no_line() -> None:
    only = READ.model_copy(update={"kv_cache_used": None, "generated_tokens": None})
    made = report_of([_run(cell(128, 4, server_series=only))])
    assert {"server-requests"} == {figure.name for figure in made.figures if figure.name.startswith("server")}
    single = ServerSeries(every_seconds=1.0, at_seconds=[1.0], running=[4])
    made = report_of([_run(cell(128, 4, server_series=single))])
    assert not [figure for figure in made.figures if figure.name.startswith("server")]
    assert any("metrics over time" in text for text in made.missing)


@pytest.mark.slow
def test_tiles_of_a_saturated_run_have_the_figures_of_its_highest_load() -> None:
    page = as_page(report_of([saturated_result()]))
    tiles = page[page.index('<dl class="tiles">') : page.index("</dl>")]
    assert "Figures of a load that is saturated: its queue grew" in tiles
    assert "unknown" not in tiles
    assert "<dd>8 users " in tiles
    assert "no load is ok" in page, "it is warned of all the same"


def test_tiles_of_a_failed_run_have_no_figures_at_all() -> None:
    page = as_page(report_of([failed_result()]))
    tiles = page[page.index('<dl class="tiles">') : page.index("</dl>")]
    assert "there" not in tiles
    assert "unknown" not in tiles


@pytest.mark.parametrize(
    ("paces", "tails", "low", "high"),
    [
        ((20.0, 21.0, 24.0, 30.0), (), None, None),
        ((20.0, 21.0, 24.0, 30.0), (26.0, 27.0, 4000.0, 39.0), None, 39.0 * 1.25),
        ((20.0, 21.0, 24.0, 3000.0), (26.0, 27.0, 31.0, 3100.0), None, 31.0 * 1.25),
        ((0.05, 21.0, 24.0, 30.0), (0.06, 27.0, 31.0, 39.0), 21.0 / 1.25, None),
        ((20.0, 60.0, 180.0, 540.0), (), None, None),
    ],
)
def test_an_outlier_does_not_take_the_axis_of_tpot_over(
    paces: tuple[float, ...], tails: tuple[float, ...], low: float | None, high: float | None
) -> None:
    report = report_of([saturated_result(paces=paces, tails=tails)])
    (figure,) = (one for one in report.figures if one.name == "pace")
    axis = figure.picture.y
    assert axis.low == (None if low is None else pytest.approx(low))
    assert axis.high == (None if high is None else pytest.approx(high))
    sentences = [text for text in figure.caption if text.startswith("Beyond the axis")]
    assert len(sentences) == (low is not None or high is not None)


@pytest.mark.parametrize("name", ["unique_prompts", "steady_state", "counters"])
def test_text_of_a_check_shows_no_internal_name(name: str) -> None:
    numbers = {"looked_at": 200, "cached_share": 0.02, "drift_of_e2e": 0.31}
    suspect = check(name, "suspect", "e2e drifts by +31% over the part that counts", **numbers)
    result = line("a", "nvidia-l4", 1.0)
    cells = [result.cells[0].model_copy(update={"checks": [suspect]}), *result.cells[1:]]
    report = report_of([result.model_copy(update={"cells": cells})])
    fired = next(table for table in report.trouble if table.title == "Checks that did not pass")
    shown = " ".join(" ".join(row) for row in fired.rows)
    assert "e2e drifts by +31%" in shown
    assert "_" not in shown


@pytest.mark.slow
def test_a_narrow_map_has_its_columns_in_bands() -> None:
    figure = next(one for one in report_of([sweep()]).figures if one.name == "heat")
    narrow, wide = figure.picture.draw(318.0), figure.picture.draw(1100.0)
    assert narrow.get("width") == "318"
    assert wide.get("width") == "1100"
    loads = {"1", "2", "4", "8", "16", "32", "64", "128", "256", "512"}
    for picture in (narrow, wide):
        assert loads <= {each.text for each in picture.iter("text")}
