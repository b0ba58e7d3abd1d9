"""Tokens of xgrammar's EBNF: names, strings, character classes, counts and signs.

Source: the behaviour of xgrammar 0.2.8 (`Grammar.from_ebnf`). A NUL ends the text, as in a C string.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_simulated_vllm.grammars.verdicts import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel_simulated_vllm.grammars.verdicts import Work

_SPACE = re.compile(r"[ \t\r\n]+|#[^\r\n]*")
_NAME = re.compile(r"[A-Za-z_.\-][A-Za-z0-9_.\-]*")
_INTEGER = re.compile(r"[0-9]+")
_SIGNS = re.compile(r"\(=|::=|[(){}|,*+?=]")
_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]*)(?:[eE][+-]?[0-9]*)?"
_ONE_ATTRIBUTE = (
    r'(?:lazy|(?:max_tokens|max_chars)[ \t]*=[ \t]*[0-9]{1,10}|(?:capture|stop_capture)[ \t]*=[ \t]*"[^"\n\r\\\0]*"'
    rf"|capture|temperature[ \t]*=[ \t]*[+-]?{_NUMBER})"
)
_ATTRIBUTES = re.compile(rf"\[[ \t]*{_ONE_ATTRIBUTE}(?:[ \t]*,[ \t]*{_ONE_ATTRIBUTE})*[ \t]*\](?=[ \t]*::=)")
_NAMED = re.compile(
    r'(lazy|max_tokens|max_chars|stop_capture|capture|temperature)[ \t]*(?:=[ \t]*("[^"]*"|[^ \t,\]]*))?'
)
# After a backslash: a letter, or a code with its digits.
_ESCAPE = re.compile(r"""[\\'"?abefnrtv0]|x[0-9a-fA-F]+|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}""")
_ESCAPE_IN_CLASS = re.compile(_ESCAPE.pattern + r"|[\^$.*+?()\[\]{}|/\-]")
_CONTROLS = {"a": 7, "b": 8, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "0": 0}
_MOST = 10**15
_MOST_CODE = 0x10FFFF
_MOST_INTEGER = 2**31 - 1
_MOST_FLOAT = 3.4028235e38


@dataclass(frozen=True)
class Token:
    """One token.

    Attributes:
        kind: "name", "rule" (a name before `::=`), "boolean", "string", "class", "integer", "end", or the sign itself.
        value: a name, the text of a string, or the digits of an integer.
        line: the line that it stands in, from 1.
    """

    kind: str
    value: str
    line: int


def tokens(text: str, work: Work) -> list[Token]:
    """Return the tokens of a grammar, with an "end" after the last.

    Raises:
        RefusedError: the text has a part that is no token, or a rule's name stands in the wrong place.
    """
    listed = list(_lex(text.partition("\0")[0], work))
    for index, token in enumerate(listed):
        if token.kind != "::=":
            continue
        if index == 0:
            raise RefusedError("EBNF lexer error: Assign should not be the first token")
        name = listed[index - 1]
        if name.kind != "name":
            raise RefusedError("EBNF lexer error: Assign should be preceded by an identifier")
        if index > 1 and listed[index - 2].line == name.line:
            raise RefusedError("EBNF lexer error: The rule name should be at the beginning of the line")
        listed[index - 1] = Token("rule", name.value, name.line)
    return listed


def _space_end(text: str, place: int) -> int:
    """The place behind spaces, line ends and comments."""
    while space := _SPACE.match(text, place):
        place = space.end()
    return place


def _lex(text: str, work: Work) -> Iterator[Token]:
    place, line = 0, 1
    while True:
        work.spend()
        end = _space_end(text, place)
        line += _lines(text[place:end])
        place = end
        if place == len(text):
            yield Token("end", "", line)
            return
        if text[place] == '"':
            end, value = _string(text, place, work)
            yield Token("string", value, line)
        elif text[place] == "[":
            end = _class_end(text, place, work)
            yield Token("class", "", line)
        elif sign := _SIGNS.match(text, place):
            end = sign.end()
            yield Token(sign[0], "", line)
        elif name := _NAME.match(text, place):
            end = name.end()
            kind = "boolean" if name[0] in ("true", "false") else "name"
            if kind == "name" and (attributes := _ATTRIBUTES.match(text, end)):
                _check_attributes(_NAMED.findall(attributes[0]))
                end = attributes.end()
            yield Token(kind, name[0], line)
        elif digits := _INTEGER.match(text, place):
            end = digits.end()
            if int(digits[0][:17]) > _MOST:
                raise RefusedError(f"EBNF lexer error: Integer is too large: parsed {digits[0]}")
            yield Token("integer", digits[0], line)
        else:
            raise RefusedError(f"EBNF lexer error at line {line}: Unexpected character: {text[place]}")
        place = end


def _check_attributes(attributes: list[tuple[str, str]]) -> None:
    """Refuse the attributes of a rule: one twice, an empty name, a number out of its bounds."""
    names = [name for name, _ in attributes]
    if len(set(names)) < len(names):
        raise RefusedError("EBNF lexer error: Assign should be preceded by an identifier")
    for name, value in attributes:
        if value == '""':
            raise RefusedError("EBNF lexer error: The capture name must not be empty")
        if name == "max_chars" and int(value) > _MOST_INTEGER:
            raise RefusedError("EBNF lexer error: The rule attribute value is too large")
        if name == "temperature" and not 0 <= _number(value) <= _MOST_FLOAT:
            raise RefusedError("EBNF lexer error: The temperature must be a finite non-negative number")


def _number(text: str) -> float:
    """Return a number as C++ reads it: up to an exponent without digits."""
    return float(re.sub(r"[eE][+-]?$", "", text))


def _lines(space: str) -> int:
    return len(re.findall(r"\r\n|\r|\n", space))


def _string(text: str, start: int, work: Work) -> tuple[int, str]:
    place, parts = start + 1, []
    while place < len(text) and text[place] not in '"\n\r':
        work.spend()
        if text[place] == "\\":
            place, code = _escape(text, place, _ESCAPE)
            parts.append(chr(code))
        else:
            parts.append(text[place])
            place += 1
    if text[place : place + 1] != '"':
        raise RefusedError('EBNF lexer error: Expect " in string literal')
    return place + 1, "".join(parts)


def _escape(text: str, place: int, pattern: re.Pattern[str]) -> tuple[int, int]:
    """Return the end of an escape sequence, and its character's code."""
    escape = pattern.match(text, place + 1)
    if escape is None:
        raise RefusedError("EBNF lexer error: Invalid escape sequence")
    word = escape[0]
    if word[0] in "xuU" and len(word) > 1:
        return escape.end(), min(int(word[1:], 16), _MOST_CODE)
    return escape.end(), _CONTROLS.get(word, ord(word))


def _class_end(text: str, start: int, work: Work) -> int:
    """Return the end of a character class.

    Raises:
        RefusedError: it is not closed, has an escape that is none, or a range from a higher to a lower character.
    """
    place = start + 2 if text[start + 1 : start + 2] == "^" else start + 1
    codes: list[int | None] = []  # None is a dash that may make a range
    while place < len(text) and text[place] != "]":
        work.spend()
        if text[place] in "\r\n":
            raise RefusedError("EBNF lexer error: Character class should not contain newline")
        if text[place] == "\\" and text[place + 1 : place + 2] in tuple("dDsSwW"):
            raise RefusedError("EBNF parser error: Character class escape is not supported yet in EBNF")
        if text[place] == "\\":
            place, code = _escape(text, place, _ESCAPE_IN_CLASS)
            codes.append(code)
        else:
            codes.append(None if text[place] == "-" else ord(text[place]))
            place += 1
    if place == len(text):
        raise RefusedError("EBNF lexer error: Unterminated character class")
    _check_ranges(codes)
    return place + 1


def _check_ranges(codes: list[int | None]) -> None:
    index, dash = 0, ord("-")
    while index < len(codes):
        if index + 2 < len(codes) and codes[index + 1] is None:
            low, high = (dash if code is None else code for code in (codes[index], codes[index + 2]))
            if low > high:
                raise RefusedError("EBNF parser error: Invalid character class: lower bound is larger than upper bound")
            index += 3
        else:
            index += 1
