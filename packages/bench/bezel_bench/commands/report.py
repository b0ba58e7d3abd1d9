"""`bezel bench report`: writes results as one HTML page, as Markdown, as pictures; with `--json` prints the report."""

import argparse
import json
from pathlib import Path
from typing import Literal

from bezel_base.command_line.exits import write_output
from bezel_base.console import say
from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_bench.commands.targets import Targets
from bezel_bench.report.report import Report, report_of, summary_of
from bezel_bench.result.document import load


def run(_: Targets, options: argparse.Namespace) -> Literal[0]:
    """Write the requested files; exit code 0 also for failed results, which the report marks.

    Raises:
        UserError: A result cannot be read, a file cannot be written, or there is no such figure.
    """
    if not (options.out or options.markdown or options.png or options.json):
        repair = "add --out FILE.html, --markdown FILE.md, --png FILE.png or --json."
        raise UserError(Problem("--out", NOT_SET, "nothing would be written.", repair))
    _check_apart(options)
    report = report_of([load(path) for path in options.results])
    pictures = _pictures(report, options.png)
    if options.out:
        from bezel_bench.report.page import as_page

        write_output("--out", options.out, as_page(report))
    if options.markdown:
        from bezel_bench.report.markdown import as_markdown

        write_output("--markdown", options.markdown, as_markdown(report))
    for path, content in pictures.items():
        write_output("--png", path, content)
    written = tuple(str(path) for path in (options.out, options.markdown, *pictures) if path)
    say(_as_json(report, written) if options.json else "\n".join(f"written: {path}" for path in written))
    return 0


def _as_json(report: Report, written: tuple[str, ...]) -> str:
    from bezel_bench.report.markdown import as_markdown

    return json.dumps(summary_of(report, as_markdown(report), written), indent=2, ensure_ascii=False)


def _check_apart(options: argparse.Namespace) -> None:
    """Refuse an output file that is a result or another output file."""
    taken = {path.resolve() for path in options.results}
    for option, path in [
        ("--out", options.out),
        ("--markdown", options.markdown),
        *(("--png", p) for p in options.png),
    ]:
        if path and path.resolve() in taken:
            consequence = "it is a result or named twice, and would be overwritten."
            raise UserError(Problem(option, str(path), consequence, "choose another file."))
        if path:
            taken.add(path.resolve())


def _pictures(report: Report, paths: list[Path]) -> dict[Path, bytes]:
    figures = {figure.name: figure for figure in report.figures}
    if wrong := [str(path) for path in paths if path.suffix != ".png" or path.stem not in figures]:
        choices = ", ".join(f"{name}.png" for name in figures) or "no figure: see `Not drawn` in the report"
        consequence = "a picture must be named after its figure."
        raise UserError(Problem("--png", " ".join(wrong), consequence, f"choose of this report's: {choices}."))
    from bezel_bench.report.charts.png import as_png

    manifest = report.subjects[0].result.manifest
    hardware = manifest.platform.accelerator or "unknown hardware"
    single = f"{manifest.title}: {manifest.model} on {hardware}, {manifest.started_at:%Y-%m-%d}"
    source = f"{report.nature}; {single if len(report.manifests) == 1 else report.title}"
    return {path: as_png(figures[path.stem], source) for path in paths}
