"""`fault`: lists, adds, shows and clears localcloud's faults.

Leaves out what a fault does (`bezel_localcloud.faults`); the daemon applies it on an HTTP request, as from any client.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from bezel_base.errors import Problem, UserError
from bezel_base.terminal.blocks import Line, NamedValues
from bezel_base.terminal.screen import show
from bezel_base.text.shell import shell_word
from bezel_localcloud import PROGRAM, control_client
from bezel_localcloud.command.cloud import LocalCloud
from bezel_localcloud.command.program import Program
from bezel_localcloud.core.paths import Endpoint
from bezel_localcloud.faults.kinds import KINDS, kind_of, parse_pairs, parse_parameters


def run(program: Program, options: argparse.Namespace) -> int:
    """Run `list`, `show`, `add` or `clear`; return the exit code."""
    if options.action == "list":
        return print_kinds()
    if options.action != "show" and options.kind:  # a wrong word is refused whether localcloud runs or not
        kind_of(options.kind, program=program.typed)
    if options.action == "add":
        parse_parameters(options.kind, parse_pairs(options.parameters))
    endpoint = LocalCloud.of(program, options).running()
    if options.action == "show":
        return print_faults(endpoint)
    if options.action == "add":
        return add_fault(endpoint, options.kind, options.parameters, program=program.typed)
    return clear_faults(endpoint, options.kind, program=program.typed)


def print_kinds() -> int:
    """Print every kind of fault with its parameters; return the exit code."""
    for kind in KINDS.values():
        rows = [
            (
                f"{parameter.name}={parameter.default}",
                parameter.text + (f" ({' | '.join(parameter.choices)})" if parameter.choices else ""),
            )
            for parameter in kind.parameters.values()
        ]
        show([Line(f"{kind.name}: {kind.text}"), NamedValues(rows, indent=4)])
    return 0


def print_faults(endpoint: Endpoint) -> int:
    """Print the active faults; return the exit code."""
    faults = control_client.active_faults(endpoint)
    sys.stdout.write("".join(f"{_line(fault)}\n" for fault in faults) or "no active faults\n")
    return 0


def add_fault(endpoint: Endpoint, name: str, pairs: Sequence[str], *, program: str = PROGRAM) -> int:
    """Add a fault, or trigger one that acts at once; return the exit code.

    Args:
        endpoint: The localcloud.
        name: The kind.
        pairs: Its parameters, NAME=VALUE each.
        program: The program that clears it again, as a user types it.

    Raises:
        UserError: The kind or a parameter is wrong, or the fault cannot act on this localcloud.
    """
    kind = kind_of(name, program=program)
    values = parse_parameters(name, parse_pairs(pairs))
    if kind.place == "container" and endpoint.server == "vllm":
        consequence = "this fault acts in a simulated vLLM, and the services of this localcloud run a real one."
        repair = f"start localcloud with --server sim, or choose another fault: `{program} fault list`."
        raise UserError(Problem("fault", name, consequence, repair))
    response = control_client.add_fault(endpoint, name, values)
    for target in response.get("struck", []):
        sys.stdout.write(f"{name}: {target}\n")
    if "struck" not in response:
        sys.stdout.write(
            f"active: {_line(response)}\n"
            f"It stays active, also after a restart, until `{program} fault clear {shell_word(kind.name)}`.\n"
        )
    return 0


def clear_faults(endpoint: Endpoint, name: str, *, program: str = PROGRAM) -> int:
    """Clear one kind of fault, or all with ""; return the exit code.

    Raises:
        UserError: There is no such kind, or that fault is not active.
    """
    if name:
        kind_of(name, program=program)
    cleared = control_client.clear_faults(endpoint, name)
    sys.stdout.write(f"cleared: {', '.join(cleared) or 'nothing, no fault was active'}\n")
    return 0


def _line(fault: dict[str, Any]) -> str:
    parameters = " ".join(f"{name}={value}" for name, value in fault["parameters"].items())
    matched = f"  ({fault['met']} matched so far)" if fault.get("met") else ""
    return f"{fault['kind']} {parameters}".rstrip() + matched
