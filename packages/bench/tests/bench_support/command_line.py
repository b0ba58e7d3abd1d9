"""Options of `bezel-bench` as its commands get them."""

import argparse
from collections.abc import Sequence

from bezel_bench.commands.table import PROGRAM, program_table


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of a command line, which begins with the command's name."""
    return program_table().parser(PROGRAM).read(arguments)
