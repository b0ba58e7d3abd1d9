r"""Private keys in a text, hidden line by line: of what follows a key's first line, only what can be part of a key.

A key may stand on lines of its own, on one line with `\n` as two characters, or on the lines of a log between those of
other programs. Pure.
"""

from __future__ import annotations

import re

HIDDEN = "[redacted]"
"""What stands in the place of a credential in every text."""
FIRST_MARK = "-----BEGIN"
"""How the first line of a key begins, for a reader that gets its text piece by piece."""

_LONGEST_KEY = 120
"""Lines after a key's first line in which its lines are looked for: RSA of 8192 bits has 100."""
_BEGIN = re.compile(
    r"-{2,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?(?: ?-{2,5})?|PuTTY-User-Key-File-\d: [\w-]{1,40}"
)
_END = re.compile(r"-{2,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?(?: ?-{2,5})?")
_BETWEEN = re.compile(r"(?:\\+[nrt]|[\s\"'`,;+|>])*")
_PIECE = re.compile(r"[A-Za-z0-9+/=]++")
# Headers of RFC 1421, of OpenPGP (RFC 9580) and of PuTTY's files.
_HEADER = re.compile(
    r"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID|Encryption|Key-Derivation|Argon2-\w{1,20}"
    r"|Public-Lines|Private-Lines|Private-MAC): (?:(?!\\+[nr])[^\n])*"
)
_SIMPLE_WORD = re.compile(r"[a-z]+|[A-Z][a-z]*|[A-Z]+|\d+|[a-z]+/[a-z/]*")
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_LONG_PIECE = re.compile(r"(?<![\w+/.=-])[A-Za-z0-9+/]{40,}+={0,2}(?![\w.-])")
_ALONE = re.compile(r"(?m)^[ \t]*+[A-Za-z0-9+/]{48,}+={0,2}(?=[ \t\r]*+$)")
_FULL_LINE = 32
"""Characters that a line of a key has at least, except its last."""


class PrivateKeys:
    """The private keys in the lines of a text or a log, one line after the other."""

    def __init__(self) -> None:
        self._left = 0
        self._is_within = False

    @property
    def is_within(self) -> bool:
        """Whether the last line belonged to a key that has not ended."""
        return self._is_within

    def line(self, text: str) -> str:
        """The next line, without what can be part of a key."""
        if self._left:
            self._left -= 1
            return self._of_key(text)
        if begin := _BEGIN.search(text):
            return text[: begin.start()] + self._after_begin(text[begin.end() :])
        return _alone(text)

    def _after_begin(self, rest: str) -> str:
        """What follows the first line's mark on the same line."""
        self._left, self._is_within = _LONGEST_KEY, True
        return self._hide(rest)

    def _hide(self, rest: str) -> str:
        """A text that begins within a key, with the part that belongs to it as one placeholder."""
        place = end = 0
        while True:
            place = _BETWEEN.match(rest, end).end()  # type: ignore[union-attr]
            if close := _END.match(rest, place):
                self._close()
                return HIDDEN + self.line(rest[close.end() :])
            if header := _HEADER.match(rest, place):
                end = header.end()
                continue
            piece = _PIECE.match(rest, place)
            if piece is None or not _is_of_key(piece[0]):
                break
            end = piece.end()
        tail = rest[end:]
        if place < len(rest):
            self._is_within = False
        return HIDDEN + (tail if place < len(rest) or not tail.strip() else "")

    def _of_key(self, text: str) -> str:
        """A line after the first one of a key."""
        if close := _END.search(text):
            self._close()
            return self._before_end(text[: close.start()]) + HIDDEN + self.line(text[close.end() :])
        if _BEGIN.search(text):
            self._close()
            return self.line(text)
        start = _BETWEEN.match(text).end()  # type: ignore[union-attr]
        if start == len(text):
            return text
        piece = _HEADER.match(text, start) or _PIECE.match(text, start)
        if self._is_within and piece and not _BETWEEN.sub("", text[piece.end() :]):
            word = piece[0]
            if ":" in word or _is_of_key(word):
                return HIDDEN
        self._is_within = False
        return _LONG_PIECE.sub(lambda match: HIDDEN if _is_mixed(match[0]) else match[0], text)

    def _before_end(self, text: str) -> str:
        """What stands before the last mark on its line: without pieces of the key."""
        pieces = re.split(r"(\\+[nrt]|\s+)", text)
        while pieces and (not pieces[-1].strip() or pieces[-1].startswith("\\") or _is_of_key(pieces[-1])):
            pieces.pop()
        kept = "".join(pieces)
        return text[: len(kept) + 1] if kept and text[len(kept) : len(kept) + 1].isspace() else kept

    def _close(self) -> None:
        self._left, self._is_within = 0, False


def without_private_keys(text: str) -> str:
    """A text of any lines without private keys; the lines of one become one placeholder."""
    if "PRIVATE KEY" not in text and "PuTTY-User-Key" not in text:
        return _alone(text)
    text = _without_whole(text)
    keys = PrivateKeys()
    kept: list[str] = []
    for line in text.split("\n"):
        was_within = keys.is_within
        shown = keys.line(line)
        if was_within and shown.startswith(HIDDEN) and kept and kept[-1].endswith(HIDDEN):
            kept[-1] += shown.removeprefix(HIDDEN)
        else:
            kept.append(shown)
    return "\n".join(kept)


def _without_whole(text: str) -> str:
    """A text without the keys that have both of their marks and nothing of another kind in between."""
    begins = list(_BEGIN.finditer(text))
    if not begins:
        return text  # a text about keys
    parts, place = [], 0
    for begin, limit in zip(begins, [*(each.start() for each in begins[1:]), len(text)], strict=True):
        end = _END.search(text, begin.end(), limit)
        if end and all(map(_may_be_of_key, text[begin.end() : end.start()].split("\n"))):
            parts += [text[place : begin.start()], HIDDEN]
            place = end.end()
    return "".join([*parts, text[place:]])


def _may_be_of_key(line: str) -> bool:
    line = line.strip()
    return not line or bool(_PIECE.fullmatch(line) or _HEADER.fullmatch(line))


def _alone(text: str) -> str:
    """Lines of nothing but base64: the middle of a key that is logged line by line. Hashes in hex stay."""
    return _ALONE.sub(lambda match: HIDDEN if _is_mixed(match[0]) else match[0], text)


def _is_of_key(piece: str) -> bool:
    """Whether a piece can be of a key's base64: no word, no number, no hash in hex."""
    if not _PIECE.fullmatch(piece):
        return False
    if len(piece) >= _FULL_LINE:
        return not _HEX.fullmatch(piece)
    return not _SIMPLE_WORD.fullmatch(piece)


def _is_mixed(piece: str) -> bool:
    """Whether a long piece has what base64 of random bytes has: both cases and digits."""
    tests = (str.islower, str.isupper, str.isdigit)
    return all(any(map(test, piece)) for test in tests)
