"""`bezel local serve`: the embedded cloud in the foreground, until Ctrl-C; needs no Pulumi project.

Leaves out the daemon itself (`bezel_localcloud.daemon`), which runs in this process.
"""

import argparse
import contextlib
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bezel.cli.local.cloud import LocalCloud, check_folder, default_directory, summary
from bezel_base.errors import Problem, UserError
from bezel_localcloud import clients
from bezel_localcloud.core.files.locks import using
from bezel_localcloud.core.paths import Endpoint
from bezel_localcloud.daemon import Hooks
from bezel_localcloud.daemon import run as run_daemon


def run(options: argparse.Namespace) -> int:
    """Serve until a signal ends it; return the exit code."""
    with _directory(options) as directory:
        cloud = LocalCloud(directory, options.server, options.model, options.speed, options.port)
        cloud.check_server()
        check_folder(directory)
        apis = _apis(options.enable)

        def announce(endpoint: Endpoint) -> None:
            text = json.dumps(clients.description(endpoint)) if options.json else _greeting(endpoint, options)
            sys.stdout.write(f"{text}\n")
            sys.stdout.flush()

        def prepare(endpoint: Endpoint) -> None:
            if not apis and options.seed is None:
                return
            from bezel_localcloud import seed  # late: httpx takes a fifth of the start

            for api in apis:
                seed.enable(endpoint, api)
            if options.seed is not None:
                seed.copy_folder(endpoint, options.seed)

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
                hooks=Hooks(prepare, announce),
            )
        if not options.json:
            sys.stdout.write(f"localcloud has stopped; {_fate(options)}\n")
    return 0


def _apis(words: Sequence[str]) -> list[str]:
    """The full names of the APIs to enable.

    Raises:
        UserError: localcloud does not serve one of them.
    """
    served = {name.partition(".")[0]: name for name in clients.api_names()}
    given = [word.removesuffix(".googleapis.com") for words_of_one in words for word in words_of_one.split(",")]
    if unknown := sorted(set(given) - {*served, "all"}):
        repair = f"choose from {', '.join(served)}, or all."
        raise UserError(Problem("--enable", ",".join(unknown), "localcloud does not serve this API.", repair))
    return sorted(served.values()) if "all" in given else [served[name] for name in given]


@contextlib.contextmanager
def _directory(options: argparse.Namespace) -> Iterator[Path]:
    """The folder of the data; a temporary one is deleted at the end."""
    if not options.temporary:
        yield (options.dir or default_directory()).absolute()
        return
    folder = Path(tempfile.mkdtemp(prefix="localcloud-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _greeting(endpoint: Endpoint, options: argparse.Namespace) -> str:
    pace = f"waits of the platform are {endpoint.speed:g} times shorter than Google's"
    return f"{summary(endpoint)}; {pace}\n\n{clients.instructions(endpoint)}\nCtrl-C stops it; {_fate(options)}"


def _fate(options: argparse.Namespace) -> str:
    return "its data are deleted" if options.temporary else "its data stay"
