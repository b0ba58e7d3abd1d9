"""`python3 tools/toolchain/truth_server.py`: build the server of tools/bench/truth with Go, once; print the program.

In the cache outside the clone, under a name that holds a checksum of its source. Standard library only.
"""

import hashlib
import sys
from pathlib import Path

import cache
import environment
import progress

SOURCE = environment.CLONE / "tools" / "bench" / "truth" / "server"
NAME = "truth"


def program() -> Path:
    """The program.

    Raises:
        progress.StepError: Go is missing or failed.
    """
    files = [SOURCE / "go.mod", *sorted(SOURCE.glob("*.go"))]
    checksum = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]

    def make(folder: Path) -> None:
        command = ["go", "build", "-mod=readonly", "-ldflags", "-s -w", "-o", str(folder / NAME), "."]
        progress.run("building the server that knows the truth, once", command, log=folder / "build.log", cwd=SOURCE)

    return cache.obtain(f"truth-server-{checksum}", make, waiting=progress.say) / NAME


if __name__ == "__main__":
    try:
        print(program())
    except progress.StepError as error:
        sys.exit(str(error))
