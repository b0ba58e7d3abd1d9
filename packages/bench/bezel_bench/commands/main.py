"""Entry point of `bezel-bench`: `bezel bench` without a project, for servers that are named by their addresses."""

import argparse
import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bezel_base.command_line.program import run_program
from bezel_bench.commands.table import PROGRAM, program_table

if TYPE_CHECKING:
    from bezel_bench.commands.targets import Targets


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code (bezel_base.command_line.exit_codes)."""
    return run_program(PROGRAM, arguments, _run)


def _run(arguments: Sequence[str]) -> int:
    options = program_table().parser(PROGRAM).read(arguments)
    from bezel_bench.commands.targets import UrlTargets, check_no_project  # late: the help needs no server

    check_no_project(options)
    return run_command(UrlTargets(), options)


def run_command(targets: "Targets", options: argparse.Namespace) -> int:
    """Import and call the function of the command that the options name; return its exit code.

    Raises:
        UserError: It failed, or no endpoint of the named server can be measured.
    """
    choose_endpoint(targets, options)
    module, _, function = options.call.partition(":")
    code: int = getattr(importlib.import_module(module), function)(targets, options)
    return code


def choose_endpoint(targets: "Targets", options: argparse.Namespace) -> None:
    """Set the endpoint, and the metric of a surface, that options of a load leave open.

    Raises:
        UserError: No endpoint of the named server can be measured.
    """
    if "endpoint" in options:
        options.endpoint = options.endpoint or targets.endpoint(options)
    if "metric" in options:
        from bezel_bench.load.plan import GENERATING  # late: commands that only read files need no load

        generates = options.endpoint in GENERATING
        options.metric = options.metric or ("output_tokens_per_second" if generates else "input_tokens_per_second")
