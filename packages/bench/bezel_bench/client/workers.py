"""Worker processes of a load that one core cannot send: each sends its share, and the results are merged.

They connect first and begin at one instant; CLOCK_MONOTONIC is the same for all. If a worker dies the whole run fails:
the measurement of the rest would be of another load. Leaves out other machines.
"""

import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from multiprocessing.connection import Connection as Pipe
from multiprocessing.connection import wait
from pathlib import Path
from time import monotonic_ns
from typing import Any, Final

from bezel_base import ending_signals
from bezel_base.errors import Problem, UserError
from bezel_bench.client.sender import Sender, gc_disabled
from bezel_bench.load.plan import Bodies, Load, TokenSource
from bezel_bench.result.pickled import pack, unpack
from bezel_bench.result.sample import ClientHealth, Measured

_HEAD_START_NS: Final = 50_000_000
_LOOK_SECONDS: Final = 0.25
_TELL_SECONDS: Final = 1.0
Progress = tuple[int, int, int, int]
_SUMS: Final = ("workers", "cpu_seconds", "connections", "reconnections", "connect_failures", "crowd", "waited")
_MAXIMA: Final = (
    *("busiest_cpu_share", "loop_lag_p99_ms", "loop_lag_max_ms"),
    *("backlog", "interrupted", "silent_seconds", "failing_requests", "failed_share"),
)


class Workers:
    """The processes of one load; `run` is their whole life."""

    def __init__(self, load: Load, bodies: Bodies, headers: TokenSource, spill: Path | None = None) -> None:
        self._spill = spill
        self._load, self._bodies, self._headers = load, bodies, headers
        self._interrupted = False
        self._processes: list[multiprocessing.context.SpawnProcess] = []
        self._pipes: list[Pipe] = []
        self._progress: list[Progress] = [(0, 0, 0, 0)] * load.workers

    def interrupt(self) -> None:
        """Send nothing more and wait for nothing; may be called by a signal's handler."""
        self._interrupted = True

    def progress(self) -> Progress:
        """Return `Sender.progress` of all, as last reported: the longest silence is that of one worker's requests."""
        begun, done, awaited, silent = zip(*self._progress, strict=True)
        return sum(begun), sum(done), sum(awaited), max(silent)

    def run(self) -> Measured:
        """Start the workers, have them connect and send the load, and return the merged measurement.

        Raises:
            UserError: One cannot connect, or died.
        """
        context = multiprocessing.get_context("spawn")
        try:
            sent = dict(self._headers())
            for number in range(self._load.workers):
                ours, theirs = context.Pipe()
                process = context.Process(
                    target=work, args=(theirs, self._load, self._bodies, sent, number, self._spill), daemon=True
                )
                with ending_signals.kept_from_children():
                    process.start()
                theirs.close()
                self._processes.append(process)
                self._pipes.append(ours)
            self._gather("connected", sent)
            self._tell("start", monotonic_ns() + _HEAD_START_NS)
            return merge_measured([*map(unpack, self._gather("measured", sent))])
        finally:
            for process in self._processes:
                if process.is_alive():
                    process.terminate()
                process.join()
            for pipe in self._pipes:
                pipe.close()

    def _gather(self, wanted: str, sent: dict[str, str]) -> list[Any]:
        """Receive one message of a kind from each worker, in their order."""
        got: dict[int, Any] = {}
        stopped = False
        while len(got) < len(self._pipes):
            missing = {pipe: n for n, pipe in enumerate(self._pipes) if n not in got}
            for pipe in wait([*missing], _LOOK_SECONDS):
                number = missing[pipe]  # type: ignore[index]
                kind, value = self._hear(number)
                if kind == "failed":
                    problems, title = value
                    raise UserError(*problems, title=title)
                if kind == "progress":
                    self._progress[number] = value
                elif kind == wanted:
                    got[number] = value
            now = dict(self._headers())
            if now != sent:
                sent.clear()
                sent.update(now)
                self._tell("headers", now)
            if self._interrupted and not stopped:
                stopped = True
                self._tell("stop", None)
        return [got[number] for number in range(len(self._pipes))]

    def _hear(self, number: int) -> tuple[str, Any]:
        try:
            message: tuple[str, Any] = self._pipes[number].recv()
        except (EOFError, ConnectionResetError):
            process = self._processes[number]
            process.join()
            key = f"worker {number + 1} of {self._load.workers}"
            consequence = f"the process died ({_why(process.exitcode)}): its requests are lost, nothing was measured."
            repair = "run the command again, with more free memory or fewer workers."
            raise UserError(Problem(key, None, consequence, repair)) from None
        return message

    def _tell(self, kind: str, value: object) -> None:
        for pipe in self._pipes:
            # A dead worker is detected when its reply is read.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                pipe.send((kind, value))


def work(pipe: Pipe, load: Load, bodies: Bodies, headers: Mapping[str, str], number: int, spill: Path | None) -> None:
    """Run a worker in its own process."""
    # Ctrl-C reaches the whole group: the parent decides what happens.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    current = headers
    started = threading.Event()
    began = 0
    speaking = threading.Lock()

    def say(kind: str, value: object) -> None:
        with speaking:
            pipe.send((kind, value))

    def listen() -> None:
        nonlocal current, began
        try:
            while True:
                if not pipe.poll(_TELL_SECONDS):
                    say("progress", sender.progress())
                    continue
                kind, value = pipe.recv()
                if kind == "headers":
                    current = value
                elif kind == "start":
                    began = value
                    started.set()
                else:
                    sender.interrupt()
                    started.set()
        except (EOFError, OSError):
            # The parent is gone: no one would take the result.
            os._exit(1)

    try:
        spill_file = spill.with_name(f"{spill.name}.{number}") if spill else None
        load = replace(load, target=replace(load.target, url=load.urls[number % len(load.urls)]))
        sender = Sender(load, bodies, lambda: current, number, spill_file)
        threading.Thread(target=listen, daemon=True).start()
        sender.connect()
        say("connected", None)
        started.wait()
        with gc_disabled():
            say("measured", pack(sender.send(began or monotonic_ns())))
    except UserError as error:
        say("failed", (error.problems, error.title))
    # The parent ends this process once it has everything.
    threading.Event().wait()


def merge_measured(parts: Sequence[Measured]) -> Measured:
    """Merge the measurements of several senders of one load into one."""
    clients = [part.client for part in parts]
    began, ended = min(part.began for part in parts), max(part.ended for part in parts)
    health = {name: sum(getattr(client, name) for client in clients) for name in _SUMS}
    health |= {name: max(getattr(client, name) for client in clients) for name in _MAXIMA}
    stalls = [client.stall_p99_ms for client in clients if client.stall_p99_ms is not None]
    return Measured(
        samples=sorted((sample for part in parts for sample in part.samples), key=lambda sample: sample.index),
        began=began,
        ended=ended,
        client=ClientHealth(**health, stall_p99_ms=max(stalls, default=None), wall_seconds=(ended - began) / 1e9),
    )


def _why(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    name = signal.Signals(-code).name
    return f"{name}, perhaps out of memory" if name == "SIGKILL" else name
