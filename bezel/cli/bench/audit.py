"""`bezel bench audit FILE...`: reports impossible figures in other people's benchmark results.

Leaves out how findings are detected: see bezel.bench.audit. Exit code 0, or 1 with --strict where there are findings;
2 where a file could not be read.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from bezel.errors import UserError

if TYPE_CHECKING:
    import argparse

    from bezel.pulumi_engine.project import Project


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of the command."""
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="CSV grids, claims, JSON of vllm bench serve or guidellm, results of `bezel bench`; audited together",
    )
    parser.add_argument(
        "--machine", default="", metavar="NAME", help='of files that do not say it: "l4", "8 x l4", "v6e-4"'
    )
    parser.add_argument("--model", default="", metavar="NAME", help='of files that do not say it: "gemma-4-12b fp8"')
    parser.add_argument("--json", action="store_true", help="as JSON")
    parser.add_argument("--strict", action="store_true", help="exit code 1 where something is found")


def run(_: Project, options: argparse.Namespace) -> int:
    """Audit the files, print the findings, return the exit code."""
    from bezel.bench.audit.labels import machine_in, shape_in
    from bezel.bench.audit.render import as_text, as_values
    from bezel.bench.audit.runner import audit_files

    for name, known in (("machine", machine_in), ("model", shape_in)):
        if (told := getattr(options, name)) and not known(told):
            raise UserError(f"--{name} {told!r} is not in the catalogue: see `bezel catalog show`; nothing was audited")
    found = audit_files(options.files, machine=options.machine, model=options.model)
    if options.json:
        sys.stdout.write(json.dumps(as_values(found), indent=2) + "\n")
    elif found.sources:
        sys.stdout.write("\n".join(as_text(found)) + "\n")
    for text in found.unreadable:
        sys.stderr.write(f"bezel: {text}\n")
    if found.unreadable:
        return 2
    return 1 if options.strict and found.findings else 0
