"""Outside clients, as tests start them: interpreters and programs from the cache outside the clone."""

import functools
import subprocess
import sys
from pathlib import Path

from tests.support.needed_programs import need_program

ROOT = Path(__file__).parents[3]
_SCRIPT = ROOT / "tools" / "toolchain" / "clients.py"
_SECONDS = 900


def python(name: str) -> Path:
    """The interpreter with the packages of `tests/clients/requirements/NAME.txt`."""
    return _folder("python", name) / "bin" / "python"


def npm(name: str) -> Path:
    """The folder whose `node_modules` has the packages of `tests/clients/npm/NAME`; skips where there is no npm."""
    need_program("npm", f"installs the npm packages {name}")
    return _folder("npm", name)


def go_tool(name: str) -> Path:
    """A program of the modules below `tests/clients/go`; skips where it is not built yet and there is no Go."""
    need_program("go", f"builds {name}")
    return _folder("go", name) / name


def maven(name: str) -> Path:
    """The class path of the packages of `tests/clients/maven/NAME`; skips where there is no Maven."""
    need_program("mvn", f"installs the Maven packages {name}")
    return _folder("maven", name) / "jars" / "*"


def debian(name: str) -> Path:
    """The folder of an unpacked Debian package, `usr/bin/...`; skips where there is no apt-get."""
    need_program("apt-get", f"fetches the package {name}")
    return _folder("debian", name)


@functools.cache
def _folder(kind: str, name: str) -> Path:
    command = [sys.executable, str(_SCRIPT), kind, name]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=_SECONDS, check=True)
    return Path(ended.stdout.strip())
