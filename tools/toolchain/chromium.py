"""Chromium for the tests of benchmark reports, from the first of two places that has it.

1. PATH, if it starts.
2. Debian's package of the headless browser, unpacked into the cache with the libraries that this machine lacks.

Only tests run it, so a machine without it is no failure: `.venv/bin/chromium` then prints what to do, and the tests
are skipped with the reason. Leaves out the cache's folders (`cache`) and the unpacking of packages (`debian`).
"""

import shlex
import shutil
from pathlib import Path

import cache
import debian
import progress
from environment import VENV, write_script

INSTALLED = ("chromium", "chromium-headless-shell", "google-chrome", "google-chrome-stable", "chrome")
PACKAGE = "chromium-headless-shell"
BINARY = "usr/lib/chromium/chromium-headless-shell"
NOT_FOUND = "exit 127\n"
REPAIR = f"""\
Chromium could not be set up, so the tests that look at reports in a browser are skipped; everything else works.
  Repair: install it so that it is on PATH (as root: apt-get update && apt-get install chromium)
  and run `make setup-dev` again; or, if only the network was away, delete {VENV / "bin" / "chromium"}
  first."""


def link() -> None:
    """Write `.venv/bin/chromium`: starts the browser, or prints how to get it."""
    script = VENV / "bin" / "chromium"
    name = f"{PACKAGE}-{debian.release()}"
    folder = cache.root() / name
    if not folder.is_dir():
        if installed := _find_installed():
            write_script(script, f'exec {shlex.quote(installed)} "$@"\n')
            return
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


def _find_installed() -> str | None:
    """A Chromium on PATH that starts: Ubuntu's package is only a script that requires another package."""
    path = debian.path_without(VENV / "bin")
    for name in INSTALLED:
        if program := shutil.which(name, path=path):
            try:
                debian.answer([program, "--version"])
            except progress.StepError:
                continue
            return program
    return None


def _unpack(folder: Path) -> None:
    debian.unpack(PACKAGE, folder, size="100 MB", also=("chromium-common",))
    debian.answer([str(folder / BINARY), "--version"], LD_LIBRARY_PATH=debian.libraries(folder))
