"""Common Expression Language, as far as attribute mappings and conditions of identity providers use it. Pure.

Supports texts, numbers, booleans, lists and maps; selection, indexes, `in`, comparisons, arithmetic, `&&`, `||`, `!`,
`? :`; has(), size(), string(), int(); the functions of texts in functions.py; exists, all, filter and map of lists.
As in the language's definition, `&&` and `||` hide an error of one side where the other side decides. Anything else is
refused when an expression is parsed. Conditions of IAM policies, of which less is allowed, are in access/conditions.py.

An expression is bounded twice: parts within each other, words and signs when it is parsed; steps and the size of each
value when it is evaluated (`Meter`), counted before the work is done. `&&` and `||` do not hide that this ends it.

Source: github.com/google/cel-spec, doc/langdef.md; `extract` as in IAM's reference of attributes for conditions.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bezel_localcloud.access.cel.functions import FUNCTIONS, METHODS, OPERATIONS
from bezel_localcloud.access.cel.values import EvaluationError, Meter, Scope, boolean, in_range, number, same_kind

Node = Callable[[Scope], Any]
Expression = Callable[..., Any]  # (values of the variables by their names, the meter: one of its own without it)

_TOKEN = re.compile(
    r"""\s*(?:(?P<text>[rR]?"(?:[^"\\\n]|\\.)*"|[rR]?'(?:[^'\\\n]|\\.)*')|(?P<number>[0-9]+(?:\.[0-9]+)?)"""
    r"""|(?P<word>[A-Za-z_]\w*)|(?P<sign>&&|\|\||[=!<>]=|[-+*/%!<>()\[\]{}.,:?]))""",
    re.ASCII,
)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_LEVELS = (("||",), ("&&",), ("==", "!=", "<=", ">=", "<", ">", "in"), ("+", "-"), ("*", "/", "%"))
_LONGEST = 4096  # characters; source: attributeCondition in the document of iam v1
_DEEPEST = 40  # nested parts of an expression; Python's own stack bears several times as many
_MOST_TOKENS = 500  # a chain of so many operators is as many nested calls when it is evaluated
_LONGEST_NUMBER = 19  # digits of a whole number of 64 bits
_LITERALS = {"true": True, "false": False, "null": None}


class CelError(Exception):
    """An expression that cannot be parsed, or a part of one that is not supported; the text names it."""


def parsed(expression: str, roots: Sequence[str]) -> Expression:
    """Return an expression as a function of its variables and of the meter of the evaluation.

    That function raises EvaluationError where the expression has no value, and TooMuchWorkError at a bound.

    Args:
        expression: The text.
        roots: Names of the variables that it may read.

    Raises:
        CelError: It is not understood, or reads another variable.
    """
    parser = _Parser(expression, roots)
    node = parser.whole()
    parser.end()

    def evaluate(values: Mapping[str, Any], meter: Meter | None = None) -> Any:
        return node(Scope(values, meter or Meter()))

    return evaluate


