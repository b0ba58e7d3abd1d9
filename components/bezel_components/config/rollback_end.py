"""End of a rollback by a deploy with the rollout `direct`: the declared record and traffic, now and later. Pure.

The revision that was left is the newest one that is ready, so traffic "to the newest revision" would be its own until
the new revision is ready, and for good if that fails. So the update names the revision that serves, and `TrafficSwitch`
moves the traffic to the newest one after it. The record keeps a fingerprint of the declaration: as long as that is the
same, nothing is updated and no traffic is declared, since the state has the one of before the move.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bezel.diagnosis.revision_traffic import DIRECT, Target, is_direct
from bezel.outside_changes.rollback import ended_text, in_force, recorded_rollback


@dataclass(frozen=True, slots=True)
class RollbackEnd:
    """What a service is declared with after a rollback, or without one.

    Attributes:
        annotation: Its record, "" without one.
        targets: Its traffic; None where the service is to keep its present one.
    """

    annotation: str = ""
    targets: tuple[Target, ...] | None = DIRECT


def rollback_end(service: Mapping[str, Any] | None, fingerprint: str) -> RollbackEnd:
    """The declaration of a service with the rollout `direct`.

    Args:
        service: The present service in run v2's description; None where there is none.
        fingerprint: Fingerprint of all declared inputs except the traffic and the annotations.
    """
    record = None if service is None else recorded_rollback(service)
    if service is None or record is None:
        return RollbackEnd(ended_text(service))
    deployed = replace(record, deployed=fingerprint)
    if in_force(service) is not None:
        return RollbackEnd(deployed.text(), (Target(record.revision, 100),))
    if record == deployed and is_direct(service):
        return RollbackEnd(record.text(), None)
    return RollbackEnd(ended_text(service))
