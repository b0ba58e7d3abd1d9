"""`python -m bezel.engine.local.find_cli`: finds the Pulumi CLI for an environment, or says what to install.

One beside the interpreter or on PATH is used as it is. Without one, that of the cache of a clone's `make setup` gets a
script in this environment: the CLI was built without a language host, so the script names the one of this environment.
"""

import os
import shlex
import sys
from pathlib import Path

import bezel_pulumi_offline
from bezel.engine import LOCAL_PULUMI
from bezel.engine.run.command import pulumi_cli
from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem, UserError

_HOST = Path(bezel_pulumi_offline.__file__).parent / "plugins" / "pulumi-language-python"
_CACHED = "pulumi-*-release/pulumi", "pulumi-*-built-*/pulumi"
INSTALL = "https://www.pulumi.com/docs/install/"


def find_cli(environment: Path, cache: Path) -> str:
    """The path of the CLI.

    Args:
        environment: The virtual environment that gets the script.
        cache: Folder of what a clone's `make setup` has downloaded or built.

    Raises:
        UserError: There is none.
    """
    try:
        return pulumi_cli()
    except UserError:
        cached = sorted(
            (file for pattern in _CACHED for file in cache.glob(pattern)), key=lambda file: file.stat().st_mtime
        )
    if not cached:
        consequence = "the Pulumi CLI is neither in this virtual environment nor on PATH, so nothing can be deployed."
        raise UserError(Problem("pulumi", None, consequence, f"install it: {INSTALL}"))
    script = environment / "bin" / "pulumi"
    write_whole(script, _script(cached[-1].parent, environment / "bin" / "python"), mode=0o755)
    return str(script)


def _script(folder: Path, python: Path) -> str:
    local = f'if [ -x "${{{LOCAL_PULUMI}:-}}" ]; then exec "${LOCAL_PULUMI}" "$@"; fi\n'
    python_line = f'[ -n "${{BEZEL_PYTHON:-}}" ] || export BEZEL_PYTHON={shlex.quote(str(python))}\n'
    variables = (
        f'PATH={shlex.quote(str(folder))}:"$PATH" BEZEL_LANGUAGE_HOST={shlex.quote(str(_HOST))} GOGC="${{GOGC:-400}}"'
    )
    return f'#!/bin/sh\n{local}{python_line}{variables} exec {shlex.quote(str(folder / "pulumi"))} "$@"\n'


def main() -> int:
    """Find it; return the exit status."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    try:
        find_cli(Path(sys.prefix), base / "bezel")
    except UserError as error:
        sys.stderr.write(f"bezel: {error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
