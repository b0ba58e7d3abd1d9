"""Text without what a terminal, a file or a document cannot take, or would take for an order."""

from __future__ import annotations

import re
from typing import Any

# Escape sequences of terminals (colours, titles, links), then every other control character but tab and newline, and
# those that turn the direction of writing or have no width: a line must not look like another one.
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|[PX^_][^\x1b\n]*(?:\x1b\\)?|[ -/]*[0-~])"
    r"|\x9b[0-?]*[ -/]*[@-~]"
)
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"


def printable(text: str) -> str:
    """A text without escape sequences and control characters, but with its tabs and newlines; fit to be encoded."""
    return encodable(_CONTROLS.sub("", _ESCAPES.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))))


def encodable(text: str) -> str:
    """A text that every encoding of Unicode takes: half a surrogate pair becomes U+FFFD.

    JSON can escape half of a pair, and names of files hold bytes as one: neither can be written as UTF-8.
    """
    return text if text.isascii() else _SURROGATES.sub(_REPLACEMENT, text)


def encodable_values(content: Any) -> Any:
    """JSON content whose every text, the keys too, is as of `encodable`."""
    if isinstance(content, str):
        return encodable(content)
    if isinstance(content, dict):
        return {encodable_values(key): encodable_values(value) for key, value in content.items()}
    return [encodable_values(value) for value in content] if isinstance(content, list | tuple) else content
