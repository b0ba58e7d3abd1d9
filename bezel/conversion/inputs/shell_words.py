r"""Words of commands as a POSIX shell splits them: quotes, continued lines, comments, variables that the text sets.

`shlex` knows neither variables nor where a comment may begin. Nothing is run: the output of a command
stays as it is written, like a variable that the text does not set, and a here-document is skipped. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from bezel.conversion.inputs.variable_expansion import PLACEHOLDER, closing_place, expand_at
from bezel_base.errors import Problem, UserError

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_HERE_DOCUMENT = re.compile(r"<<-?[ \t]*([\"']?)(\w+)\1")
_MOST_EXPANDED = 1_000_000
_PROMPT = re.compile(r"^[ \t]*(?:\$|%|>>>|PS[^>\n]*>)[ \t]+", re.MULTILINE)
_OPERATORS = "|&;()"
_REDIRECTION = re.compile(r"[<>]+[&|]?[ \t]*(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s;|&()<>]*)")


@dataclass(slots=True)
class Command:
    """One command: its tokens, and the variables that stand in front of them."""

    tokens: list[str] = field(default_factory=list)
    assignments: dict[str, str] = field(default_factory=dict)


def commands_of(text: str) -> list[Command]:
    """The commands of a text, in order, with the variables expanded that the text sets itself.

    Raises:
        UserError: A quote is not closed.
    """
    return _Lexer(_PROMPT.sub("", text.replace("\r\n", "\n"))).commands()


class _Lexer:
    def __init__(self, text: str) -> None:
        self._text, self._place = text, 0
        self._found: list[Command] = [Command()]
        self._variables: dict[str, str] = {}
        self._word: list[str] | None = None
        self._is_quoted = False
        self._here_documents: list[str] = []
        self._expanded = 0

    def commands(self) -> list[Command]:
        while self._place < len(self._text):
            self._step(self._text[self._place])
        self._end_command()
        return [command for command in self._found if command.tokens or command.assignments]

    def _step(self, sign: str) -> None:
        text, place = self._text, self._place
        if sign == "\\":
            self._escape()
        elif sign == "'":
            end = self._closing("'", place + 1)
            self._add(text[place + 1 : end], quoted=True)
            self._place = end + 1
        elif sign == '"':
            self._double_quoted()
        elif sign in "$`":
            self._add(self._expansion())
        elif sign == "#" and self._word is None:
            end = text.find("\n", place)
            self._place = len(text) if end < 0 else end
        elif sign.isspace():
            self._end_word()
            self._place += 1
            if sign == "\n":
                self._end_command()
                self._skip_here_documents()
        elif sign in "<>":
            self._angle()
        elif sign in _OPERATORS:
            self._end_command()
            self._place += 1
        else:
            self._add(sign)
            self._place += 1

    def _escape(self) -> None:
        following = self._text[self._place + 1 : self._place + 2]
        if following != "\n":
            self._add(following, quoted=True)
        self._place += 2

    def _expansion(self) -> str:
        """The value of the variable here; a command's output as it is written."""
        text, place = self._text, self._place
        if text[place] == "`":
            end = text.find("`", place + 1)
            self._place = len(text) if end < 0 else end + 1
            return text[place : self._place]
        if text.startswith("$(", place):
            self._place = min(closing_place(text, place + 2, "(", ")") + 1, len(text))
            return text[place : self._place]
        value, self._place = expand_at(text, place, self._variables)
        self._expanded += len(value)
        if self._expanded > _MOST_EXPANDED:
            consequence = f"its variables have more than {_MOST_EXPANDED} characters together: no command is as long."
            raise UserError(Problem("FILE", None, consequence, "write the values of the variables in their places."))
        return value

    def _angle(self) -> None:
        text, place = self._text, self._place
        if placeholder := PLACEHOLDER.match(text, place):
            self._add(placeholder[0])
            self._place = placeholder.end()
        elif not text.startswith("<<<", place) and (start := _HERE_DOCUMENT.match(text, place)):
            self._end_word()
            self._here_documents.append(start[2])
            self._place = start.end()
        else:
            self._redirect()

    def _skip_here_documents(self) -> None:
        """Go on behind the lines of the here-documents that the line before has opened."""
        for delimiter in self._here_documents:
            end = re.compile(rf"^[ \t]*{delimiter}[ \t]*$", re.MULTILINE).search(self._text, self._place)
            self._place = end.end() if end else len(self._text)
        self._here_documents.clear()

    def _double_quoted(self) -> None:
        text, start = self._text, self._place
        self._add("", quoted=True)
        self._place += 1
        while self._place < len(text):
            sign = text[self._place]
            if sign == '"':
                self._place += 1
                return
            if sign == "\\" and text[self._place + 1 : self._place + 2] in ('"', "\\", "$", "`", "\n"):
                following = text[self._place + 1]
                self._add("" if following == "\n" else following)
                self._place += 2
            elif sign in "$`":
                self._add(self._expansion())
            else:
                self._add(sign)
                self._place += 1
        raise self._quote_error(start)

    def _closing(self, sign: str, start: int) -> int:
        end = self._text.find(sign, start)
        if end < 0:
            raise self._quote_error(start - 1)
        return end

    def _quote_error(self, start: int) -> UserError:
        line = self._text.count("\n", 0, start) + 1
        consequence = "a quote is opened and not closed: the end of the command is unknown."
        return UserError(Problem(f"line {line}", self._text[start : start + 40], consequence, "close the quote."))

    def _add(self, part: str, *, quoted: bool = False) -> None:
        self._word = [] if self._word is None else self._word
        self._word.append(part)
        self._is_quoted = self._is_quoted or quoted

    def _redirect(self) -> None:
        """Leave out a redirection with its file, and a number of a descriptor in front of it."""
        if self._word is not None and "".join(self._word).isdigit() and not self._is_quoted:
            self._word = None
        self._end_word()
        rest = _REDIRECTION.match(self._text, self._place)
        self._place = rest.end() if rest else self._place + 1

    def _end_word(self) -> None:
        if self._word is None:
            return
        word, command = "".join(self._word), self._found[-1]
        self._word, quoted, self._is_quoted = None, self._is_quoted, False
        match = None if command.tokens and command.tokens != ["export"] else _ASSIGNMENT.fullmatch(word)
        if match:
            command.assignments[match[1]] = self._variables[match[1]] = match[2]
        elif word or quoted:
            command.tokens.append(word)

    def _end_command(self) -> None:
        self._end_word()
        if self._found[-1].tokens or self._found[-1].assignments:
            self._found.append(Command())
