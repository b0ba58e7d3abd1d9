"""Machines for runners: each has process ids of its own, can fail as a whole, and may have a clock that is ahead.

To the locks of stacks it is another machine, as a runner in the cloud is: whether its processes live cannot be seen
from here. Leaves out the runner (`runner`).
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bezel_base.process_status import end_marked
from tests.support.gitops.forge import Forge
from tests.support.gitops.working_copy import ROOT

MARK = "GITOPS_RUNNER"
_CLOCK = Path(__file__).with_name("clock.c")


@dataclass(frozen=True)
class Machine:
    """A running machine with one runner."""

    process: "subprocess.Popen[bytes]"
    place: Path

    def fail(self) -> None:
        """End everything on it at once, without a signal that could be handled."""
        self.process.kill()
        self.process.wait()
        # Without a namespace of its own, what one of them starts in this moment has its mark, too.
        while end_marked(MARK, str(self.place)):
            pass


@contextmanager
def runner_of(
    forge: Forge,
    folder: Path,
    act: Path,
    environment: Mapping[str, str],
    *,
    issuer: Mapping[str, str] | None = None,
    jobs: int = 2,
    ahead_seconds: int = 0,
) -> Iterator[Machine]:
    """A runner of the repository on a machine of its own.

    Args:
        forge: The forge.
        folder: The runner's place.
        act: The program act.
        environment: What its jobs see of this machine.
        issuer: Variables for identity tokens.
        jobs: How many jobs run at once.
        ahead_seconds: How far its clock is ahead.
    """
    folder.mkdir(parents=True)
    registration = forge.repository("POST", "/actions/runners/registration-token")["token"]
    settings = {"forge": forge.url, "registration": registration, "act": str(act), "jobs": jobs, "issuer": issuer}
    (folder / "runner.json").write_text(json.dumps(settings))
    variables = {**environment, MARK: str(folder)}
    if ahead_seconds:
        variables |= {"LD_PRELOAD": str(_clock(folder)), "CLOCK_AHEAD": str(ahead_seconds)}
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            [*_separate(), sys.executable, "-m", "tests.support.gitops.runner", str(folder)],
            cwd=ROOT, env=variables, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True,
        )  # fmt: skip
    machine = Machine(process, folder)
    try:
        yield machine
    finally:
        machine.fail()


@cache
def _separate() -> tuple[str, ...]:
    """Command that starts another in a namespace of process ids; empty where the kernel lets this user have none."""
    command = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    users = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    try:
        tried = subprocess.run([*command, *users, "true"], capture_output=True, timeout=60, check=False)
    except FileNotFoundError:
        return ()
    return (*command, *users) if tried.returncode == 0 else ()


def is_separate() -> bool:
    """Whether machines are others to the locks of stacks, and not this one."""
    return bool(_separate())


def _clock(folder: Path) -> Path:
    library = folder / "clock.so"
    command = ["cc", "-shared", "-fPIC", "-O2", "-o", str(library), str(_CLOCK)]
    built = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert built.returncode == 0, built.stderr
    return library