class _Parser:
    """Recursive descent over the tokens."""

    def __init__(self, expression: str, roots: Sequence[str]) -> None:
        if len(expression) > _LONGEST:
            raise CelError(f"an expression of more than {_LONGEST} characters")
        self._tokens: list[tuple[str, str]] = []
        self._known, self._depth = list(roots), 0
        position, text = 0, expression.rstrip()
        while position < len(text):
            match = _TOKEN.match(text, position)
            if match is None:
                raise CelError(f"syntax error at '{text[position : position + 40]}'")
            self._tokens.append((str(match.lastgroup), match[str(match.lastgroup)]))
            if len(self._tokens) > _MOST_TOKENS:
                raise CelError(f"localcloud does not evaluate more than {_MOST_TOKENS} words and signs")
            position = match.end()

    def end(self) -> None:
        if self._tokens:
            raise CelError(f"syntax error at '{self._tokens[0][1]}'")

    def whole(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise CelError(f"more than {_DEEPEST} nested parts")
        test = self._binary(0)
        if self._accept("?"):
            chosen = self._binary(0)
            self._expect(":")
            other = self.whole()
            node: Node = _choice(test, chosen, other)
        else:
            node = test
        self._depth -= 1
        return node

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while sign := next((sign for sign in _LEVELS[level] if self._accept(sign)), ""):
            left = _applied(sign, left, self._binary(level + 1))
        return left

    def _unary(self) -> Node:
        signs = []
        while sign := next((sign for sign in "!-" if self._accept(sign)), ""):
            signs.append(sign)
        node = self._member()
        for sign in signs:
            node = _negated(node) if sign == "!" else _minus(node)
        return node

    def _member(self) -> Node:
        node = self._primary()
        while True:
            if self._accept("."):
                name = self._word()
                node = self._method(node, name) if self._accept("(") else _Select(node, name)
            elif self._accept("["):
                node = _Select(node, self.whole())
                self._expect("]")
            else:
                return node

    def _method(self, of: Node, name: str) -> Node:
        if name in _MACROS:
            variable = self._word()
            self._expect(",")
            self._known.append(variable)
            body = self.whole()
            self._known.pop()
            self._expect(")")
            return _macro(name, of, variable, body)
        if name not in METHODS:
            raise CelError(f"localcloud does not evaluate {name}()")
        return _called(METHODS[name], name, [of, *self._list(")")])

    def _primary(self) -> Node:
        kind, text = self._next()
        if kind == "text":
            literal = _text(text)
            return lambda _: literal
        if kind == "number":
            amount = _number(text)
            return lambda _: amount
        if text == "(":
            node = self.whole()
            self._expect(")")
            return node
        if text == "[":
            return _list_of(self._list("]"))
        if text == "{":
            return self._map()
        if kind != "word":
            raise CelError(f"syntax error at '{text}'")
        return self._named(text)

    def _named(self, name: str) -> Node:
        if name in _LITERALS:
            return lambda _: _LITERALS[name]
        if self._accept("("):
            arguments = self._list(")")
            if name == "has":
                return _present(arguments)
            if name not in FUNCTIONS:
                raise CelError(f"localcloud does not evaluate {name}()")
            return _called(FUNCTIONS[name], name, arguments)
        if name not in self._known:
            raise CelError(f"undeclared reference to '{name}'")
        return lambda scope: scope[name]

    def _map(self) -> Node:
        pairs: list[tuple[Node, Node]] = []
        while not self._accept("}"):
            if pairs:
                self._expect(",")
            key = self.whole()
            self._expect(":")
            pairs.append((key, self.whole()))
        return _map_of(pairs)

    def _list(self, end: str) -> list[Node]:
        items: list[Node] = []
        while not self._accept(end):
            if items:
                self._expect(",")
            items.append(self.whole())
        return items

    def _accept(self, token: str) -> bool:
        if self._tokens and self._tokens[0] in {("sign", token), ("word", token)}:
            del self._tokens[0]
            return True
        return False

    def _expect(self, token: str) -> None:
        if not self._accept(token):
            raise CelError(f"expected '{token}' at '{self._tokens[0][1] if self._tokens else 'the end'}'")

    def _next(self) -> tuple[str, str]:
        if not self._tokens:
            raise CelError("syntax error at the end")
        return self._tokens.pop(0)

    def _word(self) -> str:
        kind, text = self._next()
        if kind != "word":
            raise CelError(f"syntax error at '{text}'")
        return text


class _Select:
    """A field or an element of a value; `has` asks for it without reading it."""

    def __init__(self, of: Node, key: "str | Node") -> None:
        self._of, self._key, self.named = of, key, isinstance(key, str)

    def __call__(self, scope: Scope) -> Any:
        of, key = self._parts(scope)
        if isinstance(of, Mapping) and same_kind(key, ""):
            if key not in of:
                raise EvaluationError(f"no such key: {key[:100]}")
            return of[key]
        if isinstance(of, list) and isinstance(key, int) and same_kind(key, 0) and 0 <= key < len(of):
            return of[key]
        raise EvaluationError("no such element")

    def present(self, scope: Scope) -> bool:
        of, key = self._parts(scope)
        if not isinstance(of, Mapping):
            raise EvaluationError(f"no such key: {key}")
        return key in of

    def _parts(self, scope: Scope) -> tuple[Any, Any]:
        scope.meter.work.spend()
        return self._of(scope), self._key if isinstance(self._key, str) else self._key(scope)


def _present(arguments: list[Node]) -> Node:
    if len(arguments) != 1 or not isinstance(arguments[0], _Select) or not arguments[0].named:
        raise CelError("has() takes one field, such as has(assertion.environment)")
    return arguments[0].present


def _choice(test: Node, chosen: Node, other: Node) -> Node:
    return lambda scope: chosen(scope) if boolean(test(scope)) else other(scope)


def _negated(node: Node) -> Node:
    return lambda scope: not boolean(node(scope))


def _minus(node: Node) -> Node:
    return lambda scope: in_range(-number(node(scope)))


def _applied(sign: str, left: Node, right: Node) -> Node:
    if sign in {"&&", "||"}:
        return _decided(left, right, by=sign == "||")
    operation = OPERATIONS[sign]
    return lambda scope: operation(scope.meter, left(scope), right(scope))


def _decided(left: Node, right: Node, *, by: bool) -> Node:
    """A conjunction (decided by a false side) or a disjunction (by a true one); the other side's error is hidden."""

    def evaluate(scope: Scope) -> bool:
        scope.meter.work.spend()
        failure: EvaluationError | None = None
        for side in (left, right):
            try:
                if boolean(side(scope)) is by:
                    return by
            except EvaluationError as error:
                failure = failure or error
        if failure:
            raise failure
        return not by

    return evaluate


def _called(function: Callable[..., Any], name: str, arguments: list[Node]) -> Node:
    def evaluate(scope: Scope) -> Any:
        given = [argument(scope) for argument in arguments]
        scope.meter.work.spend()
        try:
            return function(scope.meter, *given)
        except (TypeError, ValueError, AttributeError):
            raise EvaluationError(f"no matching overload for '{name}'") from None

    return evaluate


def _list_of(items: list[Node]) -> Node:
    def evaluate(scope: Scope) -> list[Any]:
        made = [item(scope) for item in items]
        scope.meter.makes(scope.meter.weight(made))
        return made

    return evaluate


def _map_of(pairs: list[tuple[Node, Node]]) -> Node:
    def evaluate(scope: Scope) -> dict[Any, Any]:
        made = {}
        for key_node, value in pairs:
            key = key_node(scope)
            if not isinstance(key, str | int):
                raise EvaluationError("a key that is neither a text nor a whole number nor a boolean")
            made[key] = value(scope)
        scope.meter.makes(scope.meter.weight(made))
        return made

    return evaluate


def _macro(name: str, of: Node, variable: str, body: Node) -> Node:
    """A macro of a list's elements or a map's keys."""

    def evaluate(scope: Scope) -> Any:
        items = of(scope)
        if not isinstance(items, list | Mapping):
            raise EvaluationError("a list is needed")
        made, weight, meter = [], 1, scope.meter
        for item in items:
            meter.work.spend()
            value = body(scope.having(variable, item))
            if name in {"exists", "all"}:
                if boolean(value) is (name == "exists"):
                    return name == "exists"
            elif name == "map" or boolean(value):
                kept = value if name == "map" else item
                weight += meter.weight(kept)
                meter.check_size(weight)
                made.append(kept)
        return made if name in {"map", "filter"} else name == "all"

    return evaluate


def _number(text: str) -> int | float:
    if "." in text:
        return float(text)
    if len(text) > _LONGEST_NUMBER or int(text) >= 2**63:
        raise CelError(f"the whole number {text[:40]} has more than 64 bits")
    return int(text)


def _text(literal: str) -> str:
    raw = literal[0] in "rR"
    inner = literal[2:-1] if raw else literal[1:-1]
    return inner if raw else _ESCAPE.sub(_unescaped, inner)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    if len(code) == 1:
        return _ESCAPED.get(code, code)
    point = int(code[1:], 16)
    if 0xD800 <= point < 0xE000:
        raise CelError(f"\\{code} is half of a pair of surrogates, and no character")
    return chr(point)


_MACROS = frozenset({"exists", "all", "filter", "map"})
