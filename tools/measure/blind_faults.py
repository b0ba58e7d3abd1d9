"""Faults drawn blindly on a deployed stack: does one command name the cause in its first screen, and is status true?

    .venv/bin/python -m tools.measure.blind_faults [--seed N] [--faults 12] [--only NAME] [--show]

Draws from the table beside this file, without the operator's knowledge, injects each fault on a stack of its own, sends
requests as callers do, and runs what an operator runs: `status`, `advise`, `logs`, `doctor`. A command has named the
cause if its first 24 rows of 80 columns hold every pattern that the table expects. `status` is true if its verdict fits
what the callers got. Exit status 1 if a cause was named by no command, or a status was false.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

import tools.package_tests  # noqa: F401 - it finds the helpers
from bezel_base.terminal.blocks import Table
from bezel_base.terminal.layout import lay_out
from bezel_localcloud.faults.kinds import KINDS
from tests.support.e2e.fault_harness import FaultHarness
from tests.support.e2e.kill_points import KillHarness
from tests.support.e2e.lease_harness import STACK as LEASED
from tests.support.e2e.lease_harness import LeaseFaultHarness

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ROWS, COLUMNS = 24, 80
SERVICE = "l4-qat"
COMMANDS = (("status",), ("advise",), ("logs",), ("doctor",))
REQUESTS = 6
LOOP_SECONDS = 14.0
SERVES, FAILS = {"ready", "off-hours"}, {"failed", "failing", "gone", "ended", "stopped"}


@dataclass(frozen=True)
class BlindFault:
    """A row of the table."""

    name: str
    kind: str
    how: str
    words: tuple[str, ...]
    parameters: dict[str, Any] = field(default_factory=dict)
    stack: str = "service"
    unseen: str = ""


@dataclass
class Trial:
    """What the commands of an operator say under one fault."""

    fault: BlindFault
    callers: list[str] = field(default_factory=list)
    named_by: dict[str, bool] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    screens: dict[str, str] = field(default_factory=dict)
    verdict: str = ""

    @property
    def is_named(self) -> bool:
        """Whether one command names the cause."""
        return any(self.named_by.values())

    @property
    def failures(self) -> int:
        """Requests of the callers that failed."""
        return sum(outcome != "200" for outcome in self.callers)

    @property
    def is_status_true(self) -> bool | None:
        """Whether the verdict fits what the callers got; None where nothing that it reads shows that."""
        if self.fault.unseen:
            return None
        if not self.callers:
            return False
        if not self.failures:
            return self.verdict not in FAILS
        return self.verdict not in SERVES


def table() -> tuple[tuple[BlindFault, ...], dict[str, str]]:
    """The faults, and the kinds that are left out with their reasons.

    Raises:
        ValueError: A kind of fault is in neither.
    """
    read = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    faults = tuple(BlindFault(**{**row, "words": tuple(row["words"])}) for row in read["fault"])
    left_out: dict[str, str] = read["left_out"]
    if missing := set(KINDS) - {fault.kind for fault in faults} - set(left_out):
        raise ValueError(f"kinds of faults that are neither drawn nor left out: {', '.join(sorted(missing))}")
    return faults, left_out


def first_screen(text: str) -> str:
    """The first rows that a terminal shows: a line that is too long continues in the next row."""
    rows: list[str] = []
    for line in text.splitlines():
        rows += [line[start : start + COLUMNS] for start in range(0, max(len(line), 1), COLUMNS)]
    return "\n".join(rows[:ROWS])


def names_cause(fault: BlindFault, screen: str) -> bool:
    """Whether a screen holds every pattern that the table expects; rows of one line are read as one."""
    whole = re.sub(r"\s+", " ", "".join(row if len(row) == COLUMNS else f"{row}\n" for row in screen.split("\n")))
    return all(re.search(pattern, whole, re.IGNORECASE) for pattern in fault.words)


def main() -> int:
    """Draw, inject, ask, print; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1, help="of the draw (default: 1)")
    parser.add_argument("--faults", type=int, default=12, help="number of faults (default: 12)")
    parser.add_argument("--only", action="append", default=[], help="faults whose name holds this, instead of a draw")
    parser.add_argument("--show", action="store_true", help="print the first screen of each command too")
    options = parser.parse_args()
    faults, _ = table()
    drawn: Sequence[BlindFault] = random.Random(options.seed).sample(faults, min(options.faults, len(faults)))  # noqa: S311
    if options.only:
        drawn = [fault for fault in faults if any(part in fault.name for part in options.only)]
    results = []
    with tempfile.TemporaryDirectory(prefix="blind-") as folder:
        grounds = KillHarness(Path(folder) / "grounds")
        for number, fault in enumerate(drawn):
            print(f"{number + 1} of {len(drawn)}: {fault.name}", file=sys.stderr, flush=True)
            try:
                result = ask(fault, grounds, Path(folder) / str(number))
            except AssertionError as error:  # a command or a request of the harness itself failed
                print(f"{fault.name}: not tried: {error}", flush=True)
                result = Trial(fault)
                results.append(result)
                continue
            results.append(result)
            print("\n".join(row_lines([result], header=number == 0)), flush=True)
            if options.show:
                for command, screen in result.screens.items():
                    print(f"--- {command}\n{screen}\n", flush=True)
    missed = [result.fault.name for result in results if not result.is_named]
    false = [result.fault.name for result in results if result.is_status_true is False]
    unjudged = [result.fault.name for result in results if result.is_status_true is None]
    print(f"\ncause named: {len(results) - len(missed)} of {len(results)}{_list(missed)}")
    print(f"status true: {len(results) - len(false) - len(unjudged)} of {len(results)}{_list([*false, *unjudged])}")
    print(f"status not judged: {', '.join(unjudged) or 'none'}")
    return int(bool(missed or false))


