"""A program's process looks for garbage seldom, ends without a last collection, and leaves nothing else out."""

import subprocess
import sys

import pytest

PROGRAM = """
import atexit
from bezel_base.process_end import skip_last_collection

class Cycle:
    def __init__(self):
        self.itself = self

    def __del__(self):
        print("collected", flush=True)

{call}
atexit.register(print, "cleaned up")
cycle = Cycle()
print("done")
"""


LOADING = """
import gc
from bezel_base.process_end import collect_seldom

{call}
before = gc.get_stats()[0]["collections"]
kept = [[] for _ in range(10_000)]
print(gc.get_stats()[0]["collections"] - before > 0)
"""


@pytest.mark.parametrize(("call", "is_searched"), [("collect_seldom()", "False"), ("", "True")])
def test_process_is_searched_seldom_only_where_it_asks(call: str, is_searched: str) -> None:
    program = [sys.executable, "-c", LOADING.format(call=call)]
    ended = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.strip() == is_searched


@pytest.mark.parametrize(
    ("call", "lines"),
    [("skip_last_collection()", ["done", "cleaned up"]), ("", ["done", "cleaned up", "collected"])],
)
def test_process_ends_without_a_last_collection_only_where_it_asks(call: str, lines: list[str]) -> None:
    program = [sys.executable, "-c", PROGRAM.format(call=call)]
    ended = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.split("\n")[:-1] == lines
