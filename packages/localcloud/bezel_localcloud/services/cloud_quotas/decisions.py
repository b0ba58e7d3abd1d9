"""Decisions on requests for another value of a quota. Pure.

Google publishes neither its rule nor its time: requests take from a minute to some days, and most of a new project's
large ones are denied. Here an increase up to GRANTED_FACTOR times the initial value is granted after DECIDED_AFTER, a
larger one and one from a value of 0 are denied then; a decrease is in force at once. So a rehearsal sees each state.
"""

from typing import NamedTuple

DECIDED_AFTER = 300.0
"""Seconds of the platform's time until an increase is decided."""
GRANTED_FACTOR = 4
UNLIMITED = -1
LARGEST_DECREASE = 0.1


class Decision(NamedTuple):
    """Outcome of a request: the value (None leaves it), its reason, and the platform's seconds until it."""

    grants: int | None
    detail: str
    seconds: float


def decide(preferred: int, present: int, initial: int) -> Decision:
    """Decide on a request.

    Args:
        preferred: The requested value; -1 is no limit.
        present: The value in force.
        initial: The value before any request.
    """
    if preferred != UNLIMITED and preferred <= present:
        return Decision(preferred, "", 0.0)
    most = initial * GRANTED_FACTOR
    if preferred != UNLIMITED and preferred <= most:
        return Decision(preferred, "", DECIDED_AFTER)
    text = f"localcloud denied it: it grants up to {GRANTED_FACTOR} times the initial value, here {most}."
    return Decision(None, text, DECIDED_AFTER)


def unsafe(preferred: int, present: int, used: int) -> dict[str, str]:
    """The safety checks that a decrease fails, each with its reason."""
    failed_checks: dict[str, str] = {}
    if preferred == UNLIMITED or preferred >= present:
        return failed_checks
    if preferred < used:
        failed_checks["QUOTA_DECREASE_BELOW_USAGE"] = f"the value {preferred} is below the usage {used}"
    if present - preferred > present * LARGEST_DECREASE:
        failed_checks["QUOTA_DECREASE_PERCENTAGE_TOO_HIGH"] = f"{preferred} is more than 10% below the value {present}"
    return failed_checks
