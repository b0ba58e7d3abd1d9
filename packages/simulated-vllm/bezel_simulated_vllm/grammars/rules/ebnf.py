"""Rules of xgrammar's EBNF: rules with choices of sequences, groups, counts, look-aheads, and its macros.

Source: the behaviour of xgrammar 0.2.8 (`Grammar.from_ebnf`). Reads the tokens from left to right without recursion,
so that a deep grammar costs no stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bezel_simulated_vllm.grammars.rules.ebnf_macros import MACROS, check_macro
from bezel_simulated_vllm.grammars.rules.ebnf_tokens import Token, tokens
from bezel_simulated_vllm.grammars.verdicts import RefusedError

if TYPE_CHECKING:
    from bezel_simulated_vllm.grammars.verdicts import Work

_DEEPEST = 1000


def check(text: str, work: Work) -> None:
    """Refuse a grammar that xgrammar does not parse.

    Raises:
        RefusedError: it does not parse.
        NotJudgedError: it takes more than the bound of work.
    """
    listed = tokens(text, work)
    names: set[str] = set()
    for token in listed:
        if token.kind == "rule":
            if token.value in names:
                raise _error(f'Rule "{token.value}" is defined multiple times', token)
            names.add(token.value)
    if "root" not in names:
        raise _error('The root rule with name "root" is not found', listed[0])
    _Reader(listed, names, work).read()


def _error(text: str, token: Token) -> RefusedError:
    return RefusedError(f"EBNF parser error at line {token.line}: {text}")


class _Reader:
    """Reads the tokens of a grammar."""

    def __init__(self, listed: list[Token], names: set[str], work: Work) -> None:
        self._tokens = listed
        self._names = names
        self._work = work
        self._at = 0
        self._open: list[str] = []

    def read(self) -> None:
        while self._peek().kind != "end":
            if self._take().kind != "rule":
                raise self._fault("Expect rule name", -1)
            self._expect("::=", "Expect ::=")
            self._rule_body()

    def _rule_body(self) -> None:
        """Read the choices of a rule, and its look-ahead where it has one."""
        looks_ahead = False
        while True:
            self._element()
            self._close_groups()
            kind = self._peek().kind
            if kind == "|":
                self._take()
            elif kind == "(=" and not self._open and not looks_ahead:
                self._take()
                self._open.append("(=")
                looks_ahead = True
            elif kind in ("rule", "end", "(="):
                if self._open:
                    raise self._fault("Expect )")
                return
            if looks_ahead and not self._open:
                return

    def _close_groups(self) -> None:
        """Read the counts after an element and the ends of the groups that it closes."""
        self._count()
        while self._peek().kind == ")":
            if not self._open:
                raise self._fault("Expect rule name")
            self._take()
            if self._open.pop() == "(=":
                return
            self._count()

    def _element(self) -> None:
        self._work.spend()
        token = self._take()
        while token.kind == "(":
            if len(self._open) >= _DEEPEST:
                raise self._fault("Nest layer exceeded the maximum limit", -1)
            if self._peek().kind == ")":
                self._take()
                return
            self._open.append("(")
            token = self._take()
        if token.kind in ("class", "string"):
            return
        if token.kind != "name":
            raise self._fault(f"Expect element, but got {token.value or token.kind}", -1)
        if token.value in MACROS:
            self._at = check_macro(token.value, self._tokens, self._at, self._names)
        elif token.value not in self._names:
            raise self._fault(f'Rule "{token.value}" is not defined', -1)

    def _count(self) -> None:
        """Read the count of an element: a sign or a range."""
        kind = self._peek().kind
        if kind in ("*", "+", "?"):
            self._take()
        elif kind == "{":
            self._take()
            low = self._integer()
            if self._peek().kind == ",":
                self._take()
                if self._peek().kind == "}" or (self._peek().kind == "name" and self._peek().value == "-1"):
                    if self._peek().kind == "name":
                        self._take()
                elif (high := self._integer()) < low:
                    raise self._fault(f"Lower bound is larger than upper bound: {low} > {high}", -1)
            elif self._peek().kind != "}":
                raise self._fault("Expect ',' or '}' in repetition range")
            self._expect("}", "Expect }")

    def _integer(self) -> int:
        token = self._take()
        if token.kind != "integer":
            raise self._fault(f"Expect integer, but got {token.value or token.kind}", -1)
        return int(token.value)

    def _peek(self) -> Token:
        return self._tokens[min(self._at, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._peek()
        self._at += 1
        return token

    def _expect(self, kind: str, text: str) -> None:
        if self._take().kind != kind:
            raise self._fault(text, -1)

    def _fault(self, text: str, back: int = 0) -> RefusedError:
        return _error(text, self._tokens[max(0, min(self._at + back, len(self._tokens) - 1))])
