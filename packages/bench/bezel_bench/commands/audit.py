"""`bezel bench audit FILE...`: reports impossible figures in other people's benchmark results.

Leaves out how findings are detected: see bezel_bench.audit.
"""

import argparse
import json
import sys
from typing import Literal

from bezel_base.errors import UserError
from bezel_base.terminal.screen import show
from bezel_bench.audit.render import as_lines, as_values
from bezel_bench.audit.runner import audit_files, check_labels
from bezel_bench.commands.targets import Targets


class UnreadableFilesError(UserError):
    """Files that could not be read; the others were audited."""

    # Not a WrongValueError: a file of the right name may be unreadable. Not 1, which --strict has for findings.
    exit_code = 2


def run(_: Targets, options: argparse.Namespace) -> Literal[0, 1]:
    """Audit the files, print the findings, return the exit code.

    Raises:
        UserError: A label is not in the catalogue, or a file cannot be read.
    """
    check_labels(options.machine, options.model)
    audited = audit_files(options.files, machine=options.machine, model=options.model)
    if options.json:
        sys.stdout.write(json.dumps(as_values(audited), indent=2) + "\n")
    elif audited.sources:
        show(as_lines(audited))
    if audited.unreadable:
        raise UnreadableFilesError(*audited.unreadable)
    return 1 if options.strict and audited.findings else 0
