"""Foreign text in Markdown: names, messages and values that others wrote, without any effect of their own.

The one escaper of comments, issues, summaries and reports. Neither HTML, links, images, tables, footnotes, mentions,
references to issues, emoji, code fences nor characters that turn the direction of text work in what these functions
return, in CommonMark and as GitHub, GitLab and Gitea extend it. All of it is one line of bounded length, without
credentials. It may stand in a paragraph, a list and a table. The input of `table_row` and
`escape_comments` is Markdown of one's own.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING

from bezel_base.text.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterable

_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_SPECIAL = re.compile(r"([\\`*_{}\[\]~|$])")
_REFERENCES = str.maketrans({"&": "&amp;", "<": "&lt;"})
# The forge makes a link or a picture of these in plain text: a zero-width space prevents it. Nothing else is changed
# that a reader could copy: names and keys between backticks stay code.
_LINKING = re.compile(
    r"(?:@|#|%(?=[\w\"])|&amp;(?=\d)|!(?=\d)|:(?=//|(?:\\?[\w+-]){1,40}:)|(?:mailto|xmpp):|\bwww\.|\bGH-)(?=\S)",
    re.IGNORECASE,
)
_ESCAPED_BAR = r"\1\\|"
_ZERO_WIDTH = "\u200b"
# What begins a heading, a list, a thematic break or a setext heading at the start of a line.
_BLOCK = re.compile(r"(?P<number>(?:\d{1,9}(?=[.)](?:\s|$)))?)(?P<mark>(?<!\d)[#+=>-]|(?<=\d)[.)])")
# The marks that may end a heading's line, and are then not shown.
_CLOSING = re.compile(r"(?<=\s)#+$")
_BACKTICKS = re.compile(r"`+")
_ANY_MARK = re.compile(r"[^A-Za-z0-9 ]")
# Words and figures of a report; anything else in it may have come from outside.
_TAME = re.compile(r"([A-Za-z0-9 ,.;:/%~·+()<=*'↓→-]|(?<=[A-Za-z0-9])_(?=[A-Za-z0-9]))*")
_TAME_MARKS = re.compile(r"[~<>*]")
_BAR = re.compile(r"(?<!\\)((?:\\\\)*)\|")
_ADDRESS = re.compile(r"https?://[A-Za-z0-9][\w.:-]*(?:/[\w/.,:;%+=&?!~#@-]*)?", re.ASCII)


def flat(value: object, longest: int) -> str:
    """Text as one line without control characters and credentials, cut at a length."""
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    text = " ".join(text[: 10 * longest + 4096].split())
    if not text.isprintable():  # a printable text has none of them
        text = "".join(letter for letter in text if unicodedata.category(letter) not in _UNSEEN)
    shown = redact(" ".join(text.split()))
    return shown if len(shown) <= longest else shown[: max(longest - 1, 0)] + "…"


def code(value: object, longest: int = 160) -> str:
    """Text as code, character for character: a name, a path, a value or a command."""
    text = flat(value, longest).strip()
    if not text:
        return "`(empty)`"
    if "|" in text:  # a bar ends the cell of a table, in code too
        return code_element(text, longest)
    longest_run = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence, space = "`" * (longest_run + 1), " " if longest_run else ""
    return f"{fence}{space}{text}{space}{fence}"


def code_element(value: object, longest: int = 160) -> str:
    """Text as code in an element of HTML, also where Markdown is not looked for: with references for all its marks."""
    return f"<code>{references(flat(value, longest))}</code>"


def references(text: str, marks: re.Pattern[str] = _ANY_MARK) -> str:
    """A text with a reference of HTML for each of some marks."""
    return marks.sub(lambda mark: f"&#{ord(mark[0])};", text)


def prose(value: object, longest: int = 200) -> str:
    """Text as plain words, e.g. a message; what it holds between backticks is code."""
    *pairs, last = _pairs(flat(value, longest).split("`"))
    text = ""
    for plain, code_text in pairs:
        text += _words(plain)
        # Two codes side by side would be one.
        text += (_ZERO_WIDTH if text.endswith("`") else "") + (
            code(code_text, longest) if code_text.strip() else _words(f"`{code_text}`")
        )
    text = _CLOSING.sub(r"\\\g<0>", text + _words(last[0]))
    return _BLOCK.sub(r"\g<number>\\\g<mark>", text, count=1) if _BLOCK.match(text) else text


def link(text: object, address: str, longest: int = 60) -> str:
    """A text that leads to an address; only the text where it is no plain web address."""
    label = prose(text, longest)
    return f"[{label}]({address})" if _ADDRESS.fullmatch(address) else label


def plain_or_code(text: str) -> str:
    """Text of a report: its own words unchanged, what Markdown could interpret as code; cheap for thousands of cells.

    What is unchanged is not searched for credentials.
    """
    if not text.isprintable():
        text = "".join(" " if unicodedata.category(letter) in _UNSEEN else letter for letter in text)
    text = " ".join(text.split())
    if _TAME.fullmatch(text) and "<" not in text.replace("< ", "") and "://" not in text and "www." not in text:
        return references(text, _TAME_MARKS)
    return code_element(text, len(text))


def table_row(cells: Iterable[object]) -> str:
    """One line of a table. A cell is Markdown: only the bars and line ends that would end it are changed."""
    return f"| {' | '.join(_BAR.sub(_ESCAPED_BAR, ' '.join(str(cell).splitlines())) for cell in cells)} |"


def escape_comments(markdown: str) -> str:
    """Markdown in which no comment begins: who reads a document by its comments finds only those of its writer."""
    return markdown.replace("<!--", "&lt;!--")


def _pairs(parts: list[str]) -> list[tuple[str, str]]:
    """Words and the code that follows them; the last has none. A backtick without its pair belongs to the words."""
    if len(parts) % 2 == 0:
        *parts, before, after = parts
        parts.append(f"{before}`{after}")
    codes = [*parts[1::2], ""]
    return list(zip(parts[::2], codes, strict=True))


def _words(text: str) -> str:
    text = _SPECIAL.sub(r"\\\1", text).translate(_REFERENCES)
    return _LINKING.sub(lambda match: f"{match[0]}{_ZERO_WIDTH}", text)
