"""Filters of Logging's query language: the subset in daily use.

Supports comparisons of a field with a value (= != < <= > >= : =~ !~), `field:*` for presence, a value in parentheses
(`severity=(ERROR OR CRITICAL)`), a text alone (anywhere in the entry), AND (explicit or implied), OR, NOT and -,
parentheses, comments. As in Google's, OR binds closer than AND, the three words are capitals, and everything but
regular expressions, which are RE2's, is compared without regard to case. Functions such as `log_id(...)` are refused by
name. A filter counts the work of each comparison against the request's `Work` before it does it.
"""

import operator
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NoReturn

from bezel_localcloud.core.errors import invalid
from bezel_localcloud.core.json_types import Json
from bezel_localcloud.core.patterns import PatternError, regular_expression
from bezel_localcloud.core.work import TooMuchWorkError, Work

Test = Callable[[Json, Work], bool]

_SEVERITIES = ("DEFAULT", "DEBUG", "INFO", "NOTICE", "WARNING", "ERROR", "CRITICAL", "ALERT", "EMERGENCY")
_TIMES = {"timestamp", "receiveTimestamp"}
_ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
MOST_STEPS = 200_000
"""Steps that a filter may take on one entry, which has 256 KiB at most, and to compile its regular expressions."""

_LONGEST = 20_000  # characters; source: the discovery document of logging v2
_DEEPEST = 40  # parentheses and NOTs within each other
_FIELD = re.compile(r'[A-Za-z_]\w*(?:\.(?:[\w-]+|"[^"]*"))*', re.ASCII)
_FUNCTION = re.compile(r"[A-Za-z_]\w*\(", re.ASCII)
_OPERATOR = re.compile(r"!=|>=|<=|=~|!~|=|>|<|:")
_VALUE = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s()"]+')
_NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 400  # characters; a longer one is compared as text
_PER_STEP = 200  # characters of a value that are read in a step
_BLANK = re.compile(r"(?:\s|--[^\n]*\n)*(?:--[^\n]*)?")
_PART = re.compile(r'"[^"]*"?|[^".]+')
_WORDS = {word: re.compile(rf'{word}(?=[\s()"]|\Z)') for word in ("AND", "OR", "NOT")}


@dataclass(frozen=True)
class Filter:
    """A parsed filter.

    Attributes:
        test: What an entry must fulfil.
        since: Lower bound of matching entries in Unix seconds, as far as the filter's top level sets one.
        until: Upper bound of matching entries in Unix seconds.
    """

    test: Test
    since: float | None
    until: float | None

    def holds(self, entry: Json, work: Work | None = None) -> bool:
        """Whether an entry matches; the steps are counted against `work`, by default `MOST_STEPS`.

        Raises:
            TooMuchWorkError: It takes more.
        """
        return self.test(entry, work or Work(MOST_STEPS))


def parse_filter(text: str) -> Filter:
    """Parse a filter of entries.

    Raises:
        ApiError: INVALID_ARGUMENT for a malformed filter, a part of the language that is not served, or regular
            expressions that take too much work.
    """
    if len(text) > _LONGEST:
        raise invalid(f"The filter has {len(text)} characters, more than {_LONGEST}.", ("filter", "is too long"))
    parser = _FilterParser(text, Work(MOST_STEPS))
    test = parser.parse()
    return Filter(test, max(parser.since, default=None), min(parser.until, default=None))


