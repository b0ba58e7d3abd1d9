"""Further entries of a log until a deadline: Cloud Logging is asked again and again, as its entries come late.

Owns the repeated reading without repeated entries. Leaves out how lines are shown.
"""

import time
from collections.abc import Iterator, Sequence

from bezel.leases.clock import unix
from bezel.operations.context import Context
from bezel.operations.log_reading.bounds import rfc3339
from bezel.operations.log_reading.entries import LogEntry, narrow_filter, read_entries

_POLL_SECONDS = 2.0
_LATE_SECONDS = 15.0  # entries arrive late and in any order
_SEEN = 20_000


def further_entries(
    context: Context, project: str, query: str, newest: Sequence[LogEntry], *, seconds: float, is_cut: bool = False
) -> Iterator[list[LogEntry]]:
    """Entries that come within a time, oldest first, in batches that may be empty.

    Args:
        context: The context of the operation.
        project: Google Cloud project.
        query: Filter without bounds of time.
        newest: Entries that were shown, newest first.
        seconds: Time limit.
        is_cut: Whether there are older entries that were not shown.

    Raises:
        RestError: Cloud Logging refused, or did not answer.
    """
    seen = {entry.id for entry in newest}
    last = newest[0].time if newest else ""

    def recent() -> list[LogEntry]:
        since = rfc3339((unix(last) or context.clock.now()) - _LATE_SECONDS)
        return list(read_entries(context, project, narrow_filter(query, since=since), newest_first=False))

    if is_cut:  # what was left out is there already, and what comes late is not
        seen |= {entry.id for entry in recent() if entry.time <= last}
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(_POLL_SECONDS, left))
        rows = recent()
        new_entries = [entry for entry in rows if entry.id not in seen]
        # The next reading begins later than this one: nothing older than its entries comes again.
        seen = (seen if len(seen) < _SEEN else set()) | {entry.id for entry in rows}
        last = max([last, *(entry.time for entry in new_entries)])
        yield new_entries
