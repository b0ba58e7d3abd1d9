"""`python -m bezel_pulumi_offline.fidelity RECORDINGS`: what the stand-in does otherwise than the published provider.

Every recorded call is repeated against the stand-in, with a server that returns the recorded responses of Google.
Identical requests in a row count once, as the published provider waits by reading. Exit status 0: each difference is a
known one; 1: another occurred, or with --complete a known one did not, or a type has no recordings; 2: wrong arguments,
or a folder without recordings. The format of recordings: `recordings`.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bezel_base.command_line.program import run_program
from bezel_pulumi_offline.fidelity.report import compare, differences_without_explanation, gaps, summary


def main() -> int:
    """Run the command; return its exit status."""
    return run_program("bezel-pulumi-offline", None, run)


def run(arguments: Sequence[str]) -> int:
    """Print and judge the comparison.

    Raises:
        RecordingsError: The folder has no recordings, or some that cannot be compared.
    """
    parser = argparse.ArgumentParser(
        prog="python -m bezel_pulumi_offline.fidelity",
        description="Compare the stand-in gcp provider with recordings of the published one.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "recordings", type=Path, metavar="RECORDINGS", help="folder with state/, http/, provider/, faults/"
    )
    parser.add_argument(
        "--show", default="", metavar="TYPE", help="print each comparison of types that contain this text"
    )
    parser.add_argument(
        "--complete", action="store_true", help="fail as well if a type or a known difference is not in the recordings"
    )
    options = parser.parse_args(arguments)
    compared, explanations = compare(options.recordings)
    for item in compared:
        if options.show and options.show in item.resource:
            print(f"{item.place}: {'different' if item.differences else 'equal'}")
    problems = list(differences_without_explanation(compared, explanations))
    if options.complete:
        problems += gaps(compared, explanations)
    print("\n".join([*problems, *summary(compared)]))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
