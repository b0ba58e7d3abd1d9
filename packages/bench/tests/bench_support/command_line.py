"""Options of `bezel-bench` as its commands get them."""

import argparse
from collections.abc import Sequence

from bezel_bench.commands.main import choose_endpoint
from bezel_bench.commands.table import PROGRAM, program_table
from bezel_bench.commands.targets import UrlTargets


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command line, which begins with the command's name; those that are left open are chosen."""
    options = program_table().parser(PROGRAM).read(arguments)
    choose_endpoint(UrlTargets(), options)
    return options
