"""Content of a report, in its order, for page, Markdown and pictures alike. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from bezel_base.text.cleaning import clean_text
from bezel_bench.report import facts
from bezel_bench.report.ab_figures import ab_figures
from bezel_bench.report.figure import Figure, Table
from bezel_bench.report.latency_figures import shape_figures
from bezel_bench.report.load_figures import load_figures
from bezel_bench.report.over_time.platform_figures import platform_figures
from bezel_bench.report.over_time.server_figures import server_figures
from bezel_bench.report.series import Subject, nature, subjects_of
from bezel_bench.report.sweep_figures import grid_figures
from bezel_bench.result.document import Result

SIMULATED = "Simulated: the responses are those of a simulated server. No figure is evidence about hardware."

_MOST_TEXTS, _LONGEST = 50, 60_000


@dataclass(frozen=True)
class Report:
    """The parts of a report.

    Attributes:
        nature: "measured", "simulated", or both.
        warnings: Caveats to show before any figure, whole sentences.
        trouble: Tables of problems.
        missing: Figures that cannot be drawn, and why.
    """

    title: str
    nature: str
    subjects: list[Subject]
    warnings: list[str]
    summary: Table
    findings: list[str]
    figures: list[Figure]
    missing: list[str]
    side_by_side: Table | None
    trouble: list[Table]
    checks_summary: str
    cells: Table
    manifests: list[Table]


def report_of(results: Sequence[Result]) -> Report:
    """Build the report of one or more results."""
    subjects = subjects_of(results)
    grids, no_grids = grid_figures(subjects)
    loads, no_loads = load_figures(subjects)
    shapes, no_shapes = shape_figures(subjects)
    server, no_server = server_figures(subjects)
    platform, no_platform = platform_figures(subjects)
    trouble = [facts.odd_cells(subjects), facts.failures(subjects), facts.fired_checks(subjects)]
    titles = list(dict.fromkeys(result.manifest.title for result in results))
    return Report(
        title=titles[0] if len(titles) == 1 else f"{len(results)} benchmarks side by side",
        nature=nature(subjects),
        subjects=subjects,
        warnings=_warnings(subjects),
        summary=facts.summary(subjects),
        findings=facts.findings(results),
        figures=[*ab_figures(results), *grids, *loads, *shapes, *server, *platform],
        missing=[*no_grids, *no_loads, *no_shapes, *no_server, *no_platform],
        side_by_side=facts.side_by_side(subjects),
        trouble=[table for table in trouble if table],
        checks_summary=facts.checks_summary(subjects),
        cells=facts.all_cells(subjects),
        manifests=[facts.manifest(result) for result in results],
    )


class ReportSummary(TypedDict):
    """A report in words, for programs: without control characters and credentials, of bounded length.

    Attributes:
        nature: "measured", "simulated", or both.
        warnings: What is to be known before any figure, the first 50.
        findings: The first 50.
        markdown: The tables as Markdown, cut after 60,000 characters.
        written: Files that were written.
    """

    title: str
    nature: str
    warnings: tuple[str, ...]
    findings: tuple[str, ...]
    markdown: str
    written: tuple[str, ...]


def summary_of(report: Report, markdown: str, written: tuple[str, ...]) -> ReportSummary:
    """The summary of a report with its tables as Markdown, and with the files that were written."""
    return ReportSummary(
        title=clean_text(report.title, 300),
        nature=report.nature,
        warnings=tuple(clean_text(text, 600) for text in report.warnings[:_MOST_TEXTS]),
        findings=tuple(clean_text(text, 600) for text in report.findings[:_MOST_TEXTS]),
        markdown=clean_text(markdown, _LONGEST),
        written=written,
    )


def _warnings(subjects: Sequence[Subject]) -> list[str]:
    warnings = []
    simulated = [item.label for item in subjects if item.is_simulated]
    if len(simulated) == len(subjects):
        warnings.append(SIMULATED)
    elif simulated:
        warnings.append(f"Simulated, and no evidence about hardware: {', '.join(simulated)}.")
    warnings += [
        f"{subject.label}: no load is ok, so none of its figures can be relied on."
        for subject in subjects
        if facts.representative_load(subject)[0] is None
    ]
    failed = [
        (item, check) for item in subjects for cell in item.cells for check in cell.checks if check.state == "failed"
    ]
    if failed:
        names = ", ".join(sorted({check.name for _, check in failed}))
        warnings.append(f"{len(failed)} checks failed ({names}): see Checks that did not pass.")
    return warnings
