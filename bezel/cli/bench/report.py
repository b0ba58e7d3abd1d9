"""`bezel bench report`: writes results as one HTML page, as Markdown, as pictures."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.errors import UserError

if TYPE_CHECKING:
    import argparse

    from bezel.bench.report.report import Report
    from bezel.pulumi_engine.project import Project


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `bezel bench report`."""
    parser.add_argument("results", type=Path, nargs="+", metavar="RESULT.json", help="what `bezel bench` wrote")
    parser.add_argument("--out", type=Path, metavar="FILE.html", help="one page that needs nothing else")
    parser.add_argument("--markdown", type=Path, metavar="FILE.md", help="tables for a pull request")
    parser.add_argument(
        "--png",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE.png",
        help="slides: each file is named after its figure (heat.png, latency.png, ...)",
    )


def run(project: Project, options: argparse.Namespace) -> int:
    """Write the requested files; exit code 0 also for failed results, which the report marks.

    Raises:
        UserError: A result cannot be read, a file cannot be written, or there is no such figure.
    """
    del project
    if not (options.out or options.markdown or options.png):
        raise UserError("nothing to write: name a file with --out FILE.html, --markdown FILE.md or --png FILE.png")
    _check_apart(options)
    from bezel.bench.report.report import report_of
    from bezel.bench.result.document import load

    report = report_of([load(path) for path in options.results])
    pictures = _pictures(report, options.png)
    if options.out:
        from bezel.bench.report.page import as_page

        _write(options.out, as_page(report).encode())
    if options.markdown:
        from bezel.bench.report.markdown import as_markdown

        _write(options.markdown, as_markdown(report).encode())
    for path, content in pictures.items():
        _write(path, content)
    return 0


def _check_apart(options: argparse.Namespace) -> None:
    """Refuse an output file that is a result or another output file."""
    written = [path.resolve() for path in (options.out, options.markdown, *options.png) if path]
    taken = {path.resolve() for path in options.results}
    for path in written:
        if path in taken:
            raise UserError(f"{path} is a result or named twice: it would be written over. Name another file.")
        taken.add(path)


def _pictures(report: Report, paths: list[Path]) -> dict[Path, bytes]:
    figures = {figure.name: figure for figure in report.figures}
    wrong = [str(path) for path in paths if path.suffix != ".png" or path.stem not in figures]
    if wrong:
        known = ", ".join(f"{name}.png" for name in figures) or "none: see `Not drawn` in the report"
        raise UserError(f"--png {' '.join(wrong)}: a picture is named after its figure. This report has {known}.")
    from bezel.bench.report.charts.png import as_png

    manifest = report.subjects[0].result.manifest
    hardware = manifest.platform.accelerator or "unknown hardware"
    one = f"{manifest.title}: {manifest.model} on {hardware}, {manifest.started_at:%Y-%m-%d}"
    source = f"{report.nature}; {one if len(report.manifests) == 1 else report.title}"
    return {path: as_png(figures[path.stem], source) for path in paths}


def _write(path: Path, content: bytes) -> None:
    from bezel.atomic_write import write_whole

    try:
        write_whole(path, content)
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}). Name another place.") from None
    sys.stdout.write(f"written: {path}\n")
