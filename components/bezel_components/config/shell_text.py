"""Text of a bash script without what changes nothing when it runs: comments, blank lines, indentation. Pure.

Removes only what stands in plain code: not in quotes, not in `${...}`, not after a backslash at the end of a line. A
script with a construct that these rules do not cover is returned as it is: then every edit of it counts as a change.
A test compares both texts as bash itself reads them.
"""

import re

_WORD_START = frozenset(" \t\n;|&()")
# Each starts text with rules of its own: here-documents, old command substitutions, patterns with single parentheses,
# regular expressions with a blank in parentheses.
_UNKNOWN = re.compile(
    r"(?<!<)<<(?!<)|`|(?<![\w-])(?:case|select|esac|coproc)(?![\w-])|\r|[?*+@!]\([^(]|=~[^\n]*?\([^)\n\"]*[ \t]"
)
_WORD, _HERE_STRING, _QUOTED = re.compile(r"[\w./:,=-]+"), re.compile("<<<"), re.compile(r'[^"\\$`]+')
_QUOTES_IN_ANSI = frozenset('"{}`')


class _UnknownError(Exception):
    """The script has a construct that the rules do not cover."""


def without_comments(script: str) -> str:
    """The script with one space between words, without comments, blank lines and indentation.

    Quoted text, continued lines and the first line stay as they are. A script that cannot be read stays whole.
    """
    first, newline, rest = script.partition("\n")
    if not first.startswith("#!"):
        first, newline, rest = "", "", script
    try:
        return first + newline + _Reader(rest).read()
    except _UnknownError:
        return script


class _Reader:
    """One pass over a script: `places` says in what each position is, innermost last."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._places: list[str] = []
        self._out: list[str] = []

    def read(self) -> str:
        while self._at < len(self._text):
            place = self._places[-1] if self._places else "code"
            if place in ("code", "("):
                self._code()
            elif place == '"':
                self._double_quoted()
            else:
                self._braces()
        if self._places:
            raise _UnknownError
        return "".join(self._out).strip("\n") + "\n"

    def _code(self) -> None:
        text, at = self._text, self._at
        if match := _UNKNOWN.match(text, at):
            raise _UnknownError(match[0])
        if text[at] == "\\":
            self._read_escape()
        elif text[at] == "#" and (not self._out or self._out[-1][-1] in _WORD_START):
            if text[at - 1 : at] == ")" or (self._places and "((" in text[:at]):
                raise _UnknownError  # the rest of a word after `$(...)`, or no comment in arithmetic
            self._at = end if (end := text.find("\n", at)) >= 0 else len(text)
        elif text[at] in " \t\n" and self._is_plain():
            self._blank()
        elif match := _WORD.match(text, at) or _HERE_STRING.match(text, at):
            self._copy(len(match[0]))
        elif not self._opens():
            self._parenthesis()

    def _is_plain(self) -> bool:
        """Whether blanks only separate words here."""
        return all(place == "(" for place in self._places)

    def _read_escape(self) -> None:
        is_continued = self._text[self._at + 1 : self._at + 2] == "\n"
        self._copy(2)
        if is_continued and (indentation := re.match(r"[ \t]+", self._text[self._at :])):
            self._copy(len(indentation[0]))
        elif is_continued and self._text[self._at : self._at + 1] == "#":
            raise _UnknownError  # part of a word that began on the line before

    def _blank(self) -> None:
        """Blanks between words become one, and lines without words none."""
        char = self._text[self._at]
        self._at += 1
        if self._out and self._out[-1] == " ":
            self._out.pop()
        if self._out and self._out[-1] != "\n":
            self._out.append("\n" if char == "\n" else " ")

    def _parenthesis(self) -> None:
        char = self._text[self._at]
        if char == "(":
            self._places.append("(")
        elif char == ")":
            if not self._places:
                raise _UnknownError
            self._places.pop()
        self._copy(1)

    def _double_quoted(self) -> None:
        char = self._text[self._at]
        if char == "`":
            raise _UnknownError
        if match := _QUOTED.match(self._text, self._at):
            self._copy(len(match[0]))
        elif char == "\\":
            self._copy(2)
        elif char == '"':
            self._places.pop()
            self._copy(1)
        elif self._text.startswith(("$(", "${"), self._at):
            self._places.append("(" if self._text[self._at + 1] == "(" else "{")
            self._copy(2)
        else:
            self._copy(1)

    def _braces(self) -> None:
        """Inside of `${...}`: quotes are those of code, but a single one in double quotes may be a character."""
        char = self._text[self._at]
        if char == "`" or (char == "'" and '"' in self._places):
            raise _UnknownError
        if char == "\\":
            self._copy(2)
        elif char == "}":
            self._places.pop()
            self._copy(1)
        elif not self._opens():
            self._copy(1)

    def _opens(self) -> bool:
        """Whether a quotation, a substitution or an expansion begins here; if so, read into or over it."""
        text, at = self._text, self._at
        if text.startswith("$'", at):
            match = re.compile(r"\$'(?:[^'\\]|\\.)*'", re.DOTALL).match(text, at)
            if match is None or (_QUOTES_IN_ANSI & set(match[0]) and self._places and self._places[-1] == "{"):
                raise _UnknownError
            self._copy(len(match[0]))
        elif text[at] == "'":
            end = text.find("'", at + 1)
            if end < 0:
                raise _UnknownError
            self._copy(end + 1 - at)
        elif text[at] == '"':
            self._places.append('"')
            self._copy(1)
        elif text.startswith(("$(", "${"), at):
            self._places.append("(" if text[at + 1] == "(" else "{")
            self._copy(2)
        else:
            return False
        return True

    def _copy(self, length: int) -> None:
        self._out.append(self._text[self._at : self._at + length])
        self._at += length
