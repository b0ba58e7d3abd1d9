r"""Rules of xgrammar's regular expressions: it writes them as EBNF, and takes what its EBNF takes.

Source: the behaviour of xgrammar 0.2.8 (`Grammar.from_regex`). Anchors are ignored anywhere; look-arounds, flags,
back-references, `\b` and `\p` are refused.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from bezel_simulated_vllm.grammars.rules import ebnf
from bezel_simulated_vllm.grammars.verdicts import NotJudgedError, RefusedError

if TYPE_CHECKING:
    from bezel_simulated_vllm.grammars.verdicts import Work

_COUNT = re.compile(r"\{[0-9]+(?:,[0-9]*)?\}")
_GROUP_NAME = re.compile(r"<[A-Za-z]*>")
# In an expression of the automaton: sizes, lazy counts that are counted, unusual escapes and classes, late anchors.
_UNKNOWN = re.compile(r"[0-9]{3}|[*+?}][{]|[*+?}][?][*+?{]|\[\^?\]|\[\[|\\[^dDwWsSnrtfv0^$.*+?()\[\]{}|/\\-]|[^\[]\^")
_CLASSES = {"d": "0-9", "w": "a-zA-Z0-9_", "s": r"\f\n\r\t\v\u0020\u00a0"}
_OTHERS = {
    "D": r"\x00-\x2F\x3A-\U0010FFFF",
    "W": r"\x00-\x2F\x3A-\x40\x5B-\x5E\x60\x7B-\U0010FFFF",
    "S": r"\x00-\x08\x0E-\x1F\x21-\x9F\xA1-\U0010FFFF",
}
_REFUSED = {
    **dict.fromkeys("123456789k", "Backreference is not supported yet."),
    **dict.fromkeys("pP", "Unicode character class escape sequence is not supported yet."),
    **dict.fromkeys("bB", "Word boundary is not supported yet."),
}
_TWO = "Two consecutive repetition modifiers are not allowed."
_HEX = r"[0-9a-fA-F]"
_CODES = tuple(
    re.compile(form) for form in (rf"x({_HEX}+)", rf"u({_HEX}{{4}})", rf"U({_HEX}{{8}})", rf"u\{{({_HEX}{{1,6}})\}}")
)
_PLAIN = frozenset("\\'\"?abefnrtv0^$.*+()[]{}|/-")
_CONTROLS = {"a": 7, "b": 8, "e": 27, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "0": 0}


def check(pattern: str, work: Work) -> None:
    """Refuse an expression that xgrammar does not convert.

    Raises:
        RefusedError: it does not convert it.
        NotJudgedError: it takes more than the bound of work.
    """
    ebnf.check("root ::= " + _Converter(pattern, work).convert(), work)


def check_pattern(pattern: str, work: Work) -> None:
    """Refuse an expression of a schema: its automaton knows look-aheads, a first flag and counts of counts as well.

    Raises:
        RefusedError: neither the automaton nor the conversion takes it.
        NotJudgedError: whether its automaton is small enough is not known.
    """
    try:
        check(pattern, work)
    except RefusedError:
        text = pattern.removeprefix("(?i)")
        ebnf.check("root ::= " + _Converter(text, work, lenient=True).convert(), work)
        if _UNKNOWN.search(text):
            raise NotJudgedError("the automaton of an expression with unusual parts") from None


def _code(code: int) -> str:
    return f"\\U{min(code, 0x10FFFF):08x}"


class _Converter:
    """Writes an expression as EBNF; a lenient one as what an automaton takes."""

    def __init__(self, pattern: str, work: Work, *, lenient: bool = False) -> None:
        self._text = pattern
        self._lenient = lenient
        self._work = work
        self._at = 0
        self._parts: list[str] = []

    def convert(self) -> str:
        if "\0" in self._text:
            raise RefusedError("The regex must not contain null characters.")
        depth, empty = 0, True
        while self._at < len(self._text):
            self._work.spend()
            sign = self._text[self._at]
            if sign in "^$":
                self._at += 1
                continue
            empty = False
            if sign == "(":
                depth += 1
                self._open_group()
            elif sign == ")":
                if depth == 0:
                    raise self._fault("Unmatched ')'")
                depth -= 1
                self._fill_alternative()
                self._add(")")
            else:
                self._part(sign)
        if depth:
            raise self._fault("The parenthesis is not closed.")
        self._fill_alternative()
        return "".join(self._parts) if not empty else '""'

    def _part(self, sign: str) -> None:
        if sign == "[":
            self._class()
        elif sign in "*+?":
            self._parts.append(sign)
            self._at += 1
            self._end_count()
        elif sign == "{":
            count = _COUNT.match(self._text, self._at)
            if count is None:
                self._at += 1
                raise self._fault("Invalid repetition count.")
            self._parts.append(count[0])
            self._at = count.end()
            self._end_count()
        elif sign == "|":
            if not self._parts or self._parts[-1].endswith(("|", "(")):
                self._parts.append(' ""')
            self._add("|")
        elif sign == "\\":
            self._parts.append(" " + self._escape_outside())
        elif sign == ".":
            self._add(r"[\u0000-\U0010FFFF]")
        else:
            self._add(f'"{_code(ord(sign))}"')

    def _add(self, part: str) -> None:
        self._parts.append(" " + part)
        self._at += 1

    def _fill_alternative(self) -> None:
        if self._parts and self._parts[-1].endswith("|"):
            self._parts.append(' ""')

    def _open_group(self) -> None:
        self._add("(")
        if self._text[self._at : self._at + 1] != "?":
            return
        self._at += 1
        rest = self._text[self._at : self._at + 2]
        if not rest:
            raise self._fault("Group modifier is not finished.")
        if rest[0] == ":" or (rest[0] in "=!" and self._lenient):
            self._at += 1
        elif rest == "P<" and self._lenient and (name := _GROUP_NAME.match(self._text, self._at + 1)):
            self._at = name.end()
        elif rest[0] in "=!":
            raise self._fault("Lookahead is not supported yet.")
        elif rest in ("<=", "<!"):
            raise self._fault("Lookbehind is not supported yet.")
        elif rest[0] == "<":
            name = _GROUP_NAME.match(self._text, self._at)
            if name is None:
                raise self._fault("Invalid named capturing group.")
            self._at = name.end()
        else:
            raise self._fault("Group modifier flag is not supported yet.")

    def _end_count(self) -> None:
        """Read the mark of a lazy count; no further count may follow."""
        if self._text[self._at : self._at + 1] == "?":
            self._at += 1
        if self._text[self._at : self._at + 1] in tuple("{*+?"):
            if not self._lenient:
                raise self._fault(_TWO)
            count = _COUNT.match(self._text, self._at)
            self._at = count.end() if count else self._at + 1
            self._end_count()

    def _class(self) -> None:
        self._at += 1
        if self._text[self._at : self._at + 1] == "]":
            raise self._fault("Empty character class is not allowed in regex.")
        parts = []
        while self._at < len(self._text) and self._text[self._at] != "]":
            self._work.spend()
            if self._text[self._at] == "\\":
                parts.append(self._escape_inside())
            else:
                parts.append(self._text[self._at])
                self._at += 1
        if self._at == len(self._text):
            raise self._fault("Unclosed '['")
        self._add("[" + "".join(parts) + "]")

    def _escape_outside(self) -> str:
        letter = self._escaped_letter()
        if letter in _REFUSED:
            raise self._fault(_REFUSED[letter])
        if letter in _CLASSES or letter in _OTHERS:
            self._at += 2
            return f"[{_CLASSES.get(letter) or _OTHERS[letter]}]"
        return f'"{_code(self._take_escape())}"'

    def _escape_inside(self) -> str:
        letter = self._escaped_letter()
        if letter in _CLASSES or letter in _OTHERS:
            self._at += 2
            return _CLASSES.get(letter) or _OTHERS[letter]
        return _code(self._take_escape())

    def _escaped_letter(self) -> str:
        letter = self._text[self._at + 1 : self._at + 2]
        if not letter:
            raise self._fault("Escape sequence is not finished.")
        return letter

    def _take_escape(self) -> int:
        """Return the code of the escaped character, and go on behind it."""
        letter, left = self._text[self._at + 1], len(self._text) - self._at
        if left < {"u": 5, "x": 4, "c": 3}.get(letter, 2):
            raise self._fault("Escape sequence is not finished.")
        place = self._at + 1
        for form in _CODES:
            if code := form.match(self._text, place):
                self._at = code.end()
                return int(code[1], 16)
        if self._text[place : place + 2] == "u{":
            raise self._fault("Invalid Unicode escape sequence.")
        if letter == "c":
            control = self._text[place + 1]
            if not (control.isascii() and control.isalpha()):
                raise self._fault("Invalid control character escape sequence.")
            self._at += 3
            return ord(control) % 32
        self._at += 2
        return _CONTROLS.get(letter, ord(letter))

    def _fault(self, text: str) -> RefusedError:
        return RefusedError(f"Regex parsing error at position {self._at + 1}: {text}")
