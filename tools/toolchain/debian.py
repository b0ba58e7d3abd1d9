"""Unpacking of a Debian (or Ubuntu) package without root into a folder, with the libraries that this machine lacks.

Uses the machine's own lists of packages, and fresh ones of its own where those are missing or too old.
"""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import progress

_BOUNDED = ("-o", "Acquire::Retries=1", "-o", "Acquire::http::Timeout=10")


def unpack(package: str, folder: Path, *, size: str, also: tuple[str, ...] = ()) -> None:
    """Fill `folder` with the package itself, and with those libraries and packages of `also` that this machine lacks.

    Args:
        package: Its name.
        folder: Target folder: `folder/usr/...`.
        size: Size of the download, for the progress message.
        also: Other packages that it does not run without.

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
        own_options = ("-o", f"Dir::State::Lists={lists}", "-o", f"Dir::Cache={folder}")
        log = folder / "apt.log"
        progress.run("fetching lists of packages", ["apt-get", "update", *_BOUNDED, *own_options], log=log)
        _fetch(package, packages, size, also, own_options)
    for file in sorted(packages.glob("*.deb")):
        answer(["dpkg-deb", "-x", str(file), str(folder)])
    for left_over in folder.iterdir():
        if left_over.name != "usr":
            shutil.rmtree(left_over) if left_over.is_dir() else left_over.unlink()


def _fetch(package: str, packages: Path, size: str, also: tuple[str, ...], lists: tuple[str, ...]) -> None:
    # A simulated installation lists the missing packages, and needs no root.
    plan = answer(["apt-get", "install", "--simulate", "--no-install-recommends", *lists, package])
    missing = {line.split()[1].partition(":")[0] for line in plan.splitlines() if line.startswith("Inst ")}
    wanted = [package, *sorted(name for name in missing if name.startswith("lib") or name in also)]
    command = ["apt-get", "download", "--quiet", *_BOUNDED, *lists, *wanted]
    progress.run(f"fetching {package} ({size}), once", command, log=packages.parent / "apt.log", cwd=packages)


def libraries(folder: Path) -> str:
    """Folders of the packages' libraries, such as `usr/lib/x86_64-linux-gnu`, in the form of LD_LIBRARY_PATH."""
    return ":".join(sorted({str(library.parent) for library in folder.glob("usr/lib/*/**/*.so*")}))


def path_without(excluded: Path) -> str:
    """PATH without a folder of ours, so that our own script is not taken for an installed program."""
    mine = excluded.resolve()
    return os.pathsep.join(
        entry for entry in os.environ.get("PATH", "").split(os.pathsep) if Path(entry).resolve() != mine
    )


def release() -> str:
    """The distribution and machine type, for the name of a cache folder: libraries fit only one of each."""
    try:
        fields = platform.freedesktop_os_release()
    except OSError:
        fields = {}
    return f"{fields.get('ID', 'linux')}-{fields.get('VERSION_ID', 'none')}-{platform.machine()}"


def answer(command: list[str], **variables: str) -> str:
    """The output of a quick command.

    Raises:
        progress.StepError: The command failed.
    """
    env = os.environ | variables
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=env).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise progress.StepError(f"`{' '.join(command)}`: {getattr(error, 'stderr', '') or error}".strip()) from error
