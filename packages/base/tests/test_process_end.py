"""A process that has done its work ends without a last collection of garbage, and leaves nothing else out."""

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


@pytest.mark.parametrize(
    ("call", "lines"),
    [("skip_last_collection()", ["done", "cleaned up"]), ("", ["done", "cleaned up", "collected"])],
)
def test_process_ends_without_a_last_collection_only_where_it_asks(call: str, lines: list[str]) -> None:
    program = [sys.executable, "-c", PROGRAM.format(call=call)]
    ended = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.split("\n")[:-1] == lines
