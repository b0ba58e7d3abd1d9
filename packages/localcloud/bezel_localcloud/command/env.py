"""`env`: the variables that point clients to a running localcloud."""

import argparse
import json
import shlex
import sys

from bezel_localcloud.command.cloud import LocalCloud
from bezel_localcloud.command.program import Program, Variables


def run(program: Program, options: argparse.Namespace) -> int:
    """Print the variables; return the exit code."""
    endpoint = LocalCloud.of(program, options).running()
    sys.stdout.write(format_variables(program.variables(endpoint, options), options.format))
    return 0


def format_variables(variables: Variables, form: str) -> str:
    """The variables as lines for a shell, as lines of a file (`NAME=VALUE`), or as JSON."""
    values = variables.values
    if form == "json":
        return json.dumps(values, indent=2) + "\n"
    if form == "file":
        return "".join(f"{name}={value}\n" for name, value in values.items())
    exports = "".join(f"export {name}={shlex.quote(value)}\n" for name, value in values.items())
    return f"unset {' '.join(name for name in variables.foreign if name not in values)}\n{exports}"
