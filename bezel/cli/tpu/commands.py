"""`bezel tpu find|list|describe|delete|sweep`: finds capacity for leases, shows a project's leases, deletes leftovers.

Owns printing, the confirmation before a deletion, and the list of zones. Leaves listing, deleting and sweeping
to `bezel.leases`, finding to `bezel.cli.tpu.find`, and the options to `bezel.cli.tpu.arguments`.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bezel.cli.tpu.find import FINDING_COLUMNS, find
from bezel.errors import UserError
from bezel.leases.clock import PlatformClock, clock_of, rfc3339
from bezel.leases.controller import LeaseError
from bezel.leases.inventory import LeaseInventory, Leftover, new_client, sweep_plan
from bezel.leases.observation import Observation
from bezel.planner import LeasePlan, PlanError, make_plan
from bezel.planner.base.hardware import leased_hardware
from bezel.planner.base.names import is_project_id
from bezel.planner.base.quantities import duration_text, parse_duration
from bezel.pulumi_engine.project import Project, ProjectError, cloud_project_of
from bezel.rest import RestError

MOST_PROBE_SECONDS = 7200
"""The longest wait that Compute Engine allows a request, and longer than a user would watch."""


class TpuError(UserError):
    """A user's mistake; the text is for the user."""


def run_tpu(project: Project, options: argparse.Namespace) -> int:
    """Run one of the subcommands; return the exit code."""
    try:
        if options.action == "find":
            return _find(project, options)
        clock = clock_of()
        with new_client(clock) as client:
            zones, named = _zones(project, options), bool(options.zone)
            fleet = LeaseInventory(client, clock, _project(project, options), zones, _tell, named=named)
            if options.action == "list":
                return _list(fleet, as_json=options.json)
            if options.action == "sweep":
                return _sweep(fleet, clock, options)
            return _one(fleet, options)
    except (TpuError, LeaseError, RestError, PlanError) as error:
        sys.stderr.write(f"bezel: {error}\n")
        return 1


def _project(project: Project, options: argparse.Namespace) -> str:
    stack = getattr(options, "stack", None)
    found = options.project or (project.cloud_project(stack) if stack else cloud_project_of(os.environ))
    if not found:
        raise TpuError("no Google Cloud project is named: add --project PROJECT_ID, or set GOOGLE_CLOUD_PROJECT.")
    if not is_project_id(str(found)):
        raise TpuError(f"{str(found)!r} is no project's ID, so no lease can be looked for: see `gcloud projects list`.")
    return str(found)


def _zones(project: Project, options: argparse.Namespace) -> tuple[str, ...]:
    """Every zone that may hold a lease of this project: those of the catalogue and those of the stack files."""
    if options.zone:
        return tuple(dict.fromkeys(options.zone))
    known = {zone for kind in leased_hardware().values() for zone in (*kind.zones, *kind.zones_refused)}
    for stack in project.stacks():
        try:
            known |= _zones_named(project.configuration(stack))
        except ProjectError as error:
            _tell(f"zones that only the stack file of {stack} names are not looked into: {error}")
    return tuple(sorted(known))


def _zones_named(configuration: Mapping[str, object]) -> set[str]:
    """The zones that a stack file names; problems of the file are for the plan to report."""
    lease = configuration.get("lease")
    wishes = lease.get("zones") if isinstance(lease, dict) else None
    named = [wish.get("zone") for wish in wishes if isinstance(wish, dict)] if isinstance(wishes, list) else []
    return {zone for zone in named if isinstance(zone, str)}


def _list(fleet: LeaseInventory, *, as_json: bool) -> int:
    found = fleet.list()
    if as_json:
        sys.stdout.write(json.dumps([_plain(one) for one in found], indent=2) + "\n")
    elif found:
        _table(("lease", "stack", "zone", "hardware", "state", "ends", "address"), map(_row, found))
    else:
        _tell("no lease of ours in these zones")
    return 0


def _row(one: Observation) -> Sequence[str]:
    ends = rfc3339(one.ends_at) or "-"
    state = f"{one.state} ({one.word})" if one.word else str(one.state)
    return one.name, one.stack, one.zone, one.hardware or "-", state, ends, one.address or "-"


def _plain(one: Observation) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__dataclass_fields__} | {
        "state": str(one.state),
        "labels": dict(one.labels),
    }


def _one(fleet: LeaseInventory, options: argparse.Namespace) -> int:
    found = [one for one in fleet.list() if one.name == options.name]
    if not found:
        raise TpuError(f"no lease of ours is called {options.name} in these zones: `bezel tpu list` shows all.")
    if options.action == "describe":
        sys.stdout.write(json.dumps([fleet.describe(one) for one in found], indent=2, default=str) + "\n")
        return 0
    plan = [Leftover(one, "asked for by name") for one in found]
    return _delete(fleet, plan, options)


def _sweep(fleet: LeaseInventory, clock: PlatformClock, options: argparse.Namespace) -> int:
    plan = sweep_plan(fleet.list(), now=clock.now(), of_stacks=options.of_stack)
    return _delete(fleet, plan, options)


def _delete(fleet: LeaseInventory, plan: Sequence[Leftover], options: argparse.Namespace) -> int:
    """Show what will be deleted, ask for confirmation, delete it and wait for the end."""
    if options.json:
        shown = [_plain(leftover.lease) | {"why": leftover.why} for leftover in plan]
        sys.stdout.write(json.dumps(shown, indent=2) + "\n")
    elif plan:
        rows = [(*_row(leftover.lease)[:5], leftover.why) for leftover in plan]
        _table(("to delete", "stack", "zone", "hardware", "state", "why"), rows)
    if not plan:
        _tell("nothing to sweep in these zones")
        return 0
    if not _agreed(options):
        return 1
    failed = fleet.sweep(plan)
    for place, why in failed.items():
        _tell(f"bezel: {place} was not deleted: {why}")
    _tell(f"{len(plan) - len(failed)} of {len(plan)} are gone")
    return 1 if failed else 0


def _find(project: Project, options: argparse.Namespace) -> int:
    """Print a row for each zone; with --probe, request a lease in each and delete it at once."""
    wait = parse_duration(options.wait)
    if not wait or wait > MOST_PROBE_SECONDS:
        raise TpuError(f"--wait {options.wait}: a probe waits 1s to {duration_text(MOST_PROBE_SECONDS)}, e.g. 2m.")
    cloud_project = _project(project, options)
    plan = make_plan(project.configuration(options.stack), project=cloud_project, stack=options.stack)
    if not isinstance(plan, LeasePlan):
        raise TpuError(f"{options.stack} leases nothing: its accelerator is Cloud Run's. Name a stack with a `lease`.")
    hardware = plan.terms.hardware
    known = {*hardware.zones, *hardware.zones_refused, *(each.zone for each in plan.terms.zones)}
    zones = tuple(dict.fromkeys(options.zone)) or tuple(sorted(known))
    rows = find(plan, zones, clock_of(), probe_seconds=wait if options.probe else None, show=_tell)
    if options.json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    else:
        _table(FINDING_COLUMNS, (tuple(row.values()) for row in rows))
    return 0


def _agreed(options: argparse.Namespace) -> bool:
    if options.yes:
        return True
    if not sys.stdin.isatty():
        _tell("bezel: nothing was deleted: nobody can be asked here. Add --yes.")
        return False
    sys.stderr.write("delete all of these? [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    cells = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    for row in cells:
        _say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _tell(line: str) -> None:
    """Print a message to standard error, apart from the result, which a program may read."""
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
