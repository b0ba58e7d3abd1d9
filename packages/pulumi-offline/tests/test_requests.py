"""Requests on the wire for each resource type, held by a golden file made from a run of our own."""

import json
import os
from typing import Any

import pytest

from pulumi_offline_support.client import Provider
from pulumi_offline_support.google import FakeGoogle
from pulumi_offline_support.programs import GOLDEN, PROGRAMS, UPDATES, with_change

AGAIN = "BEZEL_WRITE_GOLDENS=1 .venv/bin/python -m pytest packages/pulumi-offline/tests/test_requests.py"


def take_requests(google: FakeGoogle) -> list[dict[str, Any]]:
    requests = [
        {
            "request": str(item),
            "query": item.query,
            **({"body": item.body if isinstance(item.body, dict) else "multipart"} if item.body else {}),
        }
        for item in google.requests
    ]
    requests = json.loads(json.dumps(requests).replace(google.base, "BASE"))
    google.requests.clear()
    return requests


@pytest.mark.slow
@pytest.mark.parametrize("kind", PROGRAMS)
def test_the_requests_of_a_whole_life(kind: str, google: FakeGoogle, gcp: Provider) -> None:
    program = PROGRAMS[kind]
    google.polls = 1
    resource_id, state = gcp.create(kind, program)
    log: dict[str, Any] = {
        "create": take_requests(google),
        "state": json.loads(json.dumps(state).replace(google.base, "BASE")),
    }
    gcp.read(kind, resource_id, state, gcp.inputs(kind, program))
    log["read"] = take_requests(google)
    if kind in UPDATES:
        state = gcp.update(kind, resource_id, state, with_change(program, *UPDATES[kind]))
        log["update"] = take_requests(google)
    gcp.delete(kind, resource_id, state)
    log["delete"] = take_requests(google)

    golden: dict[str, Any] = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("BEZEL_WRITE_GOLDENS"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(json.dumps({**golden, kind: log}, indent=1, sort_keys=True) + "\n")
    else:
        assert log == golden.get(kind), f"if that is meant, write the golden again: {AGAIN}"


def test_the_golden_holds_every_type() -> None:
    assert json.loads(GOLDEN.read_text()).keys() == PROGRAMS.keys()
