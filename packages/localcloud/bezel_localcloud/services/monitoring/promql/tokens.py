"""Words and signs of a query. Pure.

Source: prometheus/prometheus, promql/parser/lex.go (v0.316.0). Within brackets a colon stands alone, elsewhere it is a
character of a name.
"""

import re
from typing import NamedTuple

from bezel_localcloud.services.monitoring.promql.syntax import QueryError

_LONGEST, _MOST_TOKENS = 10_000, 1000
_TOKEN = re.compile(
    r"""(?P<blank>\s+|\#[^\n]*)
    |(?P<duration>(?:[0-9]+(?:ms|[smhdwy]))+(?![A-Za-z0-9_]))
    |(?P<number>0[xX][0-9a-fA-F]+|(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<name>[A-Za-z_:][A-Za-z0-9_:]*)
    |(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)
    |(?P<sign>=~|!~|==|!=|>=|<=|[-+*/%^=<>(){}\[\],:@])""",
    re.VERBOSE,
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.)", re.DOTALL)
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "\\": "\\"}
_ESCAPES |= {'"': '"', "'": "'"}
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0, "y": 31_536_000.0}
_UNIT = re.compile(r"([0-9]+)(ms|[smhdwy])")
_LONGEST_DURATION = 292 * _SECONDS["y"]  # what Prometheus's own durations hold


class QueryToken(NamedTuple):
    """A word or sign.

    Attributes:
        kind: "duration", "number", "name", "text", "sign" or "end".
        text: As it is written.
        place: Number of its first character, from 1.
    """

    kind: str
    text: str
    place: int


def read_tokens(query: str) -> list[QueryToken]:
    """The tokens of a query, and the end.

    Raises:
        QueryError: A character that begins none, or more of them than a query may have.
    """
    if len(query) > _LONGEST:
        raise QueryError(f"a query has at most {_LONGEST} characters here")
    tokens, place, brackets = list[QueryToken](), 0, 0
    while place < len(query):
        match = _TOKEN.match(query, place)
        if match is None:
            what = "unterminated quoted string" if query[place] in "\"'`" else f"unexpected character: {query[place]!r}"
            raise QueryError(f"1:{place + 1}: parse error: {what}")
        kind, text = str(match.lastgroup), match[0]
        if brackets and text[0] == ":":
            kind, text = "sign", ":"
        brackets += (text == "[") - (text == "]")
        if kind != "blank":
            tokens.append(QueryToken(kind, text, place + 1))
        place += len(text)
    if len(tokens) > _MOST_TOKENS:
        raise QueryError(f"a query has at most {_MOST_TOKENS} words and signs here")
    return [*tokens, QueryToken("end", "", len(query) + 1)]


def text_of(token: QueryToken) -> str:
    """The value of a quoted text.

    Raises:
        QueryError: An escape that there is not.
    """
    inner = token.text[1:-1]
    if token.text[0] == "`":
        return inner

    def plain(match: re.Match[str]) -> str:
        code = match[1]
        if code[0] in "xuU" and len(code) > 1:
            number = int(code[1:], 16)
        elif len(code) > 1:
            number = int(code, 8)
        elif code in _ESCAPES:
            return _ESCAPES[code]
        else:
            number = -1
        if not 0 <= number < 0x110000 or 0xD800 <= number < 0xE000:
            raise QueryError(f"1:{token.place}: parse error: unknown escape sequence in {token.text[:50]}")
        return chr(number)

    return _ESCAPE.sub(plain, inner)


def seconds_of_duration(text: str) -> float:
    """Seconds of a duration such as `1h30m`, or of a plain number.

    Raises:
        QueryError: It is neither, or is longer than 292 years.
    """
    seconds, place = 0.0, 0
    while unit := _UNIT.match(text, place):
        seconds, place = seconds + float(unit[1]) * _SECONDS[unit[2]], unit.end()
    if not place or place < len(text):
        try:
            seconds = float(text)
        except ValueError:
            raise QueryError(f"not a valid duration string: {text[:50]!r}") from None
    if not 0 <= seconds <= _LONGEST_DURATION:
        raise QueryError("duration out of range")
    return seconds
