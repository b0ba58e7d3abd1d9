"""`bezel tpu find|sweep`: finds capacity for leases, deletes leftovers.

Owns printing, the confirmation before a sweep, and the list of zones. Leaves sweeping to `bezel.leases`, and finding to
`bezel.operations.zones.zone_search`. The other commands of `bezel tpu` are operations: `bezel.operations.tpu`.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any, Literal

from bezel.engine.project.lease_zones import lease_zones
from bezel.engine.project.project import Project, checked_cloud_project
from bezel.leases.clock import clock_of
from bezel.leases.inventory import LeaseInventory, Leftover, new_client, sweep_plan
from bezel.leases.state.observation import Observation
from bezel.operations.zones.zone_search import FINDING_COLUMNS, find
from bezel.planner import LeasePlan, make_plan
from bezel_base.console import note, say
from bezel_base.errors import NOT_SET, Problem, UserError
from bezel_base.terminal.blocks import Table
from bezel_base.terminal.screen import show
from bezel_catalog.quantities import duration_text, parse_duration

MAX_PROBE_SECONDS = 7200
"""The longest wait that Compute Engine allows a request, and longer than a user would watch."""


def sweep(project: Project, options: argparse.Namespace) -> Literal[0, 1]:
    """Show what would be deleted, and delete it after a confirmation; return the exit code.

    Raises:
        UserError: An option is wrong, or a request failed.
    """
    clock = clock_of()
    with new_client(clock) as client:
        zones, cloud_project = _zones(project, options), checked_cloud_project(options.project)
        inventory = LeaseInventory(client, clock, cloud_project, zones, note, named=bool(options.zone))
        return _delete(inventory, sweep_plan(inventory.list(), now=clock.now(), of_stacks=options.of_stack), options)


def _zones(project: Project, options: argparse.Namespace) -> tuple[str, ...]:
    """The zones that the user named; by default every zone that may hold a lease of this project."""
    return tuple(dict.fromkeys(options.zone)) or lease_zones(project, note)


def _row(lease: Observation) -> Sequence[str]:
    state = f"{lease.state} ({lease.word})" if lease.word else str(lease.state)
    return lease.name, lease.stack, lease.zone, lease.hardware or "-", state


def _plain(lease: Observation) -> dict[str, Any]:
    values = {field.name: getattr(lease, field.name) for field in fields(lease)}
    return values | {"state": str(lease.state), "labels": dict(lease.labels)}


def _delete(inventory: LeaseInventory, plan: Sequence[Leftover], options: argparse.Namespace) -> Literal[0, 1]:
    """Show what will be deleted, request confirmation, delete it and wait for the end."""
    if options.json:
        _print_json([_plain(leftover.lease) | {"why": leftover.why} for leftover in plan])
    elif plan:
        rows = ((*_row(leftover.lease), leftover.why) for leftover in plan)
        _print_table(("to delete", "stack", "zone", "hardware", "state", "why"), rows)
    if not plan:
        note("nothing to delete in these zones")
        return 0
    if not (options.yes or _is_confirmed()):
        return 1
    failed = inventory.sweep(plan)
    for lease, reason in failed.items():
        note(f"bezel: {lease} was not deleted: {reason}")
    note(f"{len(plan) - len(failed)} of {len(plan)} deleted")
    return 1 if failed else 0


def find_zones(project: Project, options: argparse.Namespace) -> Literal[0]:
    """Print a row for each zone; with --probe, request a lease in each and delete it at once.

    Raises:
        UserError: An option is wrong, the stack cannot be planned, or a request failed.
    """
    wait = parse_duration(options.wait)
    if not wait or wait > MAX_PROBE_SECONDS:
        consequence = f"a probe waits from 1s to {duration_text(MAX_PROBE_SECONDS)}."
        raise UserError(Problem("--wait", options.wait, consequence, "write e.g. 2m."))
    cloud_project = checked_cloud_project(options.project or project.cloud_project(options.stack))
    plan = make_plan(
        project.configuration(options.stack), project=cloud_project, stack=options.stack, models=project.models()
    )
    if not isinstance(plan, LeasePlan):
        consequence = "the stack leases nothing: Cloud Run owns its accelerator."
        raise UserError(Problem("stack", options.stack, consequence, "choose a stack with `bezel:lease`."))
    hardware = plan.terms.hardware
    known_zones = {*hardware.zones, *hardware.zones_refused, *(choice.zone for choice in plan.terms.zones)}
    zones = tuple(dict.fromkeys(options.zone)) or tuple(sorted(known_zones))
    rows = find(plan, zones, clock_of(), probe_seconds=wait if options.probe else None, show=note)
    if options.json:
        _print_json(rows)
    else:
        _print_table(FINDING_COLUMNS, (tuple(row.values()) for row in rows))
    return 0


def _is_confirmed() -> bool:
    if not sys.stdin.isatty():
        raise UserError(
            Problem("--yes", NOT_SET, "nothing was deleted: there is no terminal to confirm it.", "add it.")
        )
    sys.stderr.write("delete all of these? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _print_json(value: object) -> None:
    say(json.dumps(value, indent=2, default=str))


def _print_table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    show([Table(header, [*rows])])
