"""One task of a many-machine load: prepares, waits for the common start, sends its share, reports its part.

The planner chooses the start some seconds ahead, once every task has reported that it is ready: tasks come up one after
the other, and each needs time to read the start. Prompts are made and tokens fetched before; connections are opened
shortly before the start, because servers close idle ones. A task that cannot begin in time, or fails, writes the reason
in place of its part, and ends. Leaves out the storage of the documents and the identity of the task.
"""

import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bezel_base.errors import UserError
from bezel_bench.client.sender import Sender, gc_disabled
from bezel_bench.distributed import protocol
from bezel_bench.distributed.merge import check_clock
from bezel_bench.distributed.protocol import ClockOffset, Exchange, Part, Plan
from bezel_bench.load.plan import Load, Target, TokenSource
from bezel_bench.prompts.prompts import make_prompts
from bezel_bench.server.http_probe import asker

LEAD_SECONDS: Final = 4.0
"""Time from the planner's announcement to the start."""
_CONNECT_SECONDS: Final = 2.5
_POLL_SECONDS: Final = 0.25
_SHOW_SECONDS: Final = 10.0
_SECOND: Final = 1_000_000_000


def run_task(
    exchange: Exchange, task: int, headers_for: Callable[[Target], TokenSource], show: Callable[[str], None]
) -> None:
    """Send a task's share of the load, and store its part beside the load's plan.

    Args:
        exchange: Storage of the run's documents.
        task: The task's number, from 0.
        headers_for: Returns the source of headers that authorise requests to a server.
        show: Receives progress messages.

    Raises:
        UserError: The share could not be sent; the same text is stored in place of the part.
    """
    try:
        part = _measure_part(exchange, task, headers_for, show)
    except UserError as error:
        with contextlib.suppress(UserError):  # the bucket itself may refuse: the first error is the reason
            exchange.write(protocol.part(task), {"task": task, "failed": str(error)})
        raise
    exchange.put(protocol.samples(task), protocol.pack(part.measured.samples))
    # Written last: a reader of the part relies on its samples.
    exchange.write(protocol.part(task), part.document())
    show(f"task {task}: {len(part.measured.samples)} requests, reported")


def _measure_part(
    exchange: Exchange, task: int, headers_for: Callable[[Target], TokenSource], show: Callable[[str], None]
) -> Part:
    plan = _plan(exchange)
    headers = headers_for(plan.load.target)
    with TemporaryDirectory() as folder:
        load = _with_texts(exchange, plan, Path(folder))
        prompts = make_prompts(load, asker(load.target, headers))
    sender = Sender(load, prompts.bodies, headers, worker=task)
    before = _clocks()
    arrived = exchange.write(protocol.ready(task), {"task": task})
    after = time.time_ns()
    # The storage's clock is truncated to whole milliseconds.
    clock = ClockOffset(*before, drift=0, low=arrived - after, high=arrived + 1_000_000 - before[0])
    check_clock(task, clock)
    show(f"task {task}: ready, waits for the start")
    start = _start(exchange, task, plan.wait_seconds, show) - clock.realtime + clock.monotonic
    time.sleep(max(0.0, (start - time.monotonic_ns()) / _SECOND - _CONNECT_SECONDS))
    sender.connect()
    if (late := time.monotonic_ns() - start) > 0:
        raise UserError(
            f"task {task} was connected {late / _SECOND:.1f} s after the start, so the load of all tasks was never "
            "sent. Run it again; if it happens again, with fewer users per task."
        )
    with gc_disabled():
        measured = sender.send(start)
    now = _clocks()
    drift = (now[0] - now[1]) - (clock.realtime - clock.monotonic)
    # Imported here: the import would make the task late.
    from bezel_bench.server.manifest import this_client

    by = this_client(workers=1, tls=load.target.url.startswith("https:")).model_dump(mode="json")
    return Part(task, measured, replace(clock, drift=drift), by, prompts.notes)


def _plan(exchange: Exchange) -> Plan:
    document = exchange.read(protocol.PLAN)
    if document is None:
        raise UserError("the run of this task is over (its plan is deleted). Nothing is sent.")
    plan = Plan.of(document)
    if plan.code != protocol.code():
        raise UserError(
            f"the image holds another version of bezel (engine {protocol.code()}) than the command ({plan.code}), so "
            "its tasks would measure differently: build the image from the same checkout."
        )
    return plan


def _with_texts(exchange: Exchange, plan: Plan, folder: Path) -> Load:
    """Return the load, with its file of texts (if it has one) copied to a folder of this machine."""
    if not plan.texts:
        return plan.load
    file = folder / Path(plan.load.prompts.file).name
    file.write_bytes(exchange.get(protocol.TEXTS))
    return replace(plan.load, prompts=replace(plan.load.prompts, file=str(file)))


def _start(exchange: Exchange, task: int, seconds: float, show: Callable[[str], None]) -> int:
    """Wait for the common start; return its instant of CLOCK_REALTIME."""
    deadline, next_message = time.monotonic() + seconds, time.monotonic() + _SHOW_SECONDS
    while (document := exchange.read(protocol.START)) is None:
        now = time.monotonic()
        if now > deadline:
            raise UserError(f"task {task} waited {seconds:g} s for the start, which never came: its run has ended.")
        if now > next_message:
            next_message = now + _SHOW_SECONDS
            show(f"task {task}: waits for the start, {deadline - now:.0f} s at most")
        time.sleep(_POLL_SECONDS)
    try:
        return int(document["at"])
    except (KeyError, TypeError, ValueError) as error:
        raise UserError(f"the start of the tasks has another version ({error}): rebuild the image.") from None


def _clocks() -> tuple[int, int]:
    """Return CLOCK_REALTIME and CLOCK_MONOTONIC together: the tightest of three reads, as one may be interrupted."""
    looks = []
    for _ in range(3):
        before, wall, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        looks.append((after - before, wall, (before + after) // 2))
    _, realtime, monotonic = min(looks)
    return realtime, monotonic
