"""An answer against a recorded one: status line, every header, every field; what may differ is written here, with why.

A field that no server repeats (an id, a time) is held to its pattern. One that a simulated server cannot have, because
its weights and its tokenizer are made up, is held to its type and counted as explained.
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field

from simulated_vllm_support.samples import events

WEIGHTS = "Text, token ids and probabilities are made up: there are no weights behind the simulated server."
TOKENIZER = "Counts of prompt tokens and token ids are those of a stand-in tokenizer, not of the checkpoint's."
PATH = "The model lies at another path than on the machine of the recording."
DEFAULTS = "The recorded model's generation_config.json had a top_p of 0.95; the one served here has none."

DRAFTS = "How many drafted tokens are accepted is made up, and with it how many tokens a chunk holds."

_HEX = "[0-9a-f]{16}"
_PATTERNS = {
    "id": rf"(chatcmpl|cmpl|resp|msg|rs|modelperm)[-_]{_HEX}",
    "item_id": rf"(msg|rs)_{_HEX}",
    "system_fingerprint": r"vllm-0\.32\.0-[0-9a-f]{8}",
}
_TIMES = {"created", "created_at"}
# Field -> why it may differ.
_EXPLAINED = {
    **dict.fromkeys(("content", "text", "delta", "token_logprobs", "top_logprobs", "text_offset"), WEIGHTS),
    **dict.fromkeys(("prompt_tokens", "total_tokens", "input_tokens", "count", "original_input_tokens"), TOKENIZER),
    **dict.fromkeys(("tokens", "token_strs", "prompt"), TOKENIZER),
    "root": PATH,
    "top_p": DEFAULTS,
}
_HEADERS = {"date": r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT", "content-length": r"\d+"}


@dataclass
class Comparison:
    """What was looked at: fields that were equal (or fit their pattern), explained ones by reason, and wrong ones."""

    equal: int = 0
    explained: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)

    def check(self, what: str, good: bool, expected: object, actual: object) -> None:
        if good:
            self.equal += 1
        else:
            self.wrong.append(f"{what}: {expected!r} but {actual!r}")

    def explain(self, reason: str) -> None:
        self.explained[reason] = self.explained.get(reason, 0) + 1


def compare(recorded, response, *, free: frozenset[str] = frozenset(), merged: bool = False) -> Comparison:
    """Compare an answer with a recorded one.

    Args:
        merged: whether a chunk may hold several tokens, so that a stream has fewer chunks than the recorded one.
        recorded: the sample.
        response: the answer of the server under test.
        free: further fields whose values are not looked at (a test of its own looks at them).
    """
    comparison = Comparison()
    comparison.check("status", response.status_code == recorded.status, recorded.status, response.status_code)
    comparison.check("reason", response.reason_phrase == recorded.reason, recorded.reason, response.reason_phrase)
    headers = [(name.decode(), value.decode()) for name, value in response.headers.raw]
    names = [name.lower() for name, _ in headers]
    comparison.check("headers", names == [name for name, _ in recorded.headers], recorded.headers, headers)
    for (name, expected), (_, actual) in zip(recorded.headers, headers, strict=False):
        pattern = _HEADERS.get(name)
        good = bool(re.fullmatch(pattern, actual)) if pattern else actual == expected
        comparison.check(name, good, expected, actual)
    if "content-length" in names and recorded.method != "HEAD":
        length = int(response.headers["content-length"])
        comparison.check("length", length == len(response.content), len(response.content), length)
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        _stream(comparison, recorded, response.text, free, merged)
    elif recorded.answer.startswith("{") and recorded.status < 400:
        _value(comparison, recorded.json, response.json(), "", free)
    else:
        # A refusal is the same to the byte.
        comparison.check("body", response.text == recorded.answer, recorded.answer, response.text)
    return comparison


def _stream(comparison: Comparison, recorded, text: str, free: frozenset[str], merged: bool) -> None:
    kinds = "event: " in recorded.answer
    comparison.check("framing", kinds or text.endswith("data: [DONE]\n\n"), "[DONE]", text[-20:])
    line = r"event: [^\n]+\ndata: [^\n]+\n\n" if kinds else r"data: [^\n]+\n\n"
    comparison.check("lines", re.fullmatch(f"({line})+", text) is not None, line, text[:80])
    expected, actual = recorded.events, events(text)
    if merged and len(actual) != len(expected):
        comparison.explain(DRAFTS)
        # Those in the middle are alike: as many as the shorter stream has.
        keep = min(len(actual), len(expected))
        last = 4 if kinds else 3
        expected, actual = (rows[: keep - last] + rows[-last:] for rows in (expected, actual))
        free |= {"usage"} if "continuous" in str(recorded.body) else {"sequence_number"}
    comparison.check("events", len(actual) == len(expected), len(expected), len(actual))
    _value(comparison, expected, actual, "", free)


def _value(comparison: Comparison, expected, actual, path: str, free: frozenset[str]) -> None:
    if isinstance(expected, dict) and isinstance(actual, dict):
        comparison.check(path or "keys", list(expected) == list(actual), list(expected), list(actual))
        for key in expected.keys() & actual.keys():
            _field(comparison, key, expected[key], actual[key], f"{path}.{key}", free)
    elif isinstance(expected, list) and isinstance(actual, list):
        comparison.check(path, len(expected) == len(actual), expected, actual)
        for at, (left, right) in enumerate(zip(expected, actual, strict=False)):
            _value(comparison, left, right, f"{path}[{at}]", free)
    else:
        comparison.check(path, expected == actual and type(expected) is type(actual), expected, actual)


def _field(comparison: Comparison, key: str, expected, actual, path: str, free: frozenset[str]) -> None:
    if key in free:
        return
    pattern = _PATTERNS.get(key)
    if pattern and isinstance(expected, str) and re.fullmatch(pattern, expected):
        prefix = re.match(r"\w+", expected)[0][:3]
        good = isinstance(actual, str) and re.fullmatch(pattern, actual) is not None and actual.startswith(prefix)
        comparison.check(path, good, expected, actual)
    elif key in _TIMES:
        comparison.check(path, isinstance(actual, int) and abs(actual - time.time()) < 60, "now", actual)
    elif key in _EXPLAINED and expected != actual and not isinstance(expected, dict) and not _is_nested(expected):
        # Of the same type, and there where the real one was there.
        comparison.check(path, type(expected) is type(actual) and bool(expected) == bool(actual), expected, actual)
        comparison.explain(_EXPLAINED[key])
    else:
        _value(comparison, expected, actual, path, free)


def _is_nested(value: object) -> bool:
    """Whether a list holds objects with fields of their own (content blocks) and not just values."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict) and "type" in value[0]
