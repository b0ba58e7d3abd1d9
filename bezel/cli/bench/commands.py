"""`bezel bench COMMAND`: the table of commands, each in a module of its own.

For each name in `ACTIONS` the module `bezel.cli.bench.NAME` defines `arguments(parser)` and `run(project, options)`,
and imports late what it runs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

    from bezel.pulumi_engine.project import Project

ACTIONS: dict[str, str] = {
    "run": "one load: sent, measured, checked",
    "sweep": "throughput over contexts and users, as far as it needs to be known",
    "goodput": "the highest load that still keeps given limits",
    "ab": "servers, or settings of one, against each other: what differs beyond chance",
    "export": "a result as CSV, or in the shape of `vllm bench serve`",
    "report": "results as one page, as Markdown, as pictures",
    "audit": "what in results of anybody's benchmark cannot be as it is said",
    "job": "as run, the load sent by the tasks of a Cloud Run job",
    "worker": "what a task of `job` runs; nothing to be called by hand",
}


def add_actions(parser: argparse.ArgumentParser) -> None:
    """Add the commands with their options."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="COMMAND")
    for name, text in ACTIONS.items():
        _module(name).arguments(actions.add_parser(name, help=text, description=text))


def run_bench(project: Project, options: argparse.Namespace) -> int:
    """Run the chosen command; return its exit code."""
    code: int = _module(options.action).run(project, options)
    return code


def _module(name: str) -> Any:
    return importlib.import_module(f"bezel.cli.bench.{name}")
