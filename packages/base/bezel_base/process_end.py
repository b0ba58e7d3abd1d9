"""Collection of garbage in a program's process: seldom while it works, and none at its end."""

import atexit
import gc

# Objects between two collections of the youngest; by default 700, which loading a module exceeds many times.
_THRESHOLD = 50_000


def collect_seldom() -> None:
    """Look for garbage seldom: what loading modules makes stays, and looking at it takes a tenth of a start."""
    gc.set_threshold(_THRESHOLD)


def skip_last_collection() -> None:
    """Let the interpreter end without a last collection of garbage.

    That visits every object of the loaded modules: 0.3 s in a program that has Pulumi's SDK. Streams are flushed and
    functions of `atexit` run as without it; only objects of a cycle are not finalized, and they end with the process.
    """
    atexit.register(gc.freeze)
