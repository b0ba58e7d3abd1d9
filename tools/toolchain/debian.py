"""A program of a Debian (or Ubuntu) package without root: unpacked into a folder, with the libraries that lack here.

Asks with the machine's own lists of packages, and with fresh ones of its own where those are missing or too old.
"""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import progress

_BOUNDED = ("-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=10")


def unpack(package: str, folder: Path, *, size: str, also: tuple[str, ...] = ()) -> None:
    """Fill `folder` with what `package` would install here, as far as it is the package, a library, or in `also`.

    Args:
        package: Its name.
        folder: Where it goes: `folder/usr/...`.
        size: How much is fetched, for the reader.
        also: Other packages that it does not run without, as far as this machine lacks them.

    Raises:
        progress.StepError: This machine has no apt-get, or the package cannot be fetched.
    """
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise progress.StepError(f"{package} is not on PATH, and this machine has no apt-get to fetch it with")
    packages, lists = folder / "packages", folder / "lists"
    packages.mkdir()
    try:
        _fetch(package, packages, size, also, ())
    except progress.StepError:
        for part in (lists / "partial", folder / "archives" / "partial"):
            part.mkdir(parents=True)
        own = ("-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={folder}")
        log = folder / "apt.log"
        progress.run("fetching lists of packages", ["apt-get", "update", *_BOUNDED, *own], log=log)
        _fetch(package, packages, size, also, own)
    for file in sorted(packages.glob("*.deb")):
        answer(["dpkg-deb", "-x", str(file), str(folder)])
    for left_over in folder.iterdir():
        if left_over.name != "usr":
            shutil.rmtree(left_over) if left_over.is_dir() else left_over.unlink()


def _fetch(package: str, packages: Path, size: str, also: tuple[str, ...], lists: tuple[str, ...]) -> None:
    # What an installation would bring is what is missing; it is only asked, which needs no root.
    plan = answer(["apt-get", "install", "--simulate", "--no-install-recommends", *lists, package])
    missing = {line.split()[1].partition(":")[0] for line in plan.splitlines() if line.startswith("Inst ")}
    wanted = [package, *sorted(name for name in missing if name.startswith("lib") or name in also)]
    command = ["apt-get", "download", "--quiet", *_BOUNDED, *lists, *wanted]
    progress.run(f"fetching {package} ({size}), once", command, log=packages.parent / "apt.log", cwd=packages)


def libraries(folder: Path) -> str:
    """Where packages put libraries: `usr/lib/x86_64-linux-gnu` and the like, as LD_LIBRARY_PATH wants it."""
    return ":".join(sorted({str(library.parent) for library in folder.glob("usr/lib/*/**/*.so*")}))


def path_without(own: Path) -> str:
    """PATH without a folder of ours: what would find our own script must not be taken for an installed program."""
    mine = own.resolve()
    return os.pathsep.join(
        entry for entry in os.environ.get("PATH", "").split(os.pathsep) if Path(entry).resolve() != mine
    )


def release() -> str:
    """The distribution and kind of machine, as a folder of the cache is named: libraries are of one of each."""
    try:
        found = platform.freedesktop_os_release()
    except OSError:
        found = {}
    return f"{found.get('ID', 'linux')}-{found.get('VERSION_ID', 'none')}-{platform.machine()}"


def answer(command: list[str], **variables: str) -> str:
    """What a quick command prints.

    Raises:
        progress.StepError: It failed.
    """
    env = os.environ | variables
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=env).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise progress.StepError(f"`{' '.join(command)}`: {getattr(error, 'stderr', '') or error}".strip()) from error
