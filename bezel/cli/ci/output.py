"""Output of the pipeline's commands: in the form that was asked for, and in the summary of the forge's run."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Protocol

from bezel.cli.local.typed_commands import as_typed
from bezel_base.command_line import exits
from bezel_base.terminal.screen import show_message
from bezel_base.text.printable import encodable
from bezel_base.text.redaction import redact, redact_values


class Report(Protocol):
    """Result of a command: one content in three forms."""

    def as_json(self) -> dict[str, object]:
        """The content as JSON: what another command of the pipeline reads."""

    def text(self) -> str:
        """The content for a terminal, ending with a newline."""

    def markdown(self) -> str:
        """The content for the forge: a comment, an issue or a run's summary, ending with a newline."""


def publish(report: Report, options: argparse.Namespace) -> None:
    """Print a report, write it as JSON to `--out`, and append it to the summary of the run, if a forge runs this.

    Raises:
        UserError: A file cannot be written.
    """
    as_json = encodable(json.dumps(redact_values(report.as_json()), indent=2, ensure_ascii=False)) + "\n"
    if options.format == "text":
        show_message(as_typed(_text(report.text())).removesuffix("\n"), sys.stdout)
    else:
        sys.stdout.write(as_json if options.format == "json" else _text(report.markdown()))
    if options.out is not None:
        exits.write_output("--out", options.out, as_json)
    # GitHub and Gitea name a file whose Markdown they show beside the run's log.
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(_text(report.markdown()))


def _text(text: str) -> str:
    return encodable(redact(text))