def ask(fault: BlindFault, grounds: KillHarness, folder: Path) -> Trial:
    """Inject a fault on a stack of its own, and run what an operator runs."""
    result = Trial(fault)
    stack = LEASED if fault.stack == "lease" else SERVICE
    with deploy_stack(fault, grounds, folder) as stage:
        variables = stage.rehearsal.variables()
        url = stage.rehearsal.outputs(stack)["url"]
        headers = {"Authorization": f"Bearer {stage.rehearsal.token(url)}"}
        model = json.loads(stage.rehearsal.bezel("endpoint", stack, "--json", **variables).text)["model"]
        if fault.how == "deploy":
            stage.need_a_revision()
        stage.add(fault.kind, **fault.parameters)
        if fault.how == "deploy":
            stage.up("--", "--refresh")
        end = time.monotonic() + (LOOP_SECONDS if fault.how == "loop" else 0)
        while True:
            result.callers = [_outcome(url, headers, model) for _ in range(REQUESTS)]
            if time.monotonic() >= end:
                break
            time.sleep(0.5)
        for command in COMMANDS:
            began = time.monotonic()
            text = stage.rehearsal.bezel(*command, stack, **variables).text
            result.seconds[command[0]] = time.monotonic() - began
            result.screens[command[0]] = screen = first_screen(text)
            result.named_by[command[0]] = names_cause(fault, screen)
        result.verdict = _verdict(stage.rehearsal.bezel("status", stack, "--json", **variables).text)
    return result


@contextlib.contextmanager
def deploy_stack(fault: BlindFault, grounds: KillHarness, folder: Path) -> Iterator[FaultHarness]:
    """The stack that a fault is about, in service."""
    folder.mkdir()
    if fault.stack == "lease":
        with LeaseFaultHarness.deploy(folder) as leased:
            yield leased
    else:
        with FaultHarness.set_up(grounds, folder) as stage:
            yield stage


def row_lines(results: Sequence[Trial], *, header: bool) -> list[str]:
    """The rows of the printed table."""
    rows = [
        (
            result.fault.name,
            *("yes" if result.named_by[name] else "no" for (name,) in COMMANDS),
            " ".join(f"{result.seconds[name]:.0f}" for (name,) in COMMANDS),
            f"{result.failures}/{len(result.callers)}",
            result.verdict,
            {None: "not judged", True: "true", False: "FALSE"}[result.is_status_true],
        )
        for result in results
    ]
    names = ("fault".ljust(30), *(name for (name,) in COMMANDS), "seconds", "failed", "verdict", "status")
    padded = [tuple(str(cell).ljust(len(name)) for cell, name in zip(row, names, strict=True)) for row in rows]
    lines = lay_out([Table(names, padded)])
    return lines if header else lines[1:]


def _outcome(url: str, headers: dict[str, str], model: str) -> str:
    """The status of one request, or the name of the error that its client got."""
    body = {"model": model, "messages": [{"role": "user", "content": "one two three"}], "max_tokens": 4, "stream": True}
    try:
        answer = httpx.post(f"{url}/v1/chat/completions", json=body, headers=headers, timeout=60)
    except httpx.HTTPError as error:
        return type(error).__name__
    if answer.status_code == 200 and "[DONE]" not in answer.text:
        return "incomplete stream"
    return str(answer.status_code)


def _verdict(text: str) -> str:
    try:
        return str(json.loads(text)["stacks"][0]["verdict"])
    except (ValueError, KeyError, IndexError):
        return "error"


def _list(names: Sequence[str]) -> str:
    return f" (not: {', '.join(names)})" if names else ""


if __name__ == "__main__":
    sys.exit(main())
