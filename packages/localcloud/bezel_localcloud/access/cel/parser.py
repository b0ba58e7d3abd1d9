"""Parser of the Common Expression Language: a text becomes a tree. Pure.

Source: github.com/google/cel-spec, doc/langdef.md, "Syntax" and "Macros". Messages, optional fields and names that
begin with a dot are refused by name.
"""

from dataclasses import dataclass

from bezel_localcloud.access.cel.syntax import (
    CelError,
    Comprehension,
    Field,
    FunctionCall,
    ListOf,
    Literal,
    MapOf,
    Name,
    Node,
    Presence,
)
from bezel_localcloud.access.cel.tokens import Token, number_of, read_tokens, text_of

_PRECEDENCE = {"||": 0, "&&": 1, "==": 2, "!=": 2, "<": 2, "<=": 2, ">": 2, ">=": 2, "in": 2}
_PRECEDENCE |= {"+": 3, "-": 3, "*": 4, "/": 4, "%": 4}
_LITERALS = {"true": True, "false": False, "null": None}
_RESERVED = frozenset(
    {"as", "break", "const", "continue", "else", "for", "function", "if", "import", "in", "let", "loop", "namespace"}
    | {"package", "return", "var", "void", "while"}
)
_MACROS = {"all": {2}, "exists": {2}, "exists_one": {2}, "filter": {2}, "map": {2, 3}}
"""Macros, with the numbers of their arguments."""
_END = Token("", "the end")


@dataclass(frozen=True)
class Bounds:
    """How large an expression may be.

    Attributes:
        longest: Characters.
        most_tokens: Words and signs: a chain of so many operators is as many nested calls when it is evaluated.
        deepest: Parts within each other; Python's own stack bears several times as many.
    """

    longest: int = 4096  # source: attributeCondition in the document of iam v1
    most_tokens: int = 500
    deepest: int = 40


def parse(expression: str, bounds: Bounds) -> Node:
    """The tree of an expression.

    Raises:
        CelError: It is not the language's, has a part that is not supported, or is larger than its bounds.
    """
    return _ExpressionParser(read_tokens(expression, bounds.longest, bounds.most_tokens), bounds.deepest).tree()


class _ExpressionParser:
    """Recursive descent over the tokens."""

    def __init__(self, tokens: list[Token], deepest: int) -> None:
        self._tokens, self._position, self._depth, self._deepest = tokens, 0, 0, deepest

    def tree(self) -> Node:
        node = self._expression()
        if self._next != _END:
            raise self._error()
        return node

    def _expression(self) -> Node:
        self._depth += 1
        if self._depth > self._deepest:
            raise CelError(f"more than {self._deepest} nested parts")
        node = self._binary(0)
        if self._accept("?"):
            chosen = self._binary(0)
            self._expect(":")
            node = FunctionCall("?:", (node, chosen, self._expression()))
        self._depth -= 1
        return node

    def _binary(self, lowest: int) -> Node:
        left = self._unary()
        while _PRECEDENCE.get(sign := self._operator(), -1) >= lowest:
            self._position += 1
            left = FunctionCall(sign, (left, self._binary(_PRECEDENCE[sign] + 1)))
        return left

    def _operator(self) -> str:
        """The sign or the word `in` that comes next; "" where neither does."""
        kind, text = self._next
        return text if kind == "sign" or (kind, text) == ("word", "in") else ""

    def _unary(self) -> Node:
        sign = next((sign for sign in "!-" if self._accept(sign)), "")
        if not sign:
            return self._member(self._primary())
        count = 1
        while self._accept(sign):
            count += 1
        if sign == "-" and self._next.kind == "number":
            count -= 1
            node = self._member(Literal(number_of("-" + self._take().text)))
        else:
            node = self._member(self._primary())
        for _ in range(count if count < 2 else 2 - count % 2):  # two of them are as good as four
            node = FunctionCall("!" if sign == "!" else "negate", (node,))
        return node

    def _member(self, node: Node) -> Node:
        while True:
            if self._accept("."):
                name = self._word()
                node = self._method(node, name) if self._accept("(") else Field(node, name)
            elif self._accept("["):
                if self._next.text == "?":
                    raise CelError("localcloud does not evaluate optional elements")
                node = FunctionCall("[]", (node, self._expression()))
                self._expect("]")
            elif self._next.text == "{" and isinstance(node, Name | Field):
                raise CelError("localcloud does not evaluate messages")
            else:
                return node

    def _method(self, of: Node, name: str) -> Node:
        arguments = self._list(")")
        if name not in _MACROS:
            return FunctionCall(f".{name}", (of, *arguments))
        if len(arguments) not in _MACROS[name]:
            raise CelError(f"localcloud does not evaluate {name}() with {len(arguments)} arguments")
        variable, *parts = arguments
        if not isinstance(variable, Name):
            raise CelError(f"the first argument of {name}() is a variable")
        if name == "map":
            return Comprehension(name, of, variable.name, parts[0] if len(parts) > 1 else None, parts[-1])
        return Comprehension(name, of, variable.name, parts[0], None)

    def _primary(self) -> Node:
        token = self._take()
        kind, text = token
        if kind in {"text", "raw"}:
            return Literal(text_of(token))
        if kind == "number":
            return Literal(number_of(text))
        if text == "(":
            node = self._expression()
            self._expect(")")
            return node
        if text == "[":
            return ListOf(tuple(self._list("]")))
        if text == "{":
            return self._map()
        if text == ".":
            raise CelError("localcloud does not evaluate names that begin with a dot")
        if kind != "word":
            self._position -= 1
            raise self._error()
        return self._name_or_call(text)

    def _name_or_call(self, name: str) -> Node:
        if name in _LITERALS:
            return Literal(_LITERALS[name])
        if name in _RESERVED:
            raise CelError(f"'{name}' is a reserved word")
        if not self._accept("("):
            return Name(name)
        arguments = self._list(")")
        if name != "has":
            return FunctionCall(name, tuple(arguments))
        if len(arguments) != 1 or not isinstance(arguments[0], Field):
            raise CelError("has() takes one field, such as has(assertion.environment)")
        return Presence(arguments[0].of, arguments[0].name)

    def _map(self) -> Node:
        pairs: list[tuple[Node, Node]] = []
        while not self._accept("}"):
            if pairs:
                self._expect(",")
                if self._accept("}"):
                    break
            key = self._expression()
            self._expect(":")
            pairs.append((key, self._expression()))
        return MapOf(tuple(pairs))

    def _list(self, end: str) -> list[Node]:
        items: list[Node] = []
        while not self._accept(end):
            if items:
                self._expect(",")
                if end == "]" and self._accept(end):
                    break
            items.append(self._expression())
        return items

    @property
    def _next(self) -> Token:
        return self._tokens[self._position] if self._position < len(self._tokens) else _END

    def _take(self) -> Token:
        token = self._next
        self._position += 1
        return token

    def _accept(self, sign: str) -> bool:
        if self._next == Token("sign", sign):
            self._position += 1
            return True
        return False

    def _expect(self, sign: str) -> None:
        if not self._accept(sign):
            raise CelError(f"expected '{sign}' at '{self._next.text[:40]}'")

    def _word(self) -> str:
        kind, text = self._next
        if kind == "sign" and text in {"`", "?"}:
            raise CelError(f"localcloud does not evaluate {'quoted names' if text == '`' else 'optional fields'}")
        if kind != "word" or text in _LITERALS or text == "in":
            raise self._error()
        self._position += 1
        return text

    def _error(self) -> CelError:
        return CelError(f"syntax error at '{self._next.text[:40]}'")
