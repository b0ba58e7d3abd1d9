"""HAProxy, the proxy of the gateway before TPU nodes, from the first of two places that has it.

1. PATH.
2. Debian's (or Ubuntu's) package, unpacked into the cache together with the libraries that this machine lacks: that
   needs no root.

Only the gateway on localcloud runs it, so a machine without it is no failure: `.venv/bin/haproxy` then says what to do.
Leaves out the folder rules of the cache (`cache`).
"""

import os
import platform
import shlex
import shutil
import subprocess
from pathlib import Path

import cache
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
    """Write `.venv/bin/haproxy`: starts the proxy, or tells how to get it."""
    script = VENV / "bin" / "haproxy"
    if installed := shutil.which(PACKAGE, path=_path_without_venv()):
        write_script(script, f'exec {shlex.quote(installed)} "$@"\n')
        return
    folder = cache.root() / _name()
    if not folder.is_dir():
        if script.exists() and script.read_text().endswith(NOT_FOUND):  # it was tried, and told
            return
        try:
            folder = cache.obtain(_name(), _unpack, waiting=progress.say)
        except progress.StepError as error:
            told = f"{error}\n{REPAIR}"
            progress.say(told)
            write_script(script, f"echo {shlex.quote(told)} >&2\n{NOT_FOUND}")
            return
    binary = shlex.quote(str(folder / BINARY))
    write_script(script, f'LD_LIBRARY_PATH={shlex.quote(_libraries(folder))} exec {binary} "$@"\n')


def _path_without_venv() -> str:
    """What would find our own script must not be taken for an installed proxy."""
    own = (VENV / "bin").resolve()
    return os.pathsep.join(
        entry for entry in os.environ.get("PATH", "").split(os.pathsep) if Path(entry).resolve() != own
    )


def _name() -> str:
    """The cached folder: of one distribution and kind of machine, as the libraries are."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        release = {}
    return f"haproxy-{release.get('ID', 'linux')}-{release.get('VERSION_ID', 'none')}-{platform.machine()}"


def _unpack(folder: Path) -> None:
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise progress.StepError("haproxy is not on PATH, and this machine has no apt-get to fetch it with")
    # What an installation would bring is what is missing; it is only asked, which needs no root.
    plan = _answer(["apt-get", "install", "--simulate", "--no-install-recommends", PACKAGE])
    missing = {line.split()[1].partition(":")[0] for line in plan.splitlines() if line.startswith("Inst ")}
    wanted = [PACKAGE, *sorted(name for name in missing if name.startswith("lib"))]
    packages, log = folder / "packages", folder / "apt.log"
    packages.mkdir()
    command = ["apt-get", "download", "--quiet", "-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=10", *wanted]
    progress.run("fetching haproxy, once", command, log=log, cwd=packages)
    for package in packages.glob("*.deb"):
        _answer(["dpkg-deb", "-x", str(package), str(folder)])
    shutil.rmtree(packages)
    log.unlink()
    _answer([str(folder / BINARY), "-v"], LD_LIBRARY_PATH=_libraries(folder))


def _libraries(folder: Path) -> str:
    """Where packages put libraries: `usr/lib/x86_64-linux-gnu` and the like."""
    return ":".join(sorted({str(library.parent) for library in folder.glob("usr/lib/*/*.so*")}))


def _answer(command: list[str], **variables: str) -> str:
    """What a quick command prints.

    Raises:
        progress.StepError: it failed.
    """
    env = os.environ | variables
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=env).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise progress.StepError(f"`{' '.join(command)}`: {getattr(error, 'stderr', '') or error}".strip()) from error
