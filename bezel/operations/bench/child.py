"""A measurement in a process of its own: `bezel bench`, started, shown, interrupted in order, and ended with this one.

A server's own threads would share its interpreter with the sender of the load, and distort the figures. The command is
an argument list, never a shell's. Leaves out what is measured (`run_bench`, `sweep`) and what the result says
(`summary`).
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from bezel.operations.changes.stack_lock import CancelledError
from bezel.operations.context import Context
from bezel.operations.redaction import clean_text
from bezel_base.errors import Problem, UserError
from bezel_bench.result.document import Result, load

_LOOK_SECONDS = 0.2
_GRACE_SECONDS = 60.0
"""Time for an interrupted measurement to write what it has."""
_MOST_KEPT = 40
# The load ends with the process that asked for it, also where that is killed: the kernel then interrupts the child.
_CHILD = """
import ctypes, os, signal, sys
if sys.platform == "linux":
    ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGINT)
if os.getppid() != int(sys.argv.pop(1)):
    sys.exit(130)
from bezel.cli.main import main
sys.exit(main())
"""


def measure(context: Context, arguments: Sequence[str], out: Path, seconds: float) -> Result:
    """Measure, and read the result.

    Args:
        context: The context; it gets each line of progress, and its cancellation interrupts the measurement.
        arguments: The words after `bezel bench`, without those of the result.
        out: The file of the result.
        seconds: Time after which the measurement is interrupted; it then keeps what it has.

    Raises:
        CancelledError: The caller gave up; the cells so far are beside `out`.
        UserError: Nothing could be measured.
    """
    # -P: no module of the project's folder takes the place of one of the command's.
    command = [sys.executable, "-P", "-c", _CHILD, str(os.getpid()), "--errors", "json", "bench", *arguments]
    before = _stamp(out)
    with subprocess.Popen(
        [*command, "--out", str(out)],
        cwd=context.folder,
        env=dict(context.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        errors="replace",
        start_new_session=True,  # signals reach it from here only, once
    ) as process:
        assert process.stderr is not None  # noqa: S101 - it is a pipe
        lines: list[str] = []
        reader = threading.Thread(target=_read, args=(process.stderr, lines, context), daemon=True)
        reader.start()
        try:
            is_cancelled = _await(process, context, seconds)
        finally:
            _end(process)
            reader.join(_GRACE_SECONDS)
    if is_cancelled:
        raise CancelledError(f"cancelled: the cells so far are kept beside {out.name}; the same call continues there")
    if _stamp(out) == before:
        raise _error_of(lines, process.returncode)
    return load(out)


def _await(process: "subprocess.Popen[str]", context: Context, seconds: float) -> bool:
    """Wait until the measurement has ended, by itself or interrupted; whether the caller gave up."""
    end = time.monotonic() + seconds
    is_interrupted = False
    while process.poll() is None:
        now = time.monotonic()
        if not is_interrupted and (context.cancelled.is_set() or now >= end):
            is_interrupted, end = True, now + _GRACE_SECONDS
            context.show("interrupting the measurement; what was measured is kept")
            process.send_signal(signal.SIGINT)
        elif is_interrupted and now >= end:
            return context.cancelled.is_set()
        if is_interrupted:
            time.sleep(_LOOK_SECONDS)
        else:
            context.cancelled.wait(_LOOK_SECONDS)
    return context.cancelled.is_set()


def _end(process: "subprocess.Popen[str]") -> None:
    """End what is left of the measurement, its workers included."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(_GRACE_SECONDS)


def _read(stream: IO[str], lines: list[str], context: Context) -> None:
    for line in stream:
        text = line.strip()
        lines[:] = [*lines[-_MOST_KEPT:], text]
        if text and not text.startswith("{"):
            context.show(clean_text(text, 300))


def _error_of(lines: Sequence[str], code: int) -> UserError:
    """The error of a command that measured nothing, as its last line of JSON says."""
    for line in reversed(lines):
        try:
            message = json.loads(line)
        except ValueError:
            continue
        if isinstance(message, dict) and (problems := message.get("problems")):
            return UserError(*map(_problem, problems), title=clean_text(str(message.get("title") or ""), 300))
    last = clean_text(lines[-1], 300) if lines else "it said nothing"
    consequence = f"the measurement ended with exit code {code}, and nothing was measured: {last}"
    return UserError(Problem("bezel bench", None, consequence, "run the command by hand to see why."))


def _problem(fields: dict[str, str | None]) -> Problem | str:
    if "text" in fields:
        return clean_text(str(fields["text"]), 1000)
    parts = {name: clean_text(str(fields.get(name) or ""), 1000) for name in ("key", "value", "consequence", "repair")}
    return Problem(parts["key"], parts["value"] or None, parts["consequence"], parts["repair"])


def _stamp(file: Path) -> tuple[int, int] | None:
    """What differs once a file was written anew: a new file takes the place of the old one."""
    try:
        status = file.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
