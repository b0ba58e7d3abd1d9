"""End of the leases behind a checked gateway: once none can serve any more, a check has nothing to wait for.

Reads the leases' own API, while a check waits. Leaves out what a gateway answers, and how often that is asked.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bezel.leases.clock import clock_of
from bezel.leases.state.ending import STOPPED_NODES
from bezel.leases.state.observation import Observation, State
from bezel_base.errors import UserError
from bezel_components.providers import lease_properties

_READ_SECONDS = 10.0
_GONE = "it is not there any more"
_WORDS = {
    State.ENDING: "is ending",
    State.ENDED: "has ended",
    State.FAILED: "has failed",
    State.DELETING: "is being deleted",
}


def end_of(leases: Sequence[Mapping[str, Any]], clock: Callable[[], Any] = clock_of) -> str:
    """How every one of some leases has ended, as a sentence; "" while one may serve, or where that cannot be read.

    Args:
        leases: Of each project, name, stack, back_end, zones and former_zones, as `lease_properties` has them.
        clock: Returns the clock of the platform.
    """
    ends = []
    for lease in leases:
        props = {**lease, "subnetworks": {}, "body": {}}
        try:
            observations = lease_properties.observations(props, clock(), _READ_SECONDS)
        except UserError:
            return ""
        if any(one.is_live and one.node_state not in STOPPED_NODES for one in observations):
            return ""
        ends.append(f"the lease {lease['name']} {_end(observations)}")
    return "; ".join(ends)


def _end(observations: Sequence[Observation]) -> str:
    if not observations:
        return f"has ended: {_GONE}"
    last = observations[0]
    reason = f": {last.reason}" if last.reason else ""
    return f"{_WORDS.get(last.state, 'does not run')} ({last.node_state or last.word} in {last.zone}{reason})"
