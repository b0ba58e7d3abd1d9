"""Request to a machine to start, stop or restart its container: sent as its metadata, awaited by what it reports.

The machine carries a request out by itself: a caller that gives up, or is killed, takes nothing back. Each request has
an id, which the machine does once. Leaves out which machines are asked (`container`).
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from bezel.leases.backends.interface import is_transient
from bezel.leases.clock import format_duration
from bezel.leases.state.container import ATTRIBUTE, Action, ContainerReport, report_of, request_text
from bezel.leases.state.observation import State
from bezel.operations.redaction import clean_text
from bezel.rest import RestError
from bezel_base.errors import one_line
from bezel_base.text.shell import shell_word

if TYPE_CHECKING:
    from collections.abc import Callable

    from bezel.leases.clock import PlatformClock
    from bezel.operations.container.machines import LeasedMachine

TAKEN_SECONDS = 300.0
"""How long a machine may take to notice a request; it waits for one at any time, but during a `docker stop`."""
DONE_SECONDS = 6000.0
"""How long it may take to serve again: its own limit is 5400 s, after which it says so."""
_LOOK_SECONDS = 5.0
_LONGEST = 500


class RequestFailedError(Exception):
    """A machine did not do what it was asked for; the text says why and what is left."""


def carry_out(
    machine: LeasedMachine, action: Action, clock: PlatformClock, show: Callable[[str], None]
) -> ContainerReport:
    """Ask a machine, and wait until it has done it.

    Args:
        machine: The machine.
        action: What to do.
        clock: The time; its waits may be ended by an error.
        show: Called with each line of progress.

    Returns:
        Its container afterwards.

    Raises:
        RequestFailedError: It did not do it, or not in time.
        RestError: Google refused the request.
    """
    back_end, zone, name = machine.back_end, machine.lease.zone, machine.lease.name
    id_, began = uuid.uuid4().hex, clock.now()
    text = request_text(id_, action)
    operation = back_end.set_attribute(zone, name, ATTRIBUTE, text)
    while True:
        elapsed = clock.since(began)
        try:
            if operation:
                is_done, failure = back_end.operation_result(zone, operation)
                if failure:
                    raise RequestFailedError(f"Google did not hand the request on: {clean_text(failure, _LONGEST)}")
                operation = "" if is_done else operation
            report = report_of(back_end.guest_attributes(zone, name))
            if report is not None and report.request == id_:
                if report.result == "done":
                    return report
                if report.result == "failed":
                    raise RequestFailedError(clean_text(report.detail, _LONGEST) or "it gives no reason")
                detail, limit = clean_text(report.detail, _LONGEST), DONE_SECONDS
            else:
                detail, limit = "the machine has not taken the request yet", TAKEN_SECONDS
                _check_there(machine)
            if elapsed > limit + clock.slack:
                raise RequestFailedError(_too_late(machine, text, elapsed, detail))
        except RestError as error:
            if not is_transient(error) or elapsed > DONE_SECONDS + clock.slack:
                raise
            detail, limit = one_line(error), DONE_SECONDS
        left = format_duration(limit - elapsed)
        show(f"{machine.place}: {action}: {detail}, {format_duration(elapsed)}, {left} left")
        clock.sleep(_LOOK_SECONDS)


def _check_there(machine: LeasedMachine) -> None:
    """Refuse to wait for a machine that has ended."""
    lease = machine.back_end.observe(machine.lease.zone, machine.lease.name)
    if lease.state is not State.ACTIVE or lease.id != machine.lease.id:
        raise RequestFailedError(f"its lease ended meanwhile ({lease.word or lease.state})")


def _too_late(machine: LeasedMachine, text: str, elapsed: float, detail: str) -> str:
    lease = machine.lease
    if machine.back_end.attributes(lease.zone, lease.name).get(ATTRIBUTE) != text:
        return "another request has replaced this one before the machine saw it"
    look = f"the request stands; `bezel tpu describe {shell_word(lease.name)}` shows the machine's console"
    return f"not done after {format_duration(elapsed)} ({detail}); {look}"
