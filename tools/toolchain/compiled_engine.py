"""`.venv/bin/python tools/toolchain/compiled_engine.py`: compile the load engine's modules once; print their folder.

In the cache outside the clone, under a name that holds a checksum of their source and of this Python. With it on
PYTHONPATH, `bezel_bench` imports them. Leaves out the wheel (`packages/bench/compiled`). Standard library only.
"""

import hashlib
import shutil
import sys
from pathlib import Path

import cache
import environment
import progress

PACKAGE = environment.CLONE / "packages" / "bench" / "bezel_bench"
PROJECT = environment.CLONE / "packages" / "bench" / "compiled"


def compiled_engine() -> Path:
    """The folder of the compiled modules.

    Raises:
        progress.StepError: A C compiler is missing, or failed.
    """
    sources = [PACKAGE / "compiled_modules.py", PROJECT / "setup.py", PROJECT / "pyproject.toml"]
    sources += [file for part in ("client", "load", "result") for file in sorted((PACKAGE / part).glob("*.py"))]
    text = sys.version.encode() + b"".join(file.read_bytes() for file in sources)

    def make(folder: Path) -> None:
        # Sources of a build in the clone would count as its own.
        project, log = folder / "project", folder / "build.log"
        shutil.copytree(PROJECT, project, ignore=shutil.ignore_patterns("build"))
        command = [sys.executable, "setup.py", "--quiet", "build", "--build-lib", str(folder)]
        progress.run("compiling the load engine, once", command, log=log, cwd=project)
        shutil.rmtree(project)

    checksum = hashlib.sha256(text).hexdigest()[:12]
    return cache.obtain(f"compiled-engine-{checksum}", make, waiting=progress.say)


if __name__ == "__main__":
    try:
        print(compiled_engine())
    except progress.StepError as error:
        sys.exit(str(error))
