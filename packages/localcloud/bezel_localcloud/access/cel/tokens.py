"""Words and signs of an expression of the Common Expression Language, and the values of its literals. Pure.

Source: github.com/google/cel-spec, doc/langdef.md, "Syntax". Texts of bytes, unsigned numbers and quoted names are
refused by name.
"""

import re
import string
from typing import NamedTuple

from bezel_localcloud.access.cel.syntax import CelError

_TOKEN = re.compile(
    r"""(?P<blank>[\t\n\f\r ]+|//[^\n]*)"""
    r"""|(?P<bytes>(?:[bB][rR]?|[rR][bB])["'])"""
    r"""|(?P<raw>[rR](?:"{3}(?:[^"]|"[^"]|""[^"])*"{3}|'{3}(?:[^']|'[^']|''[^'])*'{3}"""
    r"""|"[^"\r\n]*"|'[^'\r\n]*'))"""
    r"""|(?P<text>"{3}(?:[^"\\]|\\.|"(?:[^"\\]|\\.)|""(?:[^"\\]|\\.))*"{3}"""
    r"""|'{3}(?:[^'\\]|\\.|'(?:[^'\\]|\\.)|''(?:[^'\\]|\\.))*'{3}"""
    r"""|"(?:[^"\\\r\n]|\\.)*"|'(?:[^'\\\r\n]|\\.)*')"""
    r"""|(?P<number>(?:0[xX][0-9a-fA-F]+|[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+(?:[eE][+-]?[0-9]+)?)[uU]?)"""
    r"""|(?P<word>[A-Za-z_][A-Za-z0-9_]*)|(?P<sign>&&|\|\||[=!<>]=|[-+*/%!<>()\[\]{}.,:?`])""",
    re.DOTALL,
)
_ESCAPE = re.compile(
    r"\\(?:(?P<sign>[abfnrtv\\?\"'`])|(?P<code>[xX][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})|(?P<octal>[0-3][0-7]{2})"
    r"|(?P<other>.))",
    re.DOTALL,
)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_LONGEST_NUMBER = 19  # digits of a whole number of 64 bits
_LONGEST_DOUBLE = 400
_SHOWN = 40  # characters of a part that is not understood


class Token(NamedTuple):
    """A word or a sign.

    Attributes:
        kind: text, raw, number, word or sign; "" behind the last one.
        text: As it is written.
    """

    kind: str
    text: str


def read_tokens(expression: str, longest: int, most: int) -> list[Token]:
    """The words and signs of an expression.

    Args:
        expression: The text.
        longest: Characters that it may have.
        most: Words and signs that it may have; what is behind them is not read.

    Raises:
        CelError: There are more, or a part is no word of the language.
    """
    if len(expression) > longest:
        raise CelError(f"an expression of more than {longest} characters")
    tokens: list[Token] = []
    position = 0
    while position < len(expression):
        match = _TOKEN.match(expression, position)
        kind = match.lastgroup if match else None
        if match is None or kind is None:
            raise CelError(f"syntax error at '{expression[position : position + _SHOWN]}'")
        if kind == "bytes":
            raise CelError("localcloud does not evaluate texts of bytes")
        if kind != "blank":
            if len(tokens) == most:
                raise CelError(f"localcloud does not evaluate more than {most} words and signs")
            tokens.append(Token(kind, match[0]))
        position = match.end()
    return tokens


def number_of(literal: str) -> int | float:
    """The value of a literal of a number, with a minus in front or without.

    Raises:
        CelError: It is unsigned, or does not fit 64 bits.
    """
    digits = literal.lstrip("-")
    if digits[-1] in "uU":
        raise CelError("localcloud does not evaluate unsigned numbers")
    hexadecimal = digits[:2] in {"0x", "0X"}
    if not hexadecimal and digits.strip(string.digits):
        if len(digits) > _LONGEST_DOUBLE:
            raise CelError(f"the number {digits[:_SHOWN]} has more than {_LONGEST_DOUBLE} characters")
        return float(literal)
    if len(digits) <= _LONGEST_NUMBER or not digits.strip("0"):
        number = int(digits, 16 if hexadecimal else 10)
        number = -number if literal.startswith("-") else number
        if -(2**63) <= number < 2**63:
            return number
    raise CelError(f"the whole number {digits[:_SHOWN]} has more than 64 bits")


def text_of(token: Token) -> str:
    """The value of a literal of a text.

    Raises:
        CelError: An escape sequence is none of the language's, or is no character.
    """
    literal = token.text[1:] if token.kind == "raw" else token.text
    quotes = 3 if literal[:3] in {'"""', "'''"} else 1
    inner = literal[quotes:-quotes]
    return inner if token.kind == "raw" else _ESCAPE.sub(_unescape, inner)


def _unescape(match: re.Match[str]) -> str:
    if match["sign"]:
        return _ESCAPED.get(match["sign"], match["sign"])
    if match["other"]:
        raise CelError(f"the text has no escape sequence {match[0]}")
    point = int(match["octal"], 8) if match["octal"] else int(match["code"][1:], 16)
    if 0xD800 <= point < 0xE000:
        raise CelError(f"{match[0]} is half of a pair of surrogates, and no character")
    if point > 0x10FFFF:
        raise CelError(f"expected a character, got {match[0]}")
    return chr(point)
