"""Answers of tools: one text, as short as the caller lets it be, or the whole result as JSON.

Clients show a model the text, or the structured content, or both: so an answer is given once. `short` and `full` are
the text that a person reads, without the padding of its tables. `json` is the result by its schema, with the same JSON
as its text, as the protocol asks of structured content. Tokens are counted as bytes divided by four.
"""

import json
from typing import Final, Literal, get_args

from mcp_types import CallToolResult, TextContent

from bezel.operations.results import Result
from bezel_base.text.printable import encodable, encodable_values
from bezel_base.text.redaction import redact_forms, redact_forms_of_values

Detail = Literal["short", "full", "json"]
DETAIL: Final = "detail"
"""Argument of every tool: the form of its answer."""
DETAILS: Final[tuple[Detail, ...]] = get_args(Detail)
SHORT: Final = "short"
DETAIL_SCHEMA: Final = {"type": "string", "enum": [*DETAILS]}
BYTES_OF_A_TOKEN = 4
MAX_TOKENS: Final[dict[Detail, int]] = {"short": 2_000, "full": 20_000}
"""Tokens of a text."""
MAX_STRUCTURED = 200_000
"""Characters of a result as JSON."""
ERROR = "bezel/error"
"""Key of a failure's metadata: its `code`, its `problems`, and the `outcome` of a change that failed."""
_NOTE = 400  # bytes for the note on what is left out


def success(result: Result, detail: Detail = SHORT, narrowing: tuple[str, ...] = ()) -> CallToolResult:
    """A result in one form.

    Args:
        result: The result.
        detail: Which form.
        narrowing: Arguments of the tool that make its answer smaller.
    """
    if detail == "json":
        return _as_json(result, narrowing)
    text = redact_forms(encodable(result.compact_text()))
    level: Detail = detail if result.may_be_shortened else "full"
    return CallToolResult(content=[TextContent(text=shorten(text, level, result.head_share, narrowing))])


def _as_json(result: Result, narrowing: tuple[str, ...]) -> CallToolResult:
    structured = redact_forms_of_values(encodable_values(result.model_dump(mode="json")))
    text = json.dumps(structured, ensure_ascii=False, separators=(",", ":"))
    if len(text) > MAX_STRUCTURED:
        repair = f"narrow the call by {_alternatives(narrowing)}" if narrowing else "call with detail=full"
        return failure(
            "too_large", f"the result has {len(text)} characters, {MAX_STRUCTURED} may be sent: {repair}.", []
        )
    return CallToolResult(content=[TextContent(text=text)], structured_content=structured)


def failure(code: str, text: str, problems: object, outcome: object = None, detail: Detail = SHORT) -> CallToolResult:
    """A failure that the client is to see, with what was done in spite of it.

    The code and the problems are metadata, which programs read: a model reads the text, which is short unless more was
    asked for.
    """
    error = {"code": code, "problems": problems} | ({"outcome": outcome} if outcome else {})
    error = redact_forms_of_values(encodable_values(error))
    shown = shorten(redact_forms(encodable(f"{code}: {text}")), SHORT if detail == SHORT else "full")
    return CallToolResult(content=[TextContent(text=shown)], is_error=True, _meta={ERROR: error})


def shorten(text: str, detail: Detail, head_share: float = 0.5, narrowing: tuple[str, ...] = ()) -> str:
    """A text of at most the tokens of its detail: whole lines of its begin and its end, and what is left out between.

    Args:
        text: The text.
        detail: `short` or `full`.
        head_share: Share of what is kept that is the begin.
        narrowing: Arguments of the tool that make its answer smaller.
    """
    limit = MAX_TOKENS[detail] * BYTES_OF_A_TOKEN
    if len(text.encode()) <= limit:
        return text
    lines = text.removesuffix("\n").split("\n")
    room = limit - _NOTE
    head = _fitting(lines, room if len(lines) == 1 else int(room * head_share))
    tail = _fitting(lines[len(head) :][::-1], room - _size(head))[::-1]
    left_out = len(lines) - len(head) - len(tail)
    what = f"{left_out} of {len(lines)} lines are" if left_out else "the end of a long line is"
    note = f"[{what} left out here ({len(text.encode()) // BYTES_OF_A_TOKEN} tokens in all)."
    if detail == SHORT:
        note += f" {DETAIL}=full shows {MAX_TOKENS['full']} tokens."
    note += f" Narrow it by {_alternatives(narrowing)}.]" if narrowing else "]"
    return "\n".join([*head, note, *tail]) + "\n"


def _fitting(lines: list[str], room: int) -> list[str]:
    """As many of the lines as fit; of a single one that does not, its begin."""
    kept: list[str] = []
    for line in lines:
        size = len(line.encode()) + 1
        if size > room:
            # A line that no text has room for is not the reason to show nothing of it.
            return kept or [line.encode()[: max(room - 4, 0)].decode(errors="ignore") + "..."]
        kept.append(line)
        room -= size
    return kept


def _size(lines: list[str]) -> int:
    return sum(len(line.encode()) + 1 for line in lines)


def _alternatives(names: tuple[str, ...]) -> str:
    return " or ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
