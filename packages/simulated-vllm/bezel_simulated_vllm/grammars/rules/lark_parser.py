"""Parser of xgrammar's Lark grammars: definitions, imports and options, as a tree of what their bodies hold.

Source: the behaviour of xgrammar 0.2.8 (`Grammar.from_lark`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bezel_simulated_vllm.grammars.rules.lark_tokens import LarkToken, fault
from bezel_simulated_vllm.grammars.verdicts import NotJudgedError

if TYPE_CHECKING:
    from bezel_simulated_vllm.grammars.verdicts import Work

_ENDS = frozenset({"newline", "|", ")", "]", "}", "end", "->", "&", "if"})
_ATOMS = {"expression", "name", "json", "structured", "special", "grammar"}
_MOST_COUNT = 2**31 - 1
_MOST_TOKENS = 1_000_000
_DEEPEST = 100  # xgrammar's own bound is 200
# What C++ reads as a whole number of floating point.
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_MOST_FLOAT = 3.4028235e38
_CAPTURE = re.compile(r"[A-Za-z0-9_.-]+")


@dataclass
class Part:
    """A part of a body.

    Attributes:
        kind: of the token, or "range", "lark", "not"; "all" for what holds others.
        text: the name, the text of a string, or the expression.
        value: the flags of an expression or a string, a directive's JSON, the end of a range, a nested grammar.
    """

    kind: str
    text: str = ""
    value: Any = None
    children: list[Part] = field(default_factory=list)


@dataclass
class Definition:
    """A rule, or a terminal by its upper case.

    Attributes:
        attributes: the names of what stands in brackets after its name.
    """

    name: str
    is_terminal: bool
    body: Part
    attributes: set[str] = field(default_factory=set)


@dataclass
class Document:
    """A grammar: its definitions, what is ignored between their parts, imports as (path, name), options."""

    definitions: list[Definition] = field(default_factory=list)
    ignores: list[Part] = field(default_factory=list)
    imports: list[tuple[str, str]] = field(default_factory=list)
    options: list[Any] = field(default_factory=list)


def is_terminal(name: str) -> bool:
    """Whether a name is that of a terminal."""
    return name.lstrip("?!").removeprefix("_")[:1].isupper()


def string_value(token: LarkToken) -> tuple[str, str]:
    """Return the text of a string, and "i" where its case does not matter.

    Raises:
        RefusedError: it is no JSON string.
    """
    flags = "i" if token.text.endswith("i") else ""
    try:
        value = json.loads(token.text.removesuffix("i"))
    except ValueError:
        raise fault("invalid string literal") from None
    return value, flags


class Parser:
    """Reads the tokens of a grammar."""

    def __init__(self, listed: list[LarkToken], work: Work) -> None:
        self._tokens = listed
        self._work = work
        self._at = 0
        self._depth = 0

    def document(self, *, nested: bool = False) -> Document:
        """Return the grammar.

        Raises:
            RefusedError: it does not parse.
            NotJudgedError: its groups are deeper than what is read here.
        """
        read = Document()
        self._skip_newlines()
        while self._peek() != "end" and not (nested and self._peek() == "}"):
            kind = self._peek()
            if kind == "import":
                read.imports += self._import()
            elif kind == "ignore":
                self._take()
                read.ignores.append(self._choice())
            elif kind == "options":
                read.options.append(self._take().value)
            elif kind == "unsupported":
                raise fault(f"directive {self._take().text} is not supported")
            else:
                read.definitions.append(self._definition())
            if self._peek() not in ("newline", "end") and not (nested and self._peek() == "}"):
                raise fault("expected end of grammar item")
            self._skip_newlines()
        return read

    def _import(self) -> list[tuple[str, str]]:
        self._take()
        path = self._expect("name", "expected import path").text
        while self._match("."):
            path += "." + self._expect("name", "expected name after '.'").text
        if self._match("("):
            names = [self._expect("name", "expected imported terminal name").text]
            while self._match(","):
                names.append(self._expect("name", "expected imported terminal name").text)
            self._expect(")", "expected ')' after import list")
            return [(f"{path}.{name}", name) for name in names]
        name = path.rpartition(".")[2]
        if self._match("->"):
            name = self._expect("name", "expected import alias").text
        return [(path, name)]

    def _definition(self) -> Definition:
        name = self._expect("name", "expected rule or terminal name").text
        attributes: set[str] = set()
        if self._peek() == "[":
            if is_terminal(name):
                raise fault("attributes are only supported on rules")
            attributes = self._attributes()
        for sign, text in ((".", "priorities are"), ("::", "parametric grammar is"), ("{", "Lark templates are")):
            if self._peek() == sign:
                raise fault(f"{text} not supported")
        self._expect(":", "expected ':' after rule name")
        return Definition(name.lstrip("?!"), is_terminal(name), self._choice(), attributes)

    def _attributes(self) -> set[str]:
        self._take()
        names: list[str] = []
        while self._peek() != "]":
            name = self._expect("name", "expected rule attribute").text
            self._attribute(name)
            names.append(name)
            if not self._match(","):
                break
        self._expect("]", "expected ']' after rule attributes")
        once = [name for name in names if name != "lazy"]
        if len(set(once)) < len(once) or {"stop", "suffix"} <= set(names):
            raise fault("a rule attribute is specified more than once")
        if "stop_capture" in names and not {"stop", "suffix"} & set(names):
            raise fault("stop_capture requires stop or suffix")
        return set(names)

    def _attribute(self, name: str) -> None:
        """Read the value of an attribute of a rule."""
        if name == "lazy" or (name == "capture" and self._peek() != "="):
            return
        if name not in ("max_tokens", "max_chars", "capture", "stop_capture", "suffix", "stop", "temperature"):
            raise fault(f"rule attribute '{name}' is not supported by XGrammar Lark")
        self._expect("=", f"expected '=' after {name} attribute")
        if name in ("max_tokens", "max_chars"):
            value = self._integer()
            if name == "max_tokens" and not 0 < value <= _MOST_TOKENS:
                raise fault("max_tokens must be positive")
        elif name == "temperature":
            number = _NUMBER.fullmatch(self._expect("number", "expected number after temperature=").text)
            if number is None or not 0 <= float(number[0]) <= _MOST_FLOAT:
                raise fault("temperature must be a finite non-negative number")
        elif name in ("capture", "stop_capture"):
            text, flags = string_value(self._expect("string", f"expected string literal after {name}="))
            if flags or not _CAPTURE.fullmatch(text):
                raise fault("capture name must only contain letters, digits, '_', '-' and '.'")
        else:
            self._ending(name)

    def _ending(self, name: str) -> None:
        """Read the text, expression or terminal that ends a rule."""
        token = self._take()
        if token.kind == "string" and not string_value(token)[0]:
            raise fault(f"{name} must not be empty")
        if token.kind not in ("string", "expression") and not (token.kind == "name" and is_terminal(token.text)):
            raise fault(f"{name} terminal name must be uppercase")

    def _choice(self) -> Part:
        parts = [self._sequence()]
        while self._match_separator():
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Part("all", children=parts)

    def _match_separator(self) -> bool:
        start = self._at
        self._skip_newlines()
        if self._match("|"):
            return True
        if self._peek() not in (")", "]", "}"):
            self._at = start
        return False

    def _sequence(self) -> Part:
        parts = []
        while self._peek() not in _ENDS:
            parts.append(self._repetition())
        if self._match("->"):
            self._expect("name", "expected alias name after '->'")
        if self._peek() == "&":
            raise fault("terminal intersection '&' is not supported")
        if self._peek() == "if":
            raise fault("parametric %if conditions are not supported")
        return Part("all", children=parts)

    def _repetition(self) -> Part:
        self._work.spend()
        negated = self._match("~")
        atom = self._atom()
        if negated:
            atom = Part("not", children=[atom])
        low = high = 0
        if self._match("?") or self._match("*") or self._match("+"):
            return atom
        if self._match("~"):
            low = high = self._integer()
            if self._match(".."):
                high = self._integer()
        elif self._match("{"):
            low = high = 0 if self._peek() == "," else self._integer()
            if self._match(","):
                high = _MOST_COUNT if self._peek() == "}" else self._integer()
            self._expect("}", "expected '}' after repetition range")
        if high < low:
            raise fault("repetition end must be greater than or equal to start")
        return atom

    def _integer(self) -> int:
        text = self._expect("number", "expected integer").text
        if not re.fullmatch(r"[+-]?[0-9]+", text) or not 0 <= int(text) <= _MOST_COUNT:
            raise fault("invalid non-negative repetition count")
        return int(text)

    def _atom(self) -> Part:
        token = self._take()
        if token.kind in ("(", "["):
            self._depth += 1
            if self._depth > _DEEPEST:
                raise NotJudgedError("groups deep in one another")
            inner = self._choice()
            self._depth -= 1
            close = ")" if token.kind == "(" else "]"
            self._expect(close, f"expected '{close}' after group")
            return inner
        if token.kind == "string":
            return self._string(token)
        if token.kind == "lark":
            self._expect("{", "expected '{' after %lark")
            self._depth += 1
            if self._depth > _DEEPEST:
                raise NotJudgedError("grammars deep in one another")
            nested = self.document(nested=True)
            self._depth -= 1
            self._expect("}", "expected '}' after nested Lark grammar")
            return Part("lark", value=nested)
        if token.kind == "name":
            following = self._tokens[min(self._at + 1, len(self._tokens) - 1)].kind
            if self._peek() == "::" or (self._peek() == "{" and following not in (",", "number")):
                raise fault("parametric grammar is not supported")
            return Part("name", token.text.lstrip("?!"))
        if token.kind in _ATOMS:
            return Part(token.kind, token.text, token.value)
        raise fault("expected grammar expression")

    def _string(self, token: LarkToken) -> Part:
        text, flags = string_value(token)
        if not self._match(".."):
            return Part("string", text, flags)
        end, end_flags = string_value(self._expect("string", "expected string after '..'"))
        if flags or end_flags:
            raise fault("flags are not allowed on character ranges")
        return Part("range", text, end)

    def _peek(self) -> str:
        return self._tokens[min(self._at, len(self._tokens) - 1)].kind

    def _take(self) -> LarkToken:
        token = self._tokens[min(self._at, len(self._tokens) - 1)]
        self._at += 1
        return token

    def _match(self, kind: str) -> bool:
        if self._peek() != kind:
            return False
        self._at += 1
        return True

    def _expect(self, kind: str, text: str) -> LarkToken:
        token = self._take()
        if token.kind != kind:
            raise fault(text)
        return token

    def _skip_newlines(self) -> None:
        while self._match("newline"):
            pass
