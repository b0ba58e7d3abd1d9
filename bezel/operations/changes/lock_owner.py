"""Owner of a stack's lock, as text: of Bezel's own in a bucket, else of the engine's. Reads only."""

from collections.abc import Callable

from bezel.engine.locks.engine_locks import read_engine_locks
from bezel.engine.locks.record import object_name, parse
from bezel.engine.locks.stale_locks import present_lock
from bezel.engine.state.backend import local_folder
from bezel.engine.state.bucket import BACKEND, StateBucket
from bezel.operations.context import Context
from bezel.operations.redaction import clean_text

FREE = "free"
_WORD = 200


def reader_of_locks(context: Context) -> tuple[Callable[[str], str | None], str]:
    """What reads the lock of a stack, and why no lock of this backend is read; "" where they are.

    It returns the owner, `free`, or None for a lock that is not judged, and raises UserError where it cannot be read.
    """
    backend, project = context.environ.get(BACKEND, ""), context.project.name
    if backend.startswith("file://"):
        folder = local_folder(backend)
        return lambda stack: clean_text(present_lock(folder, project, stack) or FREE, _WORD), ""
    if not backend.startswith("gs://"):
        return lambda _stack: None, "locks are not judged: this backend shows them to the engine alone"

    def of_bucket(stack: str) -> str:
        with StateBucket.of(backend, context.environ) as states:
            stored = states.read(object_name(project, stack))
            if stored is not None:
                lock = parse(stored[0])
                return clean_text(lock.text if lock else "an unknown owner", _WORD)
            engines = read_engine_locks(states, project, stack)
        return clean_text(engines[0].text, _WORD) if engines else FREE

    return of_bucket, ""
