"""The end of a process."""

import atexit
import gc


def skip_last_collection() -> None:
    """Let the interpreter end without a last collection of garbage.

    That visits every object of the loaded modules: 0.3 s in a program that has Pulumi's SDK. Streams are flushed and
    functions of `atexit` run as without it; only objects of a cycle are not finalized, and they end with the process.
    """
    atexit.register(gc.freeze)
