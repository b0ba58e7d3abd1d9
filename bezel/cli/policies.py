"""`bezel policies path NAME`: prints the folder of an installed policy pack."""

import argparse
import sys
from typing import Literal

from bezel.engine.project.installed_packs import installed_pack


def path(options: argparse.Namespace) -> Literal[0]:
    """Print the folder; return the exit code."""
    sys.stdout.write(f"{installed_pack(options.name)}\n")
    return 0
