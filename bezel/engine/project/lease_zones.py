"""Zones that may hold a lease of a Pulumi project: those of the catalogue, and those that its stack files name."""

from collections.abc import Callable, Mapping

from bezel.engine.project.project import Project, ProjectError
from bezel.planner.base.hardware import leased_hardware
from bezel_base.errors import one_line


def lease_zones(project: Project, show: Callable[[str], None]) -> tuple[str, ...]:
    """The zones, sorted.

    Args:
        project: The project.
        show: Gets a line for each stack file that cannot be read.
    """
    zones = {zone for kind in leased_hardware().values() for zone in (*kind.zones, *kind.zones_refused)}
    for stack in project.stacks():
        try:
            zones |= _zones_named(project.configuration(stack))
        except ProjectError as error:
            show(f"zones that only the stack file of {stack} names are not searched: {one_line(error)}")
    return tuple(sorted(zones))


def _zones_named(configuration: Mapping[str, object]) -> set[str]:
    """The zones that a stack file names; problems of the file are for the plan to report."""
    lease = configuration.get("lease")
    choices = lease.get("zones") if isinstance(lease, dict) else None
    named = [choice.get("zone") for choice in choices if isinstance(choice, dict)] if isinstance(choices, list) else []
    return {zone for zone in named if isinstance(zone, str)}
