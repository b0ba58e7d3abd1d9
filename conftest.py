"""What a run does without, as each of its workers would pay for it.

It reads only the test modules that it can want: importing all of them costs seconds. And it looks for garbage seldom,
and never among what was imported and collected, which stays to the end: 300,000 objects. And each worker begins with
its share of the runs of the engine, which take up to two minutes: what is left for the end is short.
"""

import gc
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# How long an example takes says how busy the machine is.
settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")

gc.disable()  # until all is collected: what is imported stays

# httpx asks for it with each request, and each time all folders of the path are searched.
if find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]

# A shell without job control lets what it starts in the background ignore an interrupt, and all that it starts in turn:
# tests that interrupt something would wait for what never comes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# `nohup` does the same with SIGHUP.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

WHOLE_ENGINE = Path(__file__).parent / "tests" / "e2e"
LONG = "long and not clients"
WHOLLY_SLOW = ("pytestmark = pytest.mark.slow", "pytestmark = [pytest.mark.slow")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what the recipes' `-m` would deselect anyway, as far as a module's text tells."""
    wanted = config.option.markexpr
    recipes = {"slow", "slow and not long", "not slow", LONG}
    if wanted not in recipes or not collection_path.name.startswith("test_"):
        return None
    text = collection_path.read_text(encoding="utf-8")
    if wanted == LONG:
        return "mark.long" not in text or None
    if WHOLE_ENGINE in collection_path.parents or any(line.startswith(WHOLLY_SLOW) for line in text.splitlines()):
        return (wanted == "not slow") or None
    return (wanted != "not slow" and "mark.slow" not in text) or None


@pytest.hookimpl(trylast=True)  # what is deselected is gone by then
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Deal the runs of the engine out to the workers: of the items in their order, each begins with an equal part."""
    here = f"{WHOLE_ENGINE}{os.sep}"
    long = [item for item in items if str(item.path).startswith(here)]
    short = [item for item in items if not str(item.path).startswith(here)]
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))

    def part(worker: int) -> int:
        return len(short) * worker // workers

    items[:] = [
        item for worker in range(workers) for item in (*long[worker::workers], *short[part(worker) : part(worker + 1)])
    ]


def pytest_collection_finish() -> None:
    """Leave out of every search for garbage what stays to the end of the run."""
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)
    gc.enable()
