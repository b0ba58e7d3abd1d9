"""Reads the recorded answers of a real server (tests/fixtures/vllm) and compares others with them."""

from __future__ import annotations

import ast
import json
import re
from dataclasses import dataclass
from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures" / "vllm"


@dataclass(frozen=True)
class Sample:
    """One request and the answer that the real server gave."""

    method: str
    path: str
    content_type: str | None
    body: bytes
    status: int
    headers: list[str]
    answer: str

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


def sample(name: str) -> Sample:
    text = (FIXTURES / f"{name}.txt").read_text(encoding="utf-8")
    lines = text.split("\n")
    return _curl(lines) if "http://" in lines[0] else _client(lines)


def _client(lines: list[str]) -> Sample:
    asked = [line[2:] for line in lines if line.startswith("> ")]
    method, path = asked[0].split(" ", 1)
    content_type, body = None, ""
    for line in asked[1:]:
        if line.lower().startswith("content-type: "):
            content_type = line.partition(": ")[2]
        else:
            body, content_type = line, content_type or "application/json"
    told = [line[2:] for line in lines if line.startswith("< ")]
    status = int(told[0].split(" ", 1)[0])
    headers = [line.partition(":")[0] for line in told[1:]]
    rest = lines[max(at for at, line in enumerate(lines) if line.startswith("< ")) + 2 :]
    if rest and re.match(r"\+ +[\d.]+ ms '", rest[0]):
        rest = [ast.literal_eval(line.split(" ms ", 1)[1]).rstrip("\n") for line in rest if line]
    return Sample(method, path, content_type, _whole(body), status, headers, "\n".join(rest).rstrip("\n"))


def _curl(lines: list[str]) -> Sample:
    found = re.match(r"> (-X POST )?http://[^/]+(\S+)(?: -H content-type:(\S+))?(?: -d (.*))?$", lines[0])
    assert found
    body = (found[4] or "").encode()
    method = "POST" if found[1] or body else "GET"
    end = lines.index("", 1)
    headers = [line.partition(":")[0] for line in lines[2:end]]
    return Sample(
        method, found[2], found[3], body, int(lines[1].split(" ")[1]), headers, "\n".join(lines[end:]).strip("\n")
    )


def _whole(body: str) -> bytes:
    """Bodies of 200,000 repeated characters were cut when they were recorded."""
    if match := re.match(r"(.*?)((?:import os\\n){3,}).*\.\.\. \(\d+ chars\)$", body):
        end = "}]}" if '"messages"' in body else "}"
        return (match[1] + "import os\\n" * 20000 + '"' + end).encode()
    return body.encode()


def differences(expected, actual, path: str = "") -> list[str]:
    """Where two JSON values differ in keys, their order, types, or in values that are not made up."""
    free = {"id", "created", "content", "text", "system_fingerprint", "prompt_tokens", "total_tokens", "root", "count"}
    free |= {"tokens", "token_strs", "prompt", "token_logprobs", "top_logprobs", "text_offset", "completion_tokens"}
    if isinstance(expected, dict):
        if not isinstance(actual, dict) or list(expected) != list(actual):
            return [f"{path}: keys {list(expected)} but {list(actual) if isinstance(actual, dict) else actual!r}"]
        return [
            line
            for key in expected
            if key not in free
            for line in differences(expected[key], actual[key], f"{path}.{key}")
        ] + [
            f"{path}.{key}: {expected[key]!r} but {actual[key]!r}"
            for key in expected
            if key in free and type(expected[key]) is not type(actual[key])
        ]
    if isinstance(expected, list):
        if not isinstance(actual, list) or len(expected) != len(actual):
            return [f"{path}: {expected!r} but {actual!r}"]
        pairs = zip(expected, actual, strict=True)
        return [line for at, (left, right) in enumerate(pairs) for line in differences(left, right, f"{path}[{at}]")]
    return [] if expected == actual and type(expected) is type(actual) else [f"{path}: {expected!r} but {actual!r}"]
