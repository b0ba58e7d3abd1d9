"""HAProxy, the proxy of the gateway in front of TPU nodes, from the first of two places that has it.

1. PATH.
2. Debian's (or Ubuntu's) package, unpacked into the cache together with the libraries that this machine lacks: that
   needs no root.

Only the gateway on localcloud runs it. `make setup` fetches nothing: `.venv/bin/haproxy` does when it is started first,
by `bezel local up` of a lease. `make setup-dev` fetches it for the tests; a machine without it is no failure, and the
script then prints what to do. Leaves out the cache's folders (`cache`) and the unpacking of packages (`debian`).
"""

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import cache
import debian
import progress
from environment import VENV, write_script

PACKAGE = "haproxy"
BINARY = "usr/sbin/haproxy"
SCRIPT = VENV / "bin" / "haproxy"
NOT_FOUND = "exit 127\n"
REPAIR = f"""\
HAProxy could not be set up, so the gateway of a TPU stack cannot start on localcloud; everything else works.
  Repair: install it so that it is on PATH (brew install haproxy; as root: apt-get update && apt-get install haproxy)
  and run `make setup` again; or, if only the network was away, delete {SCRIPT}
  first."""


def prepare() -> None:
    """Write `.venv/bin/haproxy`: starts the proxy of this machine, or fetches it when it is started first."""
    if text := _present_script():
        write_script(SCRIPT, text)
    elif not _has_reported():
        # A gateway's container has no HOME to find the cache by.
        command = f"XDG_CACHE_HOME={shlex.quote(str(cache.root().parent))} exec {shlex.quote(sys.executable)}"
        write_script(SCRIPT, f'{command} {shlex.quote(str(Path(__file__).resolve()))} "$@"\n')


def link() -> None:
    """Write `.venv/bin/haproxy`: starts the proxy, fetched now if need be, or prints how to get it."""
    if (text := _present_script()) is None:
        if _has_reported():
            return
        try:
            text = _fetch_script()
        except progress.StepError as error:
            reason = f"{error}\n{REPAIR}"
            progress.say(reason)
            text = f"echo {shlex.quote(reason)} >&2\n{NOT_FOUND}"
    write_script(SCRIPT, text)


def start(arguments: Sequence[str]) -> NoReturn:
    """Fetch the proxy and start it in place of this process; exit with 127 and the repair if that fails."""
    try:
        write_script(SCRIPT, _present_script() or _fetch_script())
    except progress.StepError as error:
        progress.say(f"{error}\n{REPAIR}")
        sys.exit(127)
    os.execv(SCRIPT, [str(SCRIPT), *arguments])  # noqa: S606


def _present_script() -> str | None:
    """Text of the script where the proxy is on PATH or in the cache."""
    if installed := shutil.which(PACKAGE, path=debian.path_without(VENV / "bin")):
        return f'exec {shlex.quote(installed)} "$@"\n'
    folder = cache.root() / _name()
    return _text(folder) if folder.is_dir() else None


def _fetch_script() -> str:
    return _text(cache.obtain(_name(), _unpack, waiting=progress.say))


def _name() -> str:
    return f"{PACKAGE}-{debian.release()}"


def _text(folder: Path) -> str:
    binary = shlex.quote(str(folder / BINARY))
    return f'LD_LIBRARY_PATH={shlex.quote(debian.libraries(folder))} exec {binary} "$@"\n'


def _has_reported() -> bool:
    """Whether `link` has tried and has said why it failed."""
    return SCRIPT.exists() and SCRIPT.read_text().endswith(NOT_FOUND)


def _unpack(folder: Path) -> None:
    debian.unpack(PACKAGE, folder, size="4 MB")
    debian.answer([str(folder / BINARY), "-v"], LD_LIBRARY_PATH=debian.libraries(folder))


if __name__ == "__main__":
    start(sys.argv[1:])
