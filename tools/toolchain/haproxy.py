"""HAProxy, the proxy of the gateway in front of TPU nodes, from the first of two places that has it.

1. PATH.
2. Debian's (or Ubuntu's) package, unpacked into the cache together with the libraries that this machine lacks: that
   needs no root.

Only the gateway on localcloud runs it, so a machine without it is no failure: `.venv/bin/haproxy` then prints what to
do. Leaves out the cache's folders (`cache`) and the unpacking of packages (`debian`).
"""

import shlex
import shutil
from pathlib import Path

import cache
import debian
import progress
from environment import VENV, write_script

PACKAGE = "haproxy"
BINARY = "usr/sbin/haproxy"
NOT_FOUND = "exit 127\n"
REPAIR = f"""\
HAProxy could not be set up, so the gateway of a TPU stack cannot start on localcloud; everything else works.
  Repair: install it so that it is on PATH (brew install haproxy; as root: apt-get update && apt-get install haproxy)
  and run `make setup` again; or, if only the network was away, delete {VENV / "bin" / "haproxy"}
  first."""


def link() -> None:
    """Write `.venv/bin/haproxy`: starts the proxy, or prints how to get it."""
    script = VENV / "bin" / "haproxy"
    if installed := shutil.which(PACKAGE, path=debian.path_without(VENV / "bin")):
        write_script(script, f'exec {shlex.quote(installed)} "$@"\n')
        return
    name = f"{PACKAGE}-{debian.release()}"
    folder = cache.root() / name
    if not folder.is_dir():
        if script.exists() and script.read_text().endswith(NOT_FOUND):  # tried and reported before
            return
        try:
            folder = cache.obtain(name, _unpack, waiting=progress.say)
        except progress.StepError as error:
            text = f"{error}\n{REPAIR}"
            progress.say(text)
            write_script(script, f"echo {shlex.quote(text)} >&2\n{NOT_FOUND}")
            return
    binary = shlex.quote(str(folder / BINARY))
    write_script(script, f'LD_LIBRARY_PATH={shlex.quote(debian.libraries(folder))} exec {binary} "$@"\n')


def _unpack(folder: Path) -> None:
    debian.unpack(PACKAGE, folder, size="4 MB")
    debian.answer([str(folder / BINARY), "-v"], LD_LIBRARY_PATH=debian.libraries(folder))
