"""Virtual environment of the clone: `uv sync` from uv.lock, with uv from PATH or, where it is missing, from PyPI.

Leaves out the Pulumi CLI itself; only the small script `.venv/bin/pulumi`, which starts it, is made here.
"""

import contextlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import cache
import progress

UV = "0.13.9"
CLONE = Path(__file__).resolve().parent.parent.parent
VENV = CLONE / ".venv"
PLUGINS = CLONE / "packages" / "pulumi-offline" / "bezel_pulumi_offline" / "plugins"
HOST = PLUGINS / "pulumi-language-python"
# Group of dependencies with an environment of its own -> the program that it is for.
GROUPS = {"site": "zensical", "wheels": "cibuildwheel"}


def find_uv() -> str:
    """The path of uv.

    Raises:
        progress.StepError: it is not on PATH and cannot be installed.
    """
    uv = shutil.which("uv")
    if uv:
        return uv

    def make(folder: Path) -> None:
        log = folder / "install.log"
        try:
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True, timeout=300)
        except subprocess.CalledProcessError as error:
            text = (
                "this Python cannot make a virtual environment: install its venv module (Debian: python3-venv), or uv"
            )
            raise progress.StepError(text) from error
        install = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", f"uv=={UV}"]
        progress.run(f"installing uv {UV}", install, log=log)

    return str(cache.obtain(f"uv-{UV}", make, waiting=progress.say) / "bin" / "uv")


@contextlib.contextmanager
def sync(uv: str, *, developer: bool) -> Iterator[None]:
    """Update `.venv` to uv.lock until the block ends; silent where it matches already.

    A new `.venv` is made while the block runs, as both wait for downloads for most of the time.

    Args:
        uv: The program.
        developer: Add what lint and tests need, and in `.venv/imports` the environment of lint-imports. A clone that
            has these packages keeps them up to date.

    Raises:
        progress.StepError: uv failed.
    """
    groups = ["--group", "dev"] if developer or (VENV / "bin" / "mypy").exists() else ["--no-default-groups"]
    with _sync(uv, VENV, VENV / "bin" / "bezel", "--all-packages", *groups):
        yield
    if developer:
        with _sync(uv, VENV / "imports", VENV / "imports" / "bin" / "lint-imports", "--only-group", "imports"):
            pass


def sync_group(uv: str, group: str) -> None:
    """Update `.venv/GROUP`, the environment of a group of GROUPS alone, to uv.lock; silent where it matches already.

    Raises:
        progress.StepError: uv failed.
    """
    with _sync(uv, VENV / group, VENV / group / "bin" / GROUPS[group], "--only-group", group):
        pass


@contextlib.contextmanager
def _sync(uv: str, folder: Path, made: Path, *groups: str) -> Iterator[None]:
    env = os.environ | {"UV_PROJECT_ENVIRONMENT": str(folder), "VIRTUAL_ENV": ""}
    command = [uv, "sync", "--locked", "--quiet", *groups]
    if made.exists():
        answer = subprocess.run(command, capture_output=True, text=True, check=False, cwd=CLONE, env=env, timeout=900)
        if answer.returncode:
            raise progress.StepError(f"`uv sync --locked` failed:\n{answer.stderr.strip()}")
        yield
        return
    log = cache.root() / "sync.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    # With the present interpreter: otherwise uv would look for one to download.
    command += ["--python", sys.executable]
    what = f"making {folder.relative_to(CLONE)} from uv.lock"
    with progress.Step(what, command, log=log, env=env, cwd=CLONE) as step:
        yield
        step.wait()


def link_pulumi(folder: Path) -> None:
    """Write `.venv/bin/pulumi`: starts the CLI of `folder`, with the scripts that it looks for on PATH."""
    # A script, not a link: the engine looks for its helpers beside its own file.
    variables = f'PATH={shlex.quote(str(folder))}:"$PATH" BEZEL_LANGUAGE_HOST={shlex.quote(str(HOST))}'
    # It runs for seconds: collecting garbage less often saves a quarter of its CPU time, for some MB more.
    variables += ' GOGC="${GOGC:-400}"'
    # After `bezel local env` a user's `pulumi` is that of localcloud, by this path too; it starts this script again.
    local = 'if [ -x "${BEZEL_LOCAL_PULUMI:-}" ]; then exec "$BEZEL_LOCAL_PULUMI" "$@"; fi\n'
    # What the plugins run with, the language host among them; `bezel` names its own interpreter.
    python = f'[ -n "${{BEZEL_PYTHON:-}}" ] || export BEZEL_PYTHON={shlex.quote(str(VENV / "bin" / "python"))}\n'
    text = f'{local}{python}{variables} exec {shlex.quote(str(folder / "pulumi"))} "$@"\n'
    write_script(VENV / "bin" / "pulumi", text)


def write_script(path: Path, text: str) -> None:
    """Write a script of `sh` atomically; leave one with the same text unchanged."""
    text = f"#!/bin/sh\n{text}"
    if path.exists() and path.read_text() == text:
        return
    part = path.with_suffix(f".{os.getpid()}")
    part.write_text(text)
    part.chmod(0o755)
    part.replace(path)
