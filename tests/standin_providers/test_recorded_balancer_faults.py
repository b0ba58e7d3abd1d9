"""Refused and failed calls of the load-balancing types: the stand-in's texts and requests against recordings.

BEZEL_TRAFFIC names the folder of recordings; `balancer/faults.json` has the answer to each request. Compared are
the calls that fail because of one answer; names of resources are written as N, those of projects as P.
"""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bezel_pulumi_offline.plugin.google_plugin import GooglePlugin
from pulumi_offline_support.client import FailedError, Provider, ServedProvider
from pulumi_offline_support.google import FakeGoogle
from pulumi_offline_support.programs import PROGRAMS, UPDATES, with_change

TRAFFIC = os.environ.get("BEZEL_TRAFFIC")
# Cases whose program the recording leaves out, or whose text is another one here, with the reason.
KNOWN = {
    "setUrlMap 400 in a change of two properties": "the change is not in the recording",
    "rrsets GET 404 (no such zone)": "the name of the recorded zone is in the text",
    "GET after create 404": "the bridge's own text; the stand-in says what has happened",
}
ADVICE = "It exists, and is not in the state"  # what the stand-in adds to a refusal because of a name that is taken

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not TRAFFIC, reason="BEZEL_TRAFFIC does not name a folder with recordings"),
]


def failures() -> Iterator[dict[str, Any]]:
    for record in json.loads((Path(str(TRAFFIC)) / "balancer" / "faults.json").read_text()):
        if "answer" in record and record["result"] == "failed" and record["case"] not in KNOWN:
            yield record


def without_names(text: str) -> str:
    """A text in which what a program chooses is a letter."""
    text = re.sub(r"urn:pulumi:\S+?::gcp", "urn::gcp", text).partition(ADVICE)[0]
    text = re.sub(r"::(thing|flt)\b", "::N", re.sub("demo-project|bezel-local", "P", text))
    return re.sub(r'"(projects/P/[^"]*)/[^"/]+"', r'"\1/N"', text)


def repeat(provider: Provider, record: dict[str, Any], resource_id: str, made: dict[str, Any]) -> object:
    """Make the recorded call, with our program of its type."""
    kind, program = record["token"], PROGRAMS[record["token"]]
    match record["rpc"]:
        case "Create":
            return provider.create(kind, program)
        case "Update":
            return provider.update(kind, resource_id, made, with_change(program, *UPDATES[kind]))
        case "Delete":
            return provider.delete(kind, resource_id, made)
    return provider.read(kind, resource_id, made, provider.inputs(kind, program))


def failure_of(provider: Provider, google: FakeGoogle, record: dict[str, Any]) -> tuple[str, int]:
    """The text of a call that Google refuses as recorded, and how often the refused request was sent."""
    program, answer = PROGRAMS[record["token"]], record["answer"]
    resource_id, made = provider.create(record["token"], program) if record["rpc"] != "Create" else ("", {})
    method, _, path = answer["on"].partition(" ")
    request = f"{method} .*{path.rstrip('$').replace('flt', program['name'])}"
    google.fail(request, answer["status"], answer["body"], times=answer["times"])
    google.requests.clear()
    with pytest.raises(FailedError) as failed:
        repeat(provider, record, resource_id, made)
    return failed.value.text, sum(bool(re.fullmatch(request, str(each))) for each in google.requests)


def test_failures_have_the_recorded_texts_and_attempts() -> None:
    compared = 0
    with FakeGoogle() as google:
        provider = ServedProvider(
            GooglePlugin({**google.environment(), "BEZEL_SPEED": "2000"}), {"pollInterval": "1ms"}
        )
        for record in failures():
            google.clear()
            text, attempts = failure_of(provider, google, record)
            assert without_names(text) == without_names(record["message"]), record["case"]
            if record["answer"]["times"] == 1 or record["refused"] == 1:
                assert attempts == record["refused"], record["case"]
            compared += 1
        provider.close()
    assert compared == 37
