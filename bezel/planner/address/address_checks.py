"""Checks of a stack's address: its domain and zone, and that callers reach it and are checked.

Leaves the form of a domain to `bezel.planner.address.domain`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bezel.planner.address.domain import domain_problem
from bezel.planner.base.problems import setting
from bezel_base.errors import NOT_SET, Problem

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from bezel.planner.base.settings import Settings

# Names of Cloud DNS zones: its discovery document.
_ZONE = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_PATH = re.compile(r"(?:.*/)?projects/([^/]+)/managedZones/([^/]+)")


def check_address(settings: Settings, unread: Collection[str] = (), *, project: str | None = None) -> Iterator[Problem]:
    """Check the section `address`, and what does not go with an address.

    Args:
        settings: with defaults in place of values that cannot be read.
        unread: the keys of these values; they are set as well.
        project: the stack's; None where it is not known.
    """
    domain, zone = settings.address.domain, settings.address.zone
    if domain is None:
        if zone is not None and setting("address.domain") not in unread:
            yield Problem(
                setting("address.domain"),
                NOT_SET,
                f"the zone {zone} alone names no address: no record would be made in it.",
                f"add `{setting('address')}: {{domain: llm.acme.example, zone: {zone}}}`, or remove the zone.",
            )
        return
    if problem := domain_problem(domain):
        consequence, _, repair = problem.rpartition("; ")
        yield Problem(setting("address.domain"), domain, f"{consequence}.", f"{repair}.")
    if zone is not None and not _ZONE.fullmatch(zone):
        yield _zone_problem(zone, project)
    if settings.access.ingress == "internal":
        yield Problem(
            setting("access.ingress"),
            "internal",
            f"the load balancer of {domain} is outside of the project's networks: its requests get 404.",
            "write all (the service checks who calls on both ways), or remove the address.",
        )
    if settings.access.public:
        yield Problem(
            setting("access.public"),
            True,
            f"{domain} would lead everyone on the internet to the GPUs, and nothing on the way checks who calls.",
            f"remove it and name the callers in {setting('access.invokers')}, or remove the address.",
        )


def _zone_problem(zone: str, project: str | None) -> Problem:
    """The problem of a zone that is no name of one."""
    key, path = setting("address.zone"), _PATH.fullmatch(zone)
    if path and path[1] == project and _ZONE.fullmatch(path[2]):
        return Problem(key, zone, "it is a path, and the zone's name is expected.", f"write `zone: {path[2]}`.")
    other = f"it is a zone of the project {path[1]}, and records are made in the stack's project only" if path else ""
    return Problem(
        key,
        zone,
        f"{other or 'the project can have no zone of this name'}: no record would be made.",
        "write the name of a zone of this project (`gcloud dns managed-zones list`), or remove it and set the "
        "records that the plan lists.",
    )