class _FilterParser:
    """Recursive descent over the text; `since` and `until` are the time bounds of the top level."""

    def __init__(self, text: str, work: Work) -> None:
        self._text = text
        self._work = work
        self._at = 0
        self._depth = 0
        self.since: list[float] = []
        self.until: list[float] = []

    def parse(self) -> Test:
        self._skip()
        if self._at == len(self._text):
            return lambda _entry, _work: True
        test = self._all_of(top=True)
        if self._at < len(self._text):
            self._refuse("unexpected")
        return test

    def _all_of(self, *, top: bool = False) -> Test:
        tests = [self._any_of(top=top)]
        while self._at < len(self._text) and self._text[self._at] != ")":
            self._word("AND")
            tests.append(self._any_of(top=top))
        return lambda entry, work: all(test(entry, work) for test in tests)

    def _any_of(self, *, top: bool) -> Test:
        bounds = len(self.since), len(self.until)
        tests = [self._single(top=top)]
        while self._word("OR"):
            tests.append(self._single(top=False))
        if len(tests) > 1:  # a time bound that is one alternative of several is none for the whole
            del self.since[bounds[0] :], self.until[bounds[1] :]
        return lambda entry, work: any(test(entry, work) for test in tests)

    def _single(self, *, top: bool) -> Test:
        self._depth += 1
        if self._depth > _DEEPEST:
            self._refuse("nested too deeply")
        try:
            if self._word("NOT") or self._sign("-"):
                test = self._single(top=False)
                return lambda entry, work: not test(entry, work)
            if self._sign("("):
                test = self._all_of()
                self._close()
                return test
            return self._comparison(top=top)
        finally:
            self._depth -= 1

    def _comparison(self, *, top: bool) -> Test:
        if function := _FUNCTION.match(self._text, self._at):
            self._refuse(f"localcloud does not serve the function {function[0]})")
        start, field = self._at, self._match(_FIELD)
        sign = self._match(_OPERATOR) if field else ""
        if sign:
            return self._values(field, sign, top=top)
        self._at = start
        text = self._value().lower()
        return lambda entry, work: any(text in _metered_text(leaf, work).lower() for leaf in _leaves(entry))

    def _values(self, field: str, sign: str, *, top: bool) -> Test:
        if not self._sign("("):
            return self._term(field, sign, top=top)
        test = self._choices(field, sign)
        self._close()
        return test

    def _choices(self, field: str, sign: str) -> Test:
        """Values in parentheses, joined as comparisons are."""
        groups = [[self._choice(field, sign)]]
        while (is_and := self._word("AND")) or self._word("OR"):
            if is_and:
                groups.append([])
            groups[-1].append(self._choice(field, sign))
        return lambda entry, work: all(any(test(entry, work) for test in group) for group in groups)

    def _choice(self, field: str, sign: str) -> Test:
        negated, test = self._word("NOT"), self._term(field, sign, top=False)
        return lambda entry, work: test(entry, work) != negated

    def _term(self, field: str, sign: str, *, top: bool) -> Test:
        start, quoted = self._at, self._text[self._at : self._at + 1] == '"'
        value = self._value()
        path = [part.strip('"') for part in _PART.findall(field)]
        if sign == ":" and value == "*" and not quoted:
            return lambda entry, _work: any(True for _ in _values_at(entry, path))
        try:
            test = _test(field, sign, value, self._work)
        except (ValueError, TooMuchWorkError) as error:
            self._at = start
            self._refuse(str(error))
        if top and field == "timestamp" and sign in {">", ">=", "=", "<", "<="}:
            self.since += [_unix_seconds(value)] * (sign in {">", ">=", "="})
            self.until += [_unix_seconds(value)] * (sign in {"<", "<=", "="})
        absent = sign in {"!=", "!~"}
        default = ["DEFAULT"] if path == ["severity"] else []

        def holds(entry: Json, work: Work) -> bool:
            work.spend()
            values = list(_values_at(entry, path)) or default
            return (all if absent else any)(test(item, work) for item in values) if values else absent

        return holds

    def _value(self) -> str:
        text = self._match(_VALUE)
        if not text or text in {"AND", "OR", "NOT"}:
            self._refuse("a value is missing")
        return re.sub(r"\\(.)", r"\1", text[1:-1]) if text[0] == '"' else text

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self._text, self._at)
        if match is None:
            return ""
        self._at = match.end()
        self._skip()
        return match[0]

    def _word(self, word: str) -> bool:
        return bool(self._match(_WORDS[word]))

    def _sign(self, sign: str) -> bool:
        if not self._text.startswith(sign, self._at):
            return False
        self._at += len(sign)
        self._skip()
        return True

    def _close(self) -> None:
        if not self._sign(")"):
            self._refuse("a closing parenthesis is missing")

    def _skip(self) -> None:
        if blank := _BLANK.match(self._text, self._at):
            self._at = blank.end()

    def _refuse(self, why: str) -> NoReturn:
        there = self._text[self._at : self._at + 30]
        text = f"Unparseable filter: {why} at character {self._at}: {there!r}"
        raise invalid(text, ("filter", why))


def _test(field: str, sign: str, value: str, work: Work) -> Callable[[object, Work], bool]:
    """Return the comparison of an entry's field with a value.

    Raises:
        ValueError: If the value is invalid for that field.
        TooMuchWorkError: If it is a regular expression that could take too many steps to compile.
    """
    if sign in {"=~", "!~"}:
        try:
            pattern = regular_expression(value, work)
        except PatternError as error:
            raise ValueError(f"{value[:200]!r} is not a regular expression: {error}") from None
        return lambda item, work: pattern.found_in(_metered_text(item, work), work) == (sign == "=~")
    if sign == ":":
        part = value.lower()
        return lambda item, work: part in _metered_text(item, work).lower()
    key = _key_of(field, value)
    expected = key(value)
    if sign in {"=", "!="}:
        return lambda item, work: (key(_metered_text(item, work)) == expected) == (sign == "=")

    def is_ordered(item: object, work: Work) -> bool:
        entry_key = key(_metered_text(item, work))
        return type(entry_key) is type(expected) and _ORDERS[sign](entry_key, expected)

    return is_ordered


def _metered_text(value: object, work: Work) -> str:
    """A value of an entry as text; its length is counted first."""
    work.spend(1 + _characters(value) // _PER_STEP)
    return str(value)


def _characters(value: object) -> int:
    """About as many as the value's text has."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(len(key) + _characters(item) for key, item in value.items())
    return sum(map(_characters, value)) if isinstance(value, list) else 1


def _key_of(field: str, value: str) -> Callable[[str], float | str]:
    """The key by which two values of a field are compared."""
    if field == "severity":
        if value.upper() not in _SEVERITIES:
            raise ValueError(f"{value!r} is not a severity: use one of {', '.join(_SEVERITIES)}")
        return _severity
    if field in _TIMES:
        _unix_seconds(value)
        return _unix_seconds
    return _number if isinstance(_number(value), float) else str.lower


def _severity(text: str) -> float:
    return float(_SEVERITIES.index(text.upper())) if text.upper() in _SEVERITIES else 0.0


def _number(text: str) -> float | str:
    if len(text) <= _LONGEST_NUMBER and _NUMBER.fullmatch(text):
        return float(text)
    return text.lower()


def _unix_seconds(text: str) -> float:
    try:
        moment = datetime.fromisoformat(re.sub(r"(\.[0-9]{6})[0-9]+", r"\1", text))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(f"{text!r} is not a time such as 2026-11-01T00:00:00Z") from None


def _values_at(entry: object, path: list[str]) -> Iterator[object]:
    """Values of an entry at a path; a list has the values of each of its members."""
    if isinstance(entry, list):
        for item in entry:
            yield from _values_at(item, path)
    elif not path:
        yield entry
    elif isinstance(entry, dict) and path[0] in entry:
        yield from _values_at(entry[path[0]], path[1:])


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    else:
        yield value
