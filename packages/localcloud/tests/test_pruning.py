"""The database forgets some things by itself, and others never."""

import pytest

from bezel_localcloud.core.errors import ApiError
from bezel_localcloud.core.files.objects import ObjectFiles
from bezel_localcloud.core.operations import Operations
from bezel_localcloud.core.paths import Paths
from bezel_localcloud.core.store import Store

DAY = 86_400.0


class Clock:
    """The pace of a cloud whose time is set by hand."""

    speed = 1.0

    def __init__(self):
        self.time = 0.0

    def now(self):
        return self.time

    def seconds(self, simulated):
        return simulated


@pytest.fixture
def layout(tmp_path):
    new_layout = Paths(tmp_path)
    new_layout.create()
    return new_layout


@pytest.fixture
def store(layout):
    new_store = Store(layout.database)
    yield new_store
    new_store.close()


def is_known(operations, name):
    try:
        return operations.get(name)["name"] == name
    except ApiError:
        return False


def test_an_operation_is_forgotten_a_day_after_its_end(store):
    """An operation is forgotten a day after its end and never while it is open."""
    clock = Clock()
    operations = Operations(store, clock)
    ended, still_open = operations.begin("p", {}), operations.begin("p", {})
    operations.finish(ended)
    clock.time = DAY - 1
    operations.begin("p", {})
    assert (is_known(operations, ended), is_known(operations, still_open)) == (True, True)
    clock.time = DAY + 1
    operations.begin("p", {})
    assert (is_known(operations, ended), is_known(operations, still_open)) == (False, True)


def test_only_the_last_so_many_ended_operations_are_kept(store):
    for name, ends in (("a", 1.0), ("b", 2.0), ("c", 3.0), ("open", None)):
        store.put_operation(name, {}, ends)
    store.prune_operations(before=0.0, keep=2)
    assert [store.operation(name) is not None for name in ("a", "b", "c", "open")] == [False, True, True, True]


def test_a_session_of_an_upload_is_forgotten_after_a_week_with_its_bytes(layout, store):
    files = ObjectFiles(layout, store)
    for name, opened in (("old", 0.0), ("young", 2 * DAY)):
        store.put("upload", name, {"bucket": "b", "opened": opened})
        (layout.uploads / name).write_bytes(b"x")
    files.forget_sessions(8 * DAY)
    assert [name for name, _ in store.rows("upload")] == ["young"]
    assert [path.name for path in layout.uploads.iterdir()] == ["young"]
    # A restart keeps what a living session has received.
    files.recover()
    assert [path.name for path in layout.uploads.iterdir()] == ["young"]


def test_a_bucket_takes_its_sessions_along(layout, store):
    files = ObjectFiles(layout, store)
    for name in ("gone", "kept"):
        store.put("upload", name, {"bucket": name, "opened": 0.0})
    files.forget_sessions(0.0, "gone")
    assert [name for name, _ in store.rows("upload")] == ["kept"]
