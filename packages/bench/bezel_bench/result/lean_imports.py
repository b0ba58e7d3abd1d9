"""Import of numpy and pydantic without threads of linear algebra and plugins of other programs, which no result needs.

Owns the two settings. They are taken back after the import, for the processes that are started later.
"""

import contextlib
import os
from collections.abc import Iterator, Mapping
from typing import Final

# A thread of OpenBLAS spins for 20 ms before it first sleeps, on each core but one; no figure multiplies matrices.
# To find plugins, pydantic reads the entry points of all installed distributions.
_SETTINGS: Final[Mapping[str, str]] = {"OPENBLAS_NUM_THREADS": "1", "PYDANTIC_DISABLE_PLUGINS": "__all__"}


@contextlib.contextmanager
def lean_imports() -> Iterator[None]:
    """Set what the environment leaves open, for what is imported inside."""
    added = {name: value for name, value in _SETTINGS.items() if name not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for name in added:
            del os.environ[name]
