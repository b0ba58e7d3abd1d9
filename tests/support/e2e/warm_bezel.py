"""Runs `bezel` many times: each in a process of its own, forked from one that has loaded what the command needs.

Loading is half a second of CPU time, and these tests run it hundreds of times. What is run is the command's own `main`
with arguments, folder and environment of its own; the script that the package installs is run by `Rehearsal.start` and
by the tests of the command itself.
"""

import multiprocessing
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from multiprocessing.connection import wait
from pathlib import Path

LOADED = (
    *("bezel.cli.main", "bezel.cli.in_service", "bezel.cli.local.localcloud", "bezel.cli.local.stacks"),
    *(
        "bezel.planner.assemble.build",
        "bezel.rest",
        "bezel_localcloud.access.credentials.keys",
        "bezel_localcloud.command.main",
    ),
    *("bezel_localcloud.seed", "bezel_localcloud.services.cloud_run.runtime.real_vllm", "httpcore", "httpx"),
    "bezel_localcloud.services.cloud_run.runtime.untrained",
    *("bezel.cli.ci.deploy", "bezel.cli.ci.drift", "bezel.cli.ci.expire", "bezel.cli.ci.lock", "bezel.cli.ci.preview"),
    *("bezel.cli.ci.output", "bezel.engine.recover.recover", "encodings.idna", "getpass", "stringprep"),
    *("google.auth._default", "google.oauth2.reauth", "google.oauth2.service_account"),
)
_FORKING = multiprocessing.get_context("forkserver")
_FORKING.set_forkserver_preload([__name__, *LOADED])
# To start a process looks how all others ended, too; of two threads that look at once the second reads 255.
_LOOKING = threading.Lock()


def run(
    arguments: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    output_file: Path,
    seconds: float,
    error_file: Path | None = None,
) -> int:
    """Run `bezel ARGUMENTS` in a folder; its exit code.

    Both of its streams go into `output_file`, standard error into `error_file` where there is one.

    Raises:
        TimeoutError: It did not end in time, and was killed.
    """
    files = (str(output_file), str(error_file or output_file))
    process = _FORKING.Process(target=_bezel, args=([*arguments], str(folder), dict(environment), files))
    with _LOOKING:
        process.start()
    ended = wait([process.sentinel], seconds)
    with _LOOKING:
        if not ended:
            process.kill()
        process.join()
        if not ended:
            raise TimeoutError(f"bezel {' '.join(arguments)} did not end in {seconds:g} s:\n{output_file.read_text()}")
        assert process.exitcode is not None
        return process.exitcode


def _bezel(arguments: list[str], folder: str, environment: dict[str, str], files: tuple[str, str]) -> None:
    output, errors = (os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND) for file in files)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, place in ((nothing, 0), (output, 1), (errors, 2)):
        os.dup2(stream, place)
    # What multiprocessing has put in its place.
    sys.stdin = os.fdopen(0)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    from bezel.cli.main import main

    code = main(arguments)
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(code)
