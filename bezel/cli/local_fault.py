"""`bezel local fault`: lists, adds, shows and clears localcloud's faults.

Leaves out what a fault does (`bezel.localcloud.faults`); the daemon applies it on an HTTP request, as from any client.
"""

import sys
from collections.abc import Sequence
from typing import Any

import httpx

from bezel.localcloud import control
from bezel.localcloud.core.paths import Endpoint
from bezel.localcloud.faults.kinds import KINDS, Kind, checked, known, pairs
from bezel.loopback.plain_http import NO_TLS
from bezel.pulumi_engine.local_engine import EngineError

_PATH = "/localcloud/faults"


def print_kinds() -> int:
    """Print every kind of fault with its parameters; return the exit code."""
    for kind in KINDS.values():
        sys.stdout.write(f"{kind.name:<26} {kind.text}\n")
        for one in kind.parameters.values():
            choices = f" ({' | '.join(one.choices)})" if one.choices else ""
            sys.stdout.write(f"{'':<26}   {f'{one.name}={one.default}':<24} {one.text}{choices}\n")
    return 0


def print_faults(endpoint: Endpoint) -> int:
    """Print the active faults; return the exit code."""
    faults = _ask(endpoint, "GET")["faults"]
    if not faults:
        sys.stdout.write("no fault is on\n")
    for fault in faults:
        sys.stdout.write(f"{_line(fault)}\n")
    return 0


def add_fault(endpoint: Endpoint, name: str, words: Sequence[str]) -> int:
    """Add a fault, or trigger one that acts at once; return the exit code.

    Raises:
        FaultError: The kind or a parameter is wrong.
        EngineError: Nothing here can fail that way.
    """
    kind = known(name)
    values = checked(name, pairs(words))
    if kind.place == "container" and endpoint.server == "vllm":
        raise EngineError(
            f"fault {name} strikes inside a simulated vLLM, and here a real one serves, which nobody can tell to fail: "
            "start with --server sim."
        )
    answer = _ask(endpoint, "POST", json={"kind": name, "parameters": values})
    for struck in answer.get("struck", []):
        sys.stdout.write(f"{name}: {struck}\n")
    if "struck" not in answer:
        sys.stdout.write(f"on: {_line(answer)}\n{_how_to_end(kind)}\n")
    return 0


def clear_faults(endpoint: Endpoint, name: str) -> int:
    """Clear one kind of fault, or all with ""; return the exit code.

    Raises:
        EngineError: That fault is not active.
    """
    cleared = _ask(endpoint, "DELETE", f"/{name}" if name else "")["cleared"]
    sys.stdout.write(f"cleared: {', '.join(cleared) or 'nothing, no fault was on'}\n")
    return 0


def _line(fault: dict[str, Any]) -> str:
    given = " ".join(f"{name}={value}" for name, value in fault["parameters"].items())
    met = f"  ({fault['met']} matched so far)" if fault.get("met") else ""
    return f"{fault['kind']} {given}".rstrip() + met


def _how_to_end(kind: Kind) -> str:
    return f"It lasts, also over a restart, until `bezel local fault clear {kind.name}`."


def _ask(endpoint: Endpoint, method: str, more: str = "", *, json: object = None) -> dict[str, Any]:
    try:
        headers = {"Authorization": f"Bearer {control.own_token(endpoint)}"}
        with httpx.Client(base_url=endpoint.base, timeout=30, trust_env=False, verify=NO_TLS) as client:
            answer = client.request(method, _PATH + more, headers=headers, json=json)
            found: dict[str, Any] = answer.json()
    except (httpx.HTTPError, ValueError) as error:
        raise EngineError(f"localcloud at {endpoint.base} does not answer: {type(error).__name__}.") from None
    if answer.is_error:
        raise EngineError(f"fault: {found.get('error', {}).get('message', answer.status_code)}")
    return found
