"""Changes made outside of the program, as a health check finds them: by what the program declares in the same run.

What other stacks declare is not known in a deploy. So of a secret, or of a bucket that the program did not make, only a
grant to everyone counts here; `bezel ci drift`, `bezel status` and `bezel doctor` judge the others too. And a deploy
deletes last: what the last check knew as declared may still be there, and what the one before knew where the last
deploy was killed before it had deleted it. Where there was no such check, grants, rules and
jobs may be left of a failed deploy, so only a grant to everyone counts. The minimum of a schedule, and the traffic of a
gated rollout, are set beside or after the check.
"""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bezel.outside_changes.change import Findings, OutsideChange
from bezel.outside_changes.declared import (
    FIREWALL,
    GRANTS,
    JOB,
    MINIMUM,
    NAT,
    SERVICE,
    SWITCH,
    Declared,
    Entry,
    declared_in,
    name_of,
)
from bezel.outside_changes.grant_rules import EVERYONE
from bezel.outside_changes.reading import Cloud, outside_changes

if TYPE_CHECKING:
    from bezel.rest import GoogleClient


EARLIER = "earlier"
"""Property of a check with the resources that the last one knew; of these those are kept that are declared no more."""
_MINIMUM = "scaling.minInstanceCount"
_PROJECT = re.compile("projects/[^/]+")
_LEFT = ("firewall rule ", "NAT ")


def changes_of(
    props: Mapping[str, Any], google: "GoogleClient", service: Mapping[str, Any], seconds: float
) -> Findings:
    """The changes of everything that the program declares.

    Args:
        props: The properties of a `HealthCheck`: service, planned, resources; `EARLIER` of the last check, if any.
        google: Client for the requests.
        service: The checked service in the API's description.
        seconds: Deadline of all requests together.
    """
    earlier = props.get(EARLIER)
    declared_resources = [
        *(earlier or ()),
        *(props.get("resources") or ()),
    ]  # what is declared now comes last, and counts
    entries = [Entry(str(type_), "", inputs, {}) for type_, inputs in declared_resources]
    # During a gated rollout the newest revision waits for this very check: which one has the traffic is not judged.
    declared = declared_in([entry for entry in entries if entry.type != SWITCH])
    for entry in entries:
        if entry.type == SWITCH:
            declared.switched[str(entry.inputs.get("service"))] = ""
    name = str(props["service"])
    if any(entry.type == SERVICE for entry in entries):
        # The program's other services have checks of their own: those of further regions are deployed after this one.
        declared.services = {name: props.get("planned") or {}}
    outcome = outside_changes(declared, Cloud(google, seconds=seconds), services={name: service})
    # A rollback is ended by the deploy that checks: in a gated rollout only after the checks.
    changes = [each for each in outcome.changes if each.kind != "rollback"]
    changes = [each for each in changes if each.setting != _MINIMUM or not declared.minima]
    if earlier is None:
        changes = [each for each in changes if not _may_be_left(each)]
    return Findings(tuple(changes), outcome.not_judged)


def further_entries(earlier: Sequence[Sequence[Any]], resources: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """The declared resources that a check would take for changes from outside, knowing the earlier ones alone.

    Those of a service that is new in the program are not read without it.
    """
    declared_before = declared_in([Entry(str(type_), "", inputs, {}) for type_, inputs in earlier])
    further = [each for each in resources if each not in earlier]
    return [each for each in further if _is_read(Entry(str(each[0]), "", each[1], {}), declared_before)]


def _is_read(entry: Entry, declared_before: Declared) -> bool:
    """Whether a check reads what this resource makes, where the program declared this before."""
    if entry.type == MINIMUM:
        return str(entry.inputs.get("service")) in declared_before.services
    if entry.type in GRANTS:
        name = name_of(entry)
        of_program = (
            declared_before.services,
            declared_before.accounts,
            declared_before.buckets,
            declared_before.secrets,
            declared_before.repositories,
        )
        return _PROJECT.fullmatch(name) is not None or any(name in names for names in of_program)
    return entry.type in {JOB, FIREWALL, NAT}


def _may_be_left(change: OutsideChange) -> bool:
    """Whether an earlier deploy may have made it, which this one is about to delete."""
    if "roles/" in change.setting:
        return not change.cloud.startswith(tuple(EVERYONE))
    return change.setting.startswith(_LEFT) or change.resource.startswith("job ")
