"""Imports of `bezel-bench run`: before its load has ended nothing that only a result needs, and then no more than that.

The seconds until the first request are for `tools/bench/compare_clients.py` to measure.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from bench_support.http_server import Answer, Call, serving
from bench_support.recorded import recorded_body, recorded_stream

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

OF_A_RESULT = ("numpy", "pydantic", "zipfile", "bezel_bench.result.document", "bezel_bench.metrics.definitions")
OF_OTHER_LOADS = (
    *("asyncio", "multiprocessing", "yaml", "urllib.request", "concurrent.futures"),
    *("ssl", "http.client", "email", "importlib.metadata"),
)
# Imported by functions of numpy that a figure can do without.
OF_MASKED_ARRAYS = "numpy.ma"
NAMES = {*OF_A_RESULT, *OF_OTHER_LOADS, OF_MASKED_ARRAYS}
# The loaded ones of these modules at the last connection to the server, which reads its counters, and at the end; and
# the threads then.
PROGRAM = f"""
import json, os, sys
loaded = []
def look(event, _):
    if event == "socket.connect":
        loaded[:] = {NAMES} & {{*sys.modules}}
sys.addaudithook(look)
from bezel_bench.commands.main import main
main()
print(json.dumps([loaded, [*{NAMES} & {{*sys.modules}}], len(os.listdir("/proc/self/task"))]))
"""


def test_a_load_waits_for_no_import_that_only_its_result_needs(tmp_path: Path) -> None:
    def answer(call: Call) -> Answer | None:
        if call.path == "/v1/models":
            return Answer(json=json.loads(recorded_body("models.txt")))
        stream = [line for _, line in recorded_stream("chat-stream-usage.txt")]
        return Answer(chunks=stream) if call.path == "/v1/chat/completions" else None

    with serving() as server:
        server.routes[:] = [answer]
        command = ["run", "--url", server.url, "--public", "--requests", "4", "--output-tokens", "6"]
        command += ["--out", str(tmp_path / "r.json")]
        ended = subprocess.run(
            [sys.executable, "-c", PROGRAM, *command], stdout=subprocess.PIPE, text=True, check=True, timeout=60
        )
    during, after, threads = json.loads(ended.stdout.splitlines()[-1])
    assert during == []
    assert "bezel_bench.result.document" in after
    assert (OF_MASKED_ARRAYS in after, threads) == (False, 1)
