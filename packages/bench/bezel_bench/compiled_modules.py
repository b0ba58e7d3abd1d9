"""Compiled modules of the load engine (distribution `bezel-bench-compiled`): imported only if of the same source.

They are compiled from the sources of this package, and replace these when they are imported. A build of another source
could measure otherwise than the installed text says, so none of it is used. Owns the list of modules and the checksum
of their source, which the build records. Leaves out the build itself (`packages/bench/compiled`).
"""

import sys
from collections.abc import Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec
from importlib.util import source_hash, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Final

PACKAGE: Final = Path(__file__).parent
MODULES: Final = (
    "client.connection",
    "client.loop",
    "client.pool",
    "client.read_coalescing",
    "client.response_buffer",
    "client.route",
    "client.sender",
    "client.silence",
    "client.sse_template",
    "client.stream",
    "load.patterns",
    "result.sample",
    "result.spill",
)
"""Names within `bezel_bench`: what runs for each request or chunk, together, as they call each other without Python.

Not `client.stalls`, which the loop calls every 10 ms: Python runs handlers of signals only where it interprets code.
"""
# The compiler also takes types and constants from modules that it does not compile.
_READ: Final = ("client", "load", "result")


def source_checksum(package: Path = PACKAGE) -> str:
    """Return a checksum of all sources that the compiler reads in a folder of `bezel_bench`."""
    files = (file for part in _READ for file in sorted((package / part).glob("*.py")))
    return source_hash(b"".join(file.read_bytes() for file in files)).hex()


class CompiledFinder:
    """Finder of the compiled modules for `sys.meta_path`."""

    def __init__(self, files: dict[str, Path]) -> None:
        """Args: files: full name of a module -> its compiled file."""
        self._files = files

    def find_spec(self, name: str, _: Sequence[str] | None = None, __: ModuleType | None = None) -> ModuleSpec | None:
        """Return the compiled module of that name; None for any other."""
        file = self._files.get(name)
        return spec_from_file_location(name, file) if file else None


def compiled_files(folder: Path, suffixes: Sequence[str] = EXTENSION_SUFFIXES) -> dict[str, Path]:
    """Return full name -> file of the compiled modules in a folder that this Python can import."""
    paths = {name: folder.joinpath(*name.split(".")) for name in MODULES}
    files = ((name, path.with_name(path.name + suffix)) for name, path in paths.items() for suffix in suffixes)
    return {f"bezel_bench.{name}": file for name, file in files if file.exists()}


def prefer_compiled(build: ModuleType) -> str:
    """Have the modules of an installed build imported instead of their sources, or none of them.

    Args:
        build: `bezel_bench_compiled`, with `SOURCE`, the checksum of what it was compiled from.

    Returns:
        "compiled", or why the build is not used.
    """
    if source_checksum() != build.SOURCE:
        return "pure: bezel-bench-compiled is of another source"
    files = compiled_files(Path(str(build.__file__)).parent)
    if len(files) < len(MODULES):
        return "pure: bezel-bench-compiled is of another Python"
    sys.meta_path.insert(0, CompiledFinder(files))
    return "compiled"
