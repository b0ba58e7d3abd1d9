"""`bezel tpu find|list|describe|delete|sweep`: what is leased in a project, what could be, what nobody wants any more.

Owns printing, asking before anything is deleted, and which zones are looked at. Leaves listing, deleting and sweeping
to `bezel.leases`, and finding to `bezel.ops.tpu_find`.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from bezel.leases.clock import Clock, clock_of, rfc3339
from bezel.leases.engine import LeaseError
from bezel.leases.fleet import Fleet, new_client, sweep_plan
from bezel.leases.observation import Observation
from bezel.ops.project import Project
from bezel.ops.tpu_find import FINDING_COLUMNS, find
from bezel.planner import LeasePlan, PlanError, make_plan
from bezel.planner.durations import parse_duration
from bezel.planner.leased import Leased, leased_hardware
from bezel.rest import RestError

if TYPE_CHECKING:
    Parsers = argparse._SubParsersAction[argparse.ArgumentParser]  # noqa: SLF001 - it has no other name

HELP = "leases of TPUs and of machines with GPUs: found, listed, described, deleted, swept"


class TpuError(Exception):
    """A user's mistake; the text is for the user."""


def add_arguments(commands: "Parsers") -> None:
    """The subcommands with their options."""
    parser = commands.add_parser("tpu", help=HELP, description=HELP)
    actions = parser.add_subparsers(dest="action", required=True, metavar="COMMAND")
    find = actions.add_parser("find", help="each zone: hardware, quota, price, and with --probe capacity")
    find.add_argument("stack", help="whose hardware and model are looked for")
    find.add_argument("--probe", action="store_true", help="ask for a real lease in each zone, given back at once")
    find.add_argument("--wait", default="2m", metavar="TIME", help="how long a probe waits for capacity (default: 2m)")
    _common(find)
    listed = actions.add_parser("list", help="every lease that a stack of ours asked for")
    _common(listed)
    for name, about in (
        ("describe", "all that is known of one: its boot, the end of its console"),
        ("delete", "give one back, and see it gone"),
    ):
        one = actions.add_parser(name, help=about)
        one.add_argument("name", help="of the lease, as `list` shows it")
        _common(one)
    sweep = actions.add_parser(
        "sweep", help="what failed or is over and still uses quota: listed, then deleted; nothing without our labels"
    )
    sweep.add_argument(
        "--of-stack", action="append", default=[], metavar="STACK", help="and everything of this stack; may be repeated"
    )
    _common(sweep)
    for action in ("delete", "sweep"):
        actions.choices[action].add_argument("--yes", action="store_true", help="do not ask")


def run_tpu(project: Project, options: argparse.Namespace) -> int:
    """Run one of the subcommands; the exit code."""
    try:
        if options.action == "find":
            return _find(project, options)
        clock = clock_of()
        with new_client(clock) as client:
            fleet = Fleet(client, clock, _project(project, options), _zones(options), _say)
            if options.action == "list":
                return _list(fleet, as_json=options.json)
            if options.action == "sweep":
                return _sweep(fleet, clock, options)
            return _one(fleet, options)
    except (TpuError, LeaseError, RestError, PlanError) as error:
        sys.stderr.write(f"bezel: {error}\n")
        return 1


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", help="Google Cloud project (default: that of the environment)")
    parser.add_argument(
        "--zone", action="append", default=[], help="look there only; may be repeated (default: every zone known)"
    )
    parser.add_argument("--json", action="store_true", help="as JSON")


def _project(project: Project, options: argparse.Namespace) -> str:
    found = options.project or os.environ.get("GOOGLE_PROJECT") or os.environ.get("GOOGLE_CLOUD_PROJECT")
    if not found and getattr(options, "stack", None):
        found = project.cloud_project(options.stack)
    if not found:
        raise TpuError("no Google Cloud project is named: add --project PROJECT_ID, or set GOOGLE_CLOUD_PROJECT.")
    return str(found)


def _zones(options: argparse.Namespace, hardware: Leased | None = None) -> tuple[str, ...]:
    kinds = [hardware] if hardware else leased_hardware().values()
    known = sorted({zone for kind in kinds for zone in (*kind.zones, *kind.zones_refused)})
    return tuple(options.zone) or tuple(known)


def _list(fleet: Fleet, *, as_json: bool) -> int:
    found = fleet.list()
    if as_json:
        sys.stdout.write(json.dumps([_plain(one) for one in found], indent=2) + "\n")
    elif found:
        _table(("lease", "stack", "zone", "hardware", "state", "ends", "address"), map(_row, found))
    else:
        _say("no lease of ours in these zones")
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


def _one(fleet: Fleet, options: argparse.Namespace) -> int:
    found = [one for one in fleet.list() if one.name == options.name]
    if not found:
        raise TpuError(f"no lease of ours is called {options.name} in these zones: `bezel tpu list` shows all.")
    if options.action == "describe":
        sys.stdout.write(json.dumps([fleet.describe(one) for one in found], indent=2, default=str) + "\n")
        return 0
    _table(("to delete", "stack", "zone", "hardware", "state", "ends", "address"), map(_row, found))
    if not _agreed(options):
        return 1
    for one in found:
        fleet.delete(one)
        _say(f"{one.name} in {one.zone} is gone")
    return 0


def _sweep(fleet: Fleet, clock: Clock, options: argparse.Namespace) -> int:
    plan = sweep_plan(fleet.list(), now=clock.now(), of_stacks=options.of_stack)
    if options.json:
        shown = [_plain(leftover.seen) | {"why": leftover.why} for leftover in plan]
        sys.stdout.write(json.dumps(shown, indent=2) + "\n")
    elif not plan:
        _say("nothing to sweep in these zones")
    else:
        rows = [(one.seen.name, one.seen.stack, one.seen.zone, str(one.seen.state), one.why) for one in plan]
        _table(("to delete", "stack", "zone", "state", "why"), rows)
    if not plan or not _agreed(options):
        return 0 if not plan else 1
    failed = fleet.sweep(plan)
    for place, why in failed.items():
        sys.stderr.write(f"bezel: {place} was not deleted: {why}\n")
    _say(f"{len(plan) - len(failed)} of {len(plan)} are gone")
    return 1 if failed else 0


def _find(project: Project, options: argparse.Namespace) -> int:
    """A row for each zone; with --probe each is asked for a lease that is given back at once."""
    cloud_project = _project(project, options)
    plan = make_plan(project.configuration(options.stack), project=cloud_project, stack=options.stack)
    if not isinstance(plan, LeasePlan):
        raise TpuError(f"{options.stack} leases nothing: its accelerator is a GPU of Cloud Run.")
    wait = parse_duration(options.wait)
    if not wait:
        raise TpuError(f"--wait {options.wait} is no duration: write e.g. 2m.")
    zones = _zones(options, plan.terms.hardware)
    rows = find(plan, zones, clock_of(), probe_seconds=wait if options.probe else None, show=_say)
    if options.json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    else:
        _table(FINDING_COLUMNS, (tuple(row.values()) for row in rows))
    return 0


def _agreed(options: argparse.Namespace) -> bool:
    if options.yes:
        return True
    if not sys.stdin.isatty():
        sys.stderr.write("bezel: nothing was deleted: nobody can be asked here. Add --yes.\n")
        return False
    sys.stdout.write("delete all of these? [y/N] ")
    sys.stdout.flush()
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    cells = [tuple(header), *(tuple(row) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    for row in cells:
        _say("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
