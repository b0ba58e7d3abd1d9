"""Substitute for Gemma's tokenizer: reversible, without a vocabulary file, with similar token counts.

It is computed, not learned. Ids 0-19 are the special tokens, then the 256 bytes, runs of 2-16 spaces, a short list of
common words (with and without a space in front), and all groups of two to six letters (with and without a space,
capitalised or not). English prose comes to 1.2-1.4 tokens a word, digits are one token each as in Gemma. Token counts
are therefore plausible and stable, but they are not those of the real tokenizer, and the ids do not respect the
model's vocabulary size.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

SPECIAL = (
    "<pad>", "<eos>", "<bos>", "<unk>", "<mask>", "<|turn>", "<turn|>", "<|channel>", "<channel|>", "<|think|>",
    "<|tool>", "<tool|>", "<|tool_call>", "<tool_call|>", "<|tool_response>", "<tool_response|>", '<|"|>', "<|image|>",
    "<|audio|>", "<|video|>",
)  # fmt: skip
EOS, TURN_END = 1, 6
THINK, CHANNEL, CHANNEL_END = 9, 7, 8
ENDS = frozenset({EOS, TURN_END})
_BYTES = len(SPECIAL)
_SPACES = _BYTES + 256
_LONGEST_RUN = 16
_WORDS = _SPACES + _LONGEST_RUN - 1
_GROUP = 6
_PIECES = re.compile(r" ?[A-Za-z]+|\d|  +|[^A-Za-z\d ]+| ")
_SPECIAL = re.compile("(" + "|".join(re.escape(text) for text in SPECIAL) + ")")
_LETTERS = 26


@cache
def _words() -> dict[str, int]:
    common = Path(__file__).with_name("words.txt").read_text(encoding="utf-8").split()
    return {
        form: _WORDS + 2 * at + space for at, word in enumerate(common) for space, form in enumerate((word, " " + word))
    }


@cache
def _forms_by_id() -> dict[int, str]:
    return {number: form for form, number in _words().items()}


@cache
def word_tokens() -> tuple[int, ...]:
    """Return the ids of the listed words with a space in front, of which generated text consists."""
    return tuple(number for form, number in _words().items() if form.startswith(" "))


def encode(text: str, *, specials: bool = True) -> list[int]:
    """Return the token ids of a text. Spelled-out special tokens become their ids unless `specials` is False."""
    result: list[int] = []
    ids_of_words = _words()
    for at, part in enumerate(_SPECIAL.split(text) if specials else [text]):
        if at % 2:
            result.append(SPECIAL.index(part))
            continue
        for piece in _PIECES.findall(part):
            word_id = ids_of_words.get(piece)
            if word_id is not None:
                result.append(word_id)
            elif piece[-1].isascii() and piece[-1].isalpha():
                result.extend(_letters(piece))
            elif piece[0] == " " and len(piece) > 1:
                result.extend(_spaces(len(piece)))
            else:
                result.extend(_BYTES + byte for byte in piece.encode())
    return result


@cache
def text_of(token: int) -> str:
    """Return the text of one token in an answer: empty for a special token."""
    return _bytes(token, skip_special=True).decode("utf-8", errors="replace")


def raw_byte(token: int) -> bytes | None:
    """Return the byte of a token that is a part of a character, None for any other token."""
    return bytes([token - _BYTES]) if _BYTES + 0x80 <= token < _SPACES else None


def decode(tokens: Iterable[int], *, skip_special: bool = False) -> str:
    """Return the text of token ids; unknown ids become U+FFFD."""
    return b"".join(_bytes(token, skip_special=skip_special) for token in tokens).decode("utf-8", errors="replace")


def token_strings(tokens: Sequence[int]) -> list[str]:
    """Return each token as byte-level vocabularies write it: a space is Ġ, a line feed Ċ."""
    return [SPECIAL[token] if token < _BYTES else "".join(_GLYPHS[byte] for byte in _bytes(token)) for token in tokens]


def _byte_characters() -> dict[int, str]:
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    other = [byte for byte in range(256) if byte not in plain]
    return {byte: chr(byte) for byte in plain} | {byte: chr(256 + at) for at, byte in enumerate(other)}


_GLYPHS = _byte_characters()


@cache
def _groups() -> int:
    return _WORDS + len(_words())


def _spaces(count: int) -> Iterable[int]:
    runs, rest = divmod(count, _LONGEST_RUN)
    yield from [_SPACES + _LONGEST_RUN - 2] * runs
    if rest:
        yield _SPACES + rest - 2 if rest > 1 else _BYTES + ord(" ")


def _letters(piece: str) -> Iterable[int]:
    space = piece[0] == " "
    word = piece[1:] if space else piece
    for at in range(0, len(word), _GROUP):
        group = word[at : at + _GROUP]
        lead = space and at == 0
        rest_lower = group[1:] == group[1:].lower()
        if len(group) == 1 or not rest_lower:
            if lead:
                yield _BYTES + ord(" ")
            yield from (_BYTES + ord(letter) for letter in group)
            continue
        number = 0
        for letter in group.lower():
            number = number * _LETTERS + ord(letter) - ord("a")
        number += _first_of(len(group))
        yield _groups() + number * 4 + 2 * lead + group[0].isupper()


@cache
def _first_of(length: int) -> int:
    """Return the number of the first group of so many letters: the longest groups come first."""
    return sum(_LETTERS**longer for longer in range(length + 1, _GROUP + 1))


def _bytes(token: int, *, skip_special: bool = False) -> bytes:
    if token < _BYTES:
        return b"" if skip_special else SPECIAL[token].encode()
    if token < _SPACES:
        return bytes([token - _BYTES])
    if token < _WORDS:
        return b" " * (token - _SPACES + 2)
    if token < _groups():
        return _forms_by_id()[token].encode()
    return _group_text(token - _groups()).encode()


def _group_text(number: int) -> str:
    number, form = divmod(number, 4)
    length = _GROUP
    while length > 2 and number >= _first_of(length - 1):
        length -= 1
    number -= _first_of(length)
    if number >= _LETTERS**length:
        return "\ufffd"
    letters = ""
    for _ in range(length):
        number, letter = divmod(number, _LETTERS)
        letters = chr(ord("a") + letter) + letters
    if form % 2:
        letters = letters.capitalize()
    return (" " if form & 2 else "") + letters
