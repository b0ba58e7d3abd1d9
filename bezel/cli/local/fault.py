"""`bezel local fault`: lists, adds, shows and clears localcloud's faults.

Leaves out what a fault does (`bezel_localcloud.faults`); the daemon applies it on an HTTP request, as from any client.
"""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import httpx

from bezel.cli.local.cloud import LocalCloud
from bezel_base.errors import Problem, UserError
from bezel_base.loopback.plain_http import NO_TLS
from bezel_base.text.shell import quoted
from bezel_localcloud import control
from bezel_localcloud.core.paths import Endpoint
from bezel_localcloud.faults.kinds import KINDS, kind_of, parse_pairs, parse_parameters

_PATH = "/localcloud/faults"


def run(options: argparse.Namespace) -> int:
    """Run `list`, `show`, `add` or `clear`; return the exit code."""
    if options.action == "list":
        return print_kinds()
    endpoint = LocalCloud.of(options).running()
    if options.action == "show":
        return print_faults(endpoint)
    if options.action == "add":
        return add_fault(endpoint, options.kind, options.parameters)
    return clear_faults(endpoint, options.kind)


def print_kinds() -> int:
    """Print every kind of fault with its parameters; return the exit code."""
    for kind in KINDS.values():
        sys.stdout.write(f"{kind.name:<26} {kind.text}\n")
        for parameter in kind.parameters.values():
            choices = f" ({' | '.join(parameter.choices)})" if parameter.choices else ""
            default = f"{parameter.name}={parameter.default}"
            sys.stdout.write(f"{'':<26}   {default:<24} {parameter.text}{choices}\n")
    return 0


def print_faults(endpoint: Endpoint) -> int:
    """Print the active faults; return the exit code."""
    faults = _request(endpoint, "GET")["faults"]
    sys.stdout.write("".join(f"{_line(fault)}\n" for fault in faults) or "no active faults\n")
    return 0


def add_fault(endpoint: Endpoint, name: str, words: Sequence[str]) -> int:
    """Add a fault, or trigger one that acts at once; return the exit code.

    Raises:
        UserError: The kind or a parameter is wrong, or the fault cannot act on this localcloud.
    """
    kind = kind_of(name)
    values = parse_parameters(name, parse_pairs(words))
    if kind.place == "container" and endpoint.server == "vllm":
        consequence = "this fault acts in a simulated vLLM, and the services of this localcloud run a real one."
        repair = "start localcloud with --server sim, or choose another fault: `bezel local fault list`."
        raise UserError(Problem("fault", name, consequence, repair))
    response = _request(endpoint, "POST", json={"kind": name, "parameters": values})
    for target in response.get("struck", []):
        sys.stdout.write(f"{name}: {target}\n")
    if "struck" not in response:
        sys.stdout.write(
            f"active: {_line(response)}\n"
            f"It stays active, also after a restart, until `bezel local fault clear {quoted(kind.name)}`.\n"
        )
    return 0


def clear_faults(endpoint: Endpoint, name: str) -> int:
    """Clear one kind of fault, or all with ""; return the exit code.

    Raises:
        UserError: That fault is not active.
    """
    cleared = _request(endpoint, "DELETE", f"/{name}" if name else "")["cleared"]
    sys.stdout.write(f"cleared: {', '.join(cleared) or 'nothing, no fault was active'}\n")
    return 0


def _line(fault: dict[str, Any]) -> str:
    parameters = " ".join(f"{name}={value}" for name, value in fault["parameters"].items())
    matched = f"  ({fault['met']} matched so far)" if fault.get("met") else ""
    return f"{fault['kind']} {parameters}".rstrip() + matched


def _request(endpoint: Endpoint, method: str, path: str = "", *, json: object = None) -> dict[str, Any]:
    try:
        headers = {"Authorization": f"Bearer {control.own_token(endpoint)}"}
        with httpx.Client(base_url=endpoint.base, timeout=30, trust_env=False, verify=NO_TLS) as client:
            response = client.request(method, _PATH + path, headers=headers, json=json)
            body: dict[str, Any] = response.json()
    except (httpx.HTTPError, ValueError) as error:
        raise UserError(f"localcloud at {endpoint.base} does not respond: {type(error).__name__}.") from None
    if response.is_error:
        raise UserError(f"fault: {body.get('error', {}).get('message', response.status_code)}")
    return body
