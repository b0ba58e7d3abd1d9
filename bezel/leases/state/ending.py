"""End of a lease: whether it is over, the way it ended, and what gets another one. Pure.

Source: the states of the discovery documents (tpu v2alpha1 QueuedResourceState and Node, compute v1 Instance) and
Google's pages on preemption: a node's state is PREEMPTED, a request of a Spot node becomes SUSPENDED, and a Spot
machine is stopped or deleted without a word.
"""

from __future__ import annotations

from bezel.leases.state.observation import Observation, State

STOPPED_NODES = frozenset({"STOPPING", "STOPPED", "PREEMPTED", "TERMINATED", "HIDING", "HIDDEN", "DELETING"})
"""States of a node that serves nothing, while its request may still be active (tpu v2alpha1, Node.State)."""
PREEMPTED = "preempted"
_ONGOING = frozenset({State.ENDING, State.DELETING})
_SPOT = "SPOT"


def is_over(observed: Observation | None) -> bool:
    """Whether a lease has no time left: nothing of it serves, or will again."""
    return observed is None or not observed.is_live or observed.node_state in STOPPED_NODES


def state_of(observed: Observation | None) -> str:
    """The state in one word: `preempted` where Google says so, `ended` for an active request whose node has stopped."""
    if observed is None:
        return str(State.ABSENT)
    if observed.node_state == "PREEMPTED":
        return PREEMPTED
    if observed.state is State.ACTIVE and observed.node_state in STOPPED_NODES:
        return str(State.ENDED)
    return str(observed.state)


def ending_of(observed: Observation | None, *, planned_end: float | None, now: float) -> str:
    """How a lease ended, as the end of a sentence; "" while it is not over.

    Args:
        observed: It as Google shows it; None where nothing is there.
        planned_end: End of its run duration, unix seconds; None without one, or unknown.
        now: The time, unix seconds.
    """
    if not is_over(observed):
        return ""
    is_early = planned_end is not None and planned_end > now
    when = "" if planned_end is None else "before its planned end" if is_early else "its run duration is over"
    if observed is None:
        gone = "nothing of it is there"
        cause = ": it was deleted, or Google took its machine back" if is_early else ""
        return f"{gone}, {when}{cause}" if when else gone
    word = observed.word if observed.kind == "node" else observed.node_state or observed.word
    if state_of(observed) == PREEMPTED:
        return f"Google took its machine back ({word}){f', {when}' if is_early else ''}"
    if observed.state is State.FAILED:
        return f"{observed.reason or 'Google gives no reason'} ({word})"
    if observed.state in _ONGOING:
        return f"{word}, {when}" if when else word
    cause = ": a Spot machine is preempted so" if is_early and observed.provisioning_model == _SPOT else ""
    return f"{word}, {when}{cause}" if when else word


def next_step(stack_command: str, *, next_start: str = "") -> str:
    """What gets another lease.

    Args:
        stack_command: The command that deploys the stack.
        next_start: Time at which its hours request another one; "" without hours.
    """
    if next_start:
        return f"the next one is requested at {next_start}"
    return f"`{stack_command}` requests another one where the stack file has lease.renew: true"
