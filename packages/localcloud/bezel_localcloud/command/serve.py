"""`serve`: the embedded cloud in the foreground, until Ctrl-C.

Leaves out the daemon itself (`bezel_localcloud.daemon`), which runs in this process.
"""

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bezel_base.console import say
from bezel_base.terminal.blocks import Block, Line
from bezel_base.terminal.screen import show
from bezel_localcloud import clients
from bezel_localcloud.command.cloud import LocalCloud, check_folder, check_values, summary
from bezel_localcloud.command.preparation import Preparation
from bezel_localcloud.command.program import Program
from bezel_localcloud.core.files.locks import using
from bezel_localcloud.core.paths import PROJECT, Endpoint
from bezel_localcloud.daemon import run as run_daemon
from bezel_localcloud.processes.parent_end import check_parent
from bezel_localcloud.project_id import project_for
from bezel_localcloud.project_life import Hooks


def run(program: Program, options: argparse.Namespace) -> int:
    """Serve until a signal, or the end of the process --parent, ends it; return the exit code."""
    place = None if options.temporary else (options.dir or program.default_directory()).absolute()
    project = project_for(place, getattr(options, "project", ""))
    if project != PROJECT:
        return program.serve_in_other_process(project)
    with _directory(place) as directory:
        cloud = replace(LocalCloud.of(program, options), directory=directory)
        parent = getattr(options, "parent", 0)
        preparation = Preparation(options.enable, options.seed)
        check_values(
            lambda: check_folder(directory), cloud.check_server, lambda: check_parent(parent), preparation.check
        )

        def announce(endpoint: Endpoint) -> None:
            if options.json:
                say(json.dumps(clients.description(endpoint)))
            else:
                show(_greeting(endpoint, program, options))

        # Held, so that a command with other settings does not replace this one, and `down` does not stop it.
        with using(directory):
            run_daemon(
                directory,
                server=cloud.server,
                speed=cloud.speed,
                idle_seconds=options.idle_seconds,
                port=cloud.port,
                emulator=options.emulator,
                default_network=not options.no_default_network,
                tls=options.tls,
                parent=parent,
                hooks=Hooks(preparation.apply, announce),
                program=program.typed,
            )
        if not options.json:
            sys.stdout.write(f"localcloud has stopped; {_fate(options)}\n")
    return 0


@contextlib.contextmanager
def _directory(place: Path | None) -> Iterator[Path]:
    """The folder of the data; without one a temporary folder, deleted at the end."""
    if place is not None:
        yield place
        return
    folder = Path(tempfile.mkdtemp(prefix="localcloud-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _greeting(endpoint: Endpoint, program: Program, options: argparse.Namespace) -> list[Block]:
    pace = f"waits of the platform are {endpoint.speed:g} times shorter than Google's"
    instructions = clients.instructions(endpoint, program.typed)
    return [
        *(Line(f"{summary(endpoint)}; {pace}"), Line()),
        *instructions,
        *(Line(), Line(f"Ctrl-C stops it; {_fate(options)}")),
    ]


def _fate(options: argparse.Namespace) -> str:
    return "its data are deleted" if options.temporary else "its data stay"
