"""Patterns that a caller writes: regular expressions with RE2's syntax and its linear time, and globs.

Google's APIs evaluate such patterns with RE2, and so does this module: the library `re2` is the only engine here that
sees a pattern of a caller's. Neither compiling nor searching has a bound by itself (a program can be as large as its
memory, and a search takes time in proportion to program times text), so both are counted against a `Work` first.
Leaves out the project's own patterns, which are constants: a test shows that none of them backtracks without end.
"""

import enum
import functools

import re2  # type: ignore[import-untyped]

from bezel_localcloud.core.work import TooMuchWorkError, Work

LONGEST = 4096
"""Bytes of a pattern. With the memory below, a compiled one has some 10,000 instructions at most."""

_MEMORY = 1 << 18  # bytes of a compiled pattern, its cache of states included
_PER_BYTE, _PER_CLASS = 3, 500  # steps to compile a byte, and a class of Unicode's characters
_INSTRUCTIONS = 400  # of a program on one character, in the time of one step


class PatternError(ValueError):
    """A text that is no pattern, or one that is too large; the text says why."""


class Pattern:
    """A compiled regular expression that can be searched for within bounds."""

    def __init__(self, text: str, *, any_line: bool) -> None:
        """Compile `text`; `any_line` lets a dot take the end of a line.

        Raises:
            PatternError: It is not RE2's syntax.
        """
        options = re2.Options()
        options.log_errors, options.never_capture, options.max_mem, options.dot_nl = False, True, _MEMORY, any_line
        try:
            self._compiled = re2.compile(_encode(text), options)
        except re2.error as error:
            reason = error.args[0] if error.args else b""
            raise PatternError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None

    def found_in(self, text: str, work: Work) -> bool:
        """Whether a part of a text matches.

        Raises:
            TooMuchWorkError: The search could take more steps than what is left.
        """
        content = self._metered_bytes(text, work)
        return self._compiled.search(content) is not None

    def fits(self, text: str, work: Work) -> bool:
        """Whether the whole of a text matches.

        Raises:
            TooMuchWorkError: As `found_in`.
        """
        content = self._metered_bytes(text, work)
        return self._compiled.fullmatch(content) is not None

    def _metered_bytes(self, text: str, work: Work) -> bytes:
        # Before the text is encoded: a character has four bytes at most.
        work.spend(1 + (len(text) if text.isascii() else 4 * len(text)) * self._compiled.programsize // _INSTRUCTIONS)
        return _encode(text)


def regular_expression(text: str, work: Work) -> Pattern:
    """A caller's regular expression.

    Raises:
        PatternError: It is not RE2's syntax (groups that look around and references back are not), or is too large.
        TooMuchWorkError: To compile it could take more steps than what is left.
    """
    _count_compiling(text, work)
    return _compile(_Kind.REGULAR_EXPRESSION, text)


def glob(text: str, work: Work) -> Pattern:
    """A caller's pattern of a path: `**` takes anything, `*` and `?` all but a slash; [a-z], [!a] and {a,b} as usual.

    Raises:
        PatternError: A bracket or a brace is not closed, or the pattern is too large.
        TooMuchWorkError: As `regular_expression`.
    """
    _count_compiling(text, work)
    return _compile(_Kind.GLOB, text)


def shell_pattern_fits(pattern: str, text: str) -> bool:
    """Whether a text fits a pattern of a fault or a breakpoint: `*` and `?` take any characters, [a-z] and [!a] one.

    A pattern that is no such one, or is too large, fits itself only.
    """
    work = Work(_SHELL_STEPS)
    try:
        _count_compiling(pattern, work)
        return _compile(_Kind.SHELL, pattern).fits(text, work)
    except (PatternError, TooMuchWorkError):
        return pattern == text


_SHELL_STEPS = 100_000


def _count_compiling(text: str, work: Work) -> None:
    if len(text) > LONGEST or len(_encode(text)) > LONGEST:
        raise PatternError(f"a pattern has at most {LONGEST} bytes")
    classes = text.count("\\p") + text.count("\\P")
    work.spend(1 + _PER_BYTE * len(text) + _PER_CLASS * classes)


class _Kind(enum.Enum):
    REGULAR_EXPRESSION = enum.auto()
    GLOB = enum.auto()
    SHELL = enum.auto()


@functools.lru_cache(maxsize=256)
def _compile(kind: _Kind, text: str) -> Pattern:
    if kind is _Kind.REGULAR_EXPRESSION:
        return Pattern(text, any_line=False)
    return Pattern(_of_glob(text) if kind is _Kind.GLOB else _of_shell_pattern(text), any_line=True)


def _of_glob(pattern: str) -> str:
    text, depth, place = "", 0, 0
    while place < len(pattern):
        sign = pattern[place]
        if pattern.startswith("**", place):
            text, place = text + ".*", place + 1
        elif sign in "*?":
            text += "[^/]*" if sign == "*" else "[^/]"
        elif sign == "[":
            bracket, place = _of_bracket(pattern, place)
            text += bracket
        elif sign == "{":
            text, depth = text + "(?:", depth + 1
        elif depth and sign in ",}":
            text, depth = text + ("|" if sign == "," else ")"), depth - (sign == "}")
        elif sign == "\\" and place + 1 < len(pattern):
            place += 1
            text += re2.escape(pattern[place])
        else:
            text += re2.escape(sign)
        place += 1
    if depth:
        raise PatternError("no closing brace")
    return text


def _of_shell_pattern(pattern: str) -> str:
    text, place = "", 0
    while place < len(pattern):
        sign = pattern[place]
        if sign in "*?":
            text += ".*" if sign == "*" else "."
        elif sign == "[" and _end_of_bracket(pattern, place) > 0:
            bracket, place = _of_bracket(pattern, place)
            text += bracket
        else:
            text += re2.escape(sign)
        place += 1
    return text


def _of_bracket(pattern: str, place: int) -> tuple[str, int]:
    """(class of characters, place of its closing bracket)."""
    end = _end_of_bracket(pattern, place)
    if end < 0:
        raise PatternError("no closing bracket")
    inner = pattern[place + 1 : end]
    negated = "^" if inner[0] in "!^" else ""
    inner = inner[1:] if negated else inner
    return "[" + negated + "".join(f"\\{sign}" if sign in r"\[]^&~|" else sign for sign in inner) + "]", end


def _end_of_bracket(pattern: str, place: int) -> int:
    """Place of the closing bracket, below 0 without one; one that stands first is a member of the class."""
    return pattern.find("]", place + (3 if pattern[place + 1 : place + 2] in {"!", "^"} else 2))


def _encode(text: str) -> bytes:
    """UTF-8, with a mark in the place of half a surrogate pair, which JSON can hold and UTF-8 cannot."""
    return text.encode(errors="replace")


class Capturing:
    """A compiled regular expression whose groups are asked for: it matches whole texts, a dot any character."""

    def __init__(self, text: str) -> None:
        """Compile `text`.

        Raises:
            PatternError: It is not RE2's syntax.
        """
        options = re2.Options()
        options.log_errors, options.max_mem, options.dot_nl = False, _MEMORY, True
        try:
            self._compiled = re2.compile(_encode(text), options)
        except re2.error as error:
            reason = error.args[0] if error.args else b""
            raise PatternError(reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)) from None
        self._names = {number: name for name, number in self._compiled.groupindex.items()}

    def groups(self, text: str, work: Work) -> dict[str, str] | None:
        """The groups of a text that matches as a whole, by number and by name; None if it does not match.

        Raises:
            TooMuchWorkError: The match could take more steps than what is left.
        """
        content = _encode(text)
        work.spend(1 + len(content) * self._compiled.programsize // _INSTRUCTIONS)
        if (match := self._compiled.fullmatch(content)) is None:
            return None
        groups = {str(number): _decode(match.group(number)) for number in range(self._compiled.groups + 1)}
        return groups | {_decode(name): groups[str(number)] for number, name in self._names.items()}


def capturing_expression(text: str, work: Work) -> Capturing:
    """A caller's regular expression with its groups.

    Raises:
        PatternError: It is not RE2's syntax, or is too large.
        TooMuchWorkError: To compile it could take more steps than what is left.
    """
    _count_compiling(text, work)
    return Capturing(text)


def _decode(content: bytes | None) -> str:
    return "" if content is None else content.decode(errors="replace")
