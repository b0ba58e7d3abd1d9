"""Reads the recorded answers of a real server (tests/fixtures/vllm): each a request and what came back."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures" / "vllm"
SAMPLES_RELEASE = "0.32.0"
# Recorded three times, the same to the byte; kept once.
_SAME = {"engine-dead/openapi": "openapi", "ngram-apikey/openapi": "openapi"}


@dataclass(frozen=True)
class Sample:
    """One request and the answer that the real server gave; headers as name and value, names in lower case."""

    method: str
    path: str
    body: bytes
    status: int
    reason: str
    headers: list[tuple[str, str]]
    answer: str
    asked: dict[str, str] = field(default_factory=dict)

    @property
    def json(self):
        return json.loads(self.answer)

    @property
    def events(self):
        return events(self.answer)


def events(text: str) -> list:
    """The JSON of each server-sent event; `[DONE]` as text."""
    data = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(line) if line != "[DONE]" else line for line in data]


def text_of(name: str) -> str:
    return (FIXTURES / f"{_SAME.get(name, name)}.txt").read_text(encoding="utf-8")


@cache
def sample(name: str) -> Sample:
    lines = text_of(name).split("\n")
    return _curl(lines) if "http://" in lines[0] else _client(lines)


def _client(lines: list[str]) -> Sample:
    sent = [line[2:] for line in lines if line.startswith(("> ", ">\n"))]
    method, path = sent[0].split(" ", 1)
    asked, body = {}, ""
    for line in sent[1:]:
        if match := re.match(r"(Content-Type|Authorization): (.*)", line):
            asked[match[1].lower()] = match[2]
        elif line:
            body = line
    if body and "content-type" not in asked:
        asked["content-type"] = "application/json"
    answer_head = [line[2:] for line in lines if line.startswith("< ")]
    status, reason = re.match(r"(\d+) (.*?)(?:  .*)?$", answer_head[0]).groups()
    headers = [(name, value) for name, _, value in (line.partition(": ") for line in answer_head[1:])]
    rest = lines[max(at for at, line in enumerate(lines) if line.startswith("< ")) + 2 :]
    if rest and re.match(r"\+ +[\d.]+ ms '", rest[0]):
        rest = [ast.literal_eval(line.split(" ms ", 1)[1]).rstrip("\n") for line in rest if line]
    return Sample(method, path, _whole(body), int(status), reason, headers, "\n".join(rest).rstrip("\n"), asked)


def _curl(lines: list[str]) -> Sample:
    match = re.match(r"> (-X POST )?http://[^/]+(\S+)(?: -H content-type:(\S+))?(?: -d (.*))?$", lines[0])
    assert match
    body = (match[4] or "").encode()
    method = "POST" if match[1] or body else "GET"
    end = lines.index("", 1)
    headers = [(name, value) for name, _, value in (line.partition(": ") for line in lines[2:end])]
    _, status, reason = lines[1].split(" ", 2)
    answer = "\n".join(lines[end:]).strip("\n")
    return Sample(
        method, match[2], body, int(status), reason, headers, answer, {"content-type": match[3]} if match[3] else {}
    )


def _whole(body: str) -> bytes:
    """Bodies of 200,000 repeated characters were cut when they were recorded."""
    if match := re.match(r"(.*?)((?:import os\\n){3,}).*\.\.\. \(\d+ chars\)$", body):
        end = "}]}" if '"messages"' in body else "}"
        return (match[1] + "import os\\n" * 20000 + '"' + end).encode()
    return body.encode()
