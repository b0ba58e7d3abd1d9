"""Recorded traffic with lengths and shared prefixes, in the form of Mooncake's traces.

Each line is a request: `timestamp` in milliseconds, `input_length` and `output_length` in tokens, and `hash_ids`, one
for each 512 tokens of the prompt: equal ids at the begin of two prompts are a prefix that both share. The words are
made up; instants, lengths and shared prefixes are those of the trace. Source: github.com/kvcache-ai/Mooncake.
"""

import json
from pathlib import Path
from typing import Any, NamedTuple

from bezel_base.errors import Problem, UserError
from bezel_base.text.counting import format_count
from bezel_bench.prompts.datasets import MOST_TOKENS

BLOCK_TOKENS = 512
_SHOWN_PROBLEMS = 5


class Traced(NamedTuple):
    """A request of a trace.

    Attributes:
        at: Seconds from the first request.
        input_tokens: Length of the prompt.
        output_tokens: Length of the response.
        blocks: Ids of its blocks of `BLOCK_TOKENS` tokens, the last one perhaps partial.
    """

    at: float
    input_tokens: int
    output_tokens: int
    blocks: tuple[int, ...]


def is_trace(text: str) -> bool:
    """Whether a text has such lines; else it may be a list of instants."""
    return text.lstrip()[:1] == "{"


def read_trace(file: Path, text: str) -> tuple[Traced, ...]:
    """The requests of a trace, in the order of their instants.

    Args:
        file: The file's path, for messages.
        text: Its content.

    Raises:
        UserError: A line is of another form; the error has the first problems.
    """
    requests: list[Traced] = []
    problems: list[Problem] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            requests.append(_request(line))
        except ValueError as error:
            repair = "write timestamp (ms), input_length, output_length, and hash_ids or none."
            problems.append(Problem(f"{file}, line {number}", None, f"{error}.", repair))
    if problems:
        lines = format_count(len(problems), "lines")
        raise UserError(*problems[:_SHOWN_PROBLEMS], title=f"{lines} of {file.name} cannot be sent")
    if not requests:
        raise UserError(Problem("--trace", str(file), "it holds no request.", "write one a line."))
    begin = min(each.at for each in requests)
    return tuple(sorted((each._replace(at=each.at - begin) for each in requests), key=lambda each: each.at))


def _request(line: str) -> Traced:
    try:
        fields = json.loads(line)
    except ValueError:
        raise ValueError("expected a JSON object, got another text") from None
    if not isinstance(fields, dict):
        raise ValueError("expected a JSON object")  # noqa: TRY004 - a line of a file
    at, blocks = fields.get("timestamp"), fields.get("hash_ids", [])
    if isinstance(at, bool) or not isinstance(at, int | float) or not 0 <= at < float("inf"):
        raise ValueError(f"expected milliseconds in `timestamp`, got {at!r:.40}")
    if not isinstance(blocks, list) or not all(type(block) is int for block in blocks):
        raise ValueError("expected whole numbers in `hash_ids`")
    length = _length(fields, "input_length")
    if len(blocks) > length // BLOCK_TOKENS + 1:
        # Such as those of Bailian, whose instants are seconds, and whose blocks have 16 tokens.
        raise ValueError(f"expected one of `hash_ids` for {BLOCK_TOKENS} tokens, got {len(blocks)} for {length} tokens")
    return Traced(at / 1000, length, _length(fields, "output_length"), tuple(blocks))


def _length(fields: dict[str, Any], name: str) -> int:
    value = fields.get(name)
    if type(value) is not int or not 1 <= value <= MOST_TOKENS:
        raise ValueError(f"expected an integer above 0 in `{name}`, got {value!r:.40}")
    return value
