"""Foreign text in a comment: names, messages and values that others wrote, without any effect of their own.

Neither HTML, links, mentions, references to issues, code fences nor characters that turn the direction of text work in
what these functions return. All of it is one line of bounded length.
"""

import re
import unicodedata

_SPECIAL = re.compile(r"([\\`*_{}\[\]()~|$])")
# The forge makes a link of these in plain text: a zero-width space prevents it. Nothing else is changed that a reader
# could copy: names and keys between backticks stay code.
_LINKING = re.compile(r"([@#]|!(?=\d)|:(?=//)|\bwww\.|\bGH-)(?=\S)", re.IGNORECASE)
_ZERO_WIDTH = "\u200b"


def flat(value: object, longest: int) -> str:
    """Text as one line without control characters, cut at a length."""
    text = " ".join(str(value)[: 10 * longest].split())
    shown = "".join(letter for letter in text if unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Co", "Cn"))
    return shown if len(shown) <= longest else shown[: max(longest - 1, 0)] + "…"


def code(value: object, longest: int = 60) -> str:
    """Text as code: a name, a path or a value."""
    text = flat(value, longest).replace("`", "'")
    return f"`{text}`" if text else "`(empty)`"


def prose(value: object, longest: int = 200) -> str:
    """Text as plain words, e.g. a message; what it holds between backticks is code."""
    *pairs, last = _pairs(flat(value, longest).split("`"))
    return "".join(_words(words) + code(held, longest) for words, held in pairs) + _words(last[0])


def _pairs(parts: list[str]) -> list[tuple[str, str]]:
    """Words and the code that follows them; the last has none. A backtick without its pair belongs to the words."""
    if len(parts) % 2 == 0:
        *parts, before, after = parts
        parts.append(f"{before}`{after}")
    codes = [*parts[1::2], ""]
    return list(zip(parts[::2], codes, strict=True))


def _words(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINKING.sub(rf"\1{_ZERO_WIDTH}", _SPECIAL.sub(r"\\\1", text))
