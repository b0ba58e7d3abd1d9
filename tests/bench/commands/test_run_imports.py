"""Imports of `bezel bench run` before its first request to an address: none of what finds and knows stacks."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.support.docs.markdown import ROOT

OF_STACKS = ("bezel_catalog", "bezel.rest", "bezel.operations.context", "pulumi", "httpx", "google.auth", "grpc")
OF_OTHER_LOADS = ("numpy", "pydantic", "asyncio", "ssl", "http.client", "email", "importlib.metadata")
# The loaded ones at the first connection, which nothing takes.
PROGRAM = f"""
import json, sys
def look(event, _):
    if event == "socket.connect":
        loaded.append([*{{*{OF_STACKS}, *{OF_OTHER_LOADS}}} & {{*sys.modules}}])
loaded = []
sys.addaudithook(look)
from bezel.cli.main import main
print(json.dumps([main(sys.argv[1:]), loaded]))
"""


@pytest.mark.slow
def test_a_load_on_an_address_begins_without_what_only_stacks_need() -> None:
    command = [sys.executable, "-c", PROGRAM, "bench", "run", "--url", "http://127.0.0.1:9", "--public"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(ended.stdout) == [1, [[]]]


def test_each_of_these_modules_exists() -> None:
    assert [name for name in (*OF_STACKS, *OF_OTHER_LOADS) if find_spec(name) is None] == []
