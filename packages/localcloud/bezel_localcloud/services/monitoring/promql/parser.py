"""Parser of queries: a text becomes a tree whose types fit. Pure.

Source: prometheus/prometheus, promql/parser/generated_parser.y and parse.go (v0.316.0), whose words the errors have.
A selector names its metric exactly, as Google's service demands
(cloud.google.com/stackdriver/docs/managed-prometheus/promql-differences, November 2026).
"""

from dataclasses import replace
from typing import Literal

from bezel_localcloud.services.monitoring.promql.checks import (
    check_aggregation,
    check_call,
    check_operation,
    check_type,
)
from bezel_localcloud.services.monitoring.promql.signatures import (
    AGGREGATIONS,
    PRECEDENCE,
    UNSERVED_AGGREGATIONS,
    type_of,
)
from bezel_localcloud.services.monitoring.promql.syntax import (
    Aggregation,
    Matcher,
    Matching,
    Negation,
    Node,
    Number,
    Operation,
    QueryError,
    QueryFunction,
    Selector,
    Subquery,
    Text,
    UnservedPartError,
)
from bezel_localcloud.services.monitoring.promql.tokens import QueryToken, read_tokens, seconds_of_duration, text_of

_DEEPEST = 50  # parts within each other, a chain of operators included
_NAME = "__name__"
_MATCHES = frozenset({"=", "!=", "=~", "!~"})


def parse(query: str) -> Node:
    """The tree of a query.

    Raises:
        QueryError: It is no query, or is larger than its bounds.
        UnservedPartError: It has a part that is not served.
    """
    parser = _QueryParser(read_tokens(query))
    if parser.next.kind == "end":
        raise QueryError("1:1: parse error: no expression found in input")
    tree = parser.expression(1)
    if parser.next.kind != "end":
        raise parser.syntax_error("in query")
    return tree


def parse_selector(text: str) -> Selector:
    """The selector of `match[]`.

    Raises:
        QueryError, UnservedPartError: As `parse`; it is another expression.
    """
    tree = parse(text)
    if not isinstance(tree, Selector) or tree.window is not None or tree.offset:
        raise QueryError(f"1:1: parse error: expected a series selector, got {text[:200]!r}")
    return tree


class _QueryParser:
    """Recursive descent over the tokens."""

    def __init__(self, tokens: list[QueryToken]) -> None:
        self._tokens, self._index, self._depth = tokens, 0, 0

    @property
    def next(self) -> QueryToken:
        return self._tokens[self._index]

    def syntax_error(self, where: str) -> QueryError:
        what = "end of input" if self.next.kind == "end" else f'"{self.next.text[:50]}"'
        return QueryError(f"1:{self.next.place}: parse error: unexpected {what} {where}")

    def _take(self) -> QueryToken:
        token = self.next
        self._index += token.kind != "end"
        return token

    def _takes(self, *texts: str) -> bool:
        """Whether the next token is one of some signs or words; it is taken then."""
        if self.next.kind in {"sign", "name"} and self.next.text.lower() in texts:
            self._index += 1
            return True
        return False

    def _need(self, text: str, where: str) -> None:
        if not self._takes(text):
            raise self.syntax_error(f'{where}, expected "{text}"')

    def expression(self, least: int) -> Node:
        """An expression of operators of a precedence and higher."""
        self._depth += 1
        if self._depth > _DEEPEST:
            raise QueryError(f"a query has at most {_DEEPEST} parts within each other here")
        node, chain = self._unary(), 0
        while self.next.kind in {"sign", "name"}:
            operator = self.next.text.lower()
            precedence = PRECEDENCE.get(operator, 0)
            if precedence < least:
                break
            place, chain = self._take().place, chain + 1
            if self._depth + chain > _DEEPEST:
                raise QueryError(f"a query has at most {_DEEPEST} parts within each other here")
            returns_bool = self._takes("bool")
            matching = self._matching()
            right = self.expression(precedence if operator == "^" else precedence + 1)
            if matching is None and "scalar" not in {type_of(node), type_of(right)}:
                matching = Matching()
            node = Operation(operator, node, right, matching, returns_bool)
            check_operation(node, place)
        self._depth -= 1
        return node

    def _unary(self) -> Node:
        if not (self.next.kind == "sign" and self.next.text in {"+", "-"}):
            return self._postfix(self._primary())
        sign = self._take()
        inner = self.expression(PRECEDENCE["^"])
        if type_of(inner) not in {"scalar", "instant vector"}:
            text = "unary expression only allowed on expressions of type scalar or instant vector, got"
            raise QueryError(f'1:{sign.place}: parse error: {text} "{type_of(inner)}"')
        if sign.text == "+":
            return inner
        return Number(-inner.value) if isinstance(inner, Number) else Negation(inner)

    def _matching(self) -> Matching | None:
        if not (on := self._takes("on")) and not self._takes("ignoring"):
            return None
        labels, many, include = self._labels(), "", tuple[str, ...]()
        if self.next.text.lower() in {"group_left", "group_right"}:
            many = self._take().text.lower().removeprefix("group_")
            include = self._labels() if self.next.text == "(" else ()
        side: Literal["left", "right", ""] = "left" if many == "left" else "right" if many else ""
        return Matching(on, labels, side, include)

    def _labels(self) -> tuple[str, ...]:
        self._need("(", "in grouping opts")
        labels = list[str]()
        while not self._takes(")"):
            if self.next.kind not in {"name", "text"} or ":" in self.next.text:
                raise self.syntax_error('in grouping opts, expected label or ")"')
            token = self._take()
            labels.append(text_of(token) if token.kind == "text" else token.text)
            if not self._takes(",") and self.next.text != ")":
                raise self.syntax_error('in grouping opts, expected "," or ")"')
        return tuple(labels)

    def _primary(self) -> Node:
        token = self.next
        if token.kind in {"number", "duration"}:
            text = self._take().text
            if token.kind == "duration":
                return Number(seconds_of_duration(text))
            return Number(float(int(text, 16)) if text[:2].lower() == "0x" else float(text))
        if token.kind == "text":
            return Text(text_of(self._take()))
        if self._takes("("):
            node = self.expression(1)
            self._need(")", "in paren expression")
            return node
        if token.kind == "name":
            return self._name_or_call(self._take())
        if token.text == "{":
            return self._selector("")
        raise self.syntax_error("in query" if token.kind == "end" else "at the begin of an expression")

    def _name_or_call(self, token: QueryToken) -> Node:
        word = token.text.lower()
        if word in {"inf", "nan"}:
            return Number(float(word))
        groups = self.next.text.lower() in {"(", "by", "without"}
        if word in UNSERVED_AGGREGATIONS and groups:
            raise UnservedPartError(f"the aggregation {word}")
        if word in AGGREGATIONS and groups:
            return self._aggregation(word, token.place)
        if self.next.text == "(":
            call = QueryFunction(token.text, self._arguments())
            check_call(call, token.place)
            return call
        return self._selector(token.text)

    def _arguments(self) -> tuple[Node, ...]:
        self._need("(", "in function call")
        arguments = list[Node]()
        while not self._takes(")"):
            arguments.append(self.expression(1))
            if not self._takes(",") and self.next.text != ")":
                raise self.syntax_error('in function call, expected "," or ")"')
        return tuple(arguments)

    def _aggregation(self, operator: str, place: int) -> Node:
        groups = self._groups()
        arguments = self._arguments()
        groups = groups or self._groups()
        needed = 2 if AGGREGATIONS[operator] else 1
        if len(arguments) != needed:
            text = f"wrong number of arguments for aggregate expression provided, expected {needed}"
            raise QueryError(f"1:{place}: parse error: {text}, got {len(arguments)}")
        without, labels = groups or (False, ())
        node = Aggregation(operator, arguments[-1], arguments[0] if needed == 2 else None, labels, without)
        check_aggregation(node, place)
        return node

    def _groups(self) -> tuple[bool, tuple[str, ...]] | None:
        """(whether without, labels) of an aggregation; None where it has no groups here."""
        if self._takes("by"):
            return False, self._labels()
        return (True, self._labels()) if self._takes("without") else None

    def _selector(self, name: str) -> Selector:
        place, matchers = self.next.place, list[Matcher]()
        names = [name] if name else []
        if self._takes("{"):
            while not self._takes("}"):
                matcher = self._matcher()
                if matcher.label != _NAME:
                    matchers.append(matcher)
                elif matcher.operator != "=":
                    raise UnservedPartError("a metric that is not named exactly, as Google's service does not either")
                else:
                    names.append(matcher.value)
                if not self._takes(",") and self.next.text != "}":
                    raise self.syntax_error('in label matching, expected "," or "}"')
        if len(names) > 1:
            raise QueryError(f'1:{place}: parse error: metric name must not be set twice: "{names[0]}" or "{names[1]}"')
        if not names or not names[0]:
            if all(_takes_empty(matcher) for matcher in matchers):
                text = "vector selector must contain at least one non-empty matcher"
                raise QueryError(f"1:{place}: parse error: {text}")
            raise UnservedPartError("a selector without the name of a metric, as Google's service does not either")
        return Selector(names[0], tuple(matchers))

    def _matcher(self) -> Matcher:
        if self.next.kind not in {"name", "text"}:
            raise self.syntax_error('in label matching, expected identifier or "}"')
        token = self._take()
        label = text_of(token) if token.kind == "text" else token.text
        if token.kind == "text" and self.next.text in {",", "}"}:
            return Matcher(_NAME, "=", label)
        if self.next.text not in _MATCHES:
            raise self.syntax_error("in label matching, expected label matching operator")
        operator = self._take().text
        if self.next.kind != "text":
            raise self.syntax_error("in label matching, expected string")
        return Matcher(label, operator, text_of(self._take()))

    def _postfix(self, node: Node) -> Node:
        """A node with its range, steps and offset."""
        while True:
            place = self.next.place
            if self._takes("["):
                window, step = self._range()
                if step is not None or not isinstance(node, Selector):
                    check_type(node, "instant vector", "subquery", place)
                    if step is None:
                        raise QueryError(f"1:{place}: parse error: ranges only allowed for vector selectors")
                    node = Subquery(node, window, step or None)
                    continue
                if node.window is not None or node.offset:
                    what = "offset modifiers before ranges" if node.offset else "several ranges"
                    raise QueryError(f"1:{place}: parse error: no {what} allowed")
                node = replace(node, window=window)
            elif self._takes("offset"):
                if not isinstance(node, Selector | Subquery) or node.offset:
                    text = "offset modifier must be preceded by an instant vector selector or range vector selector"
                    raise QueryError(f"1:{place}: parse error: {text} or a subquery")
                sign = -1.0 if self._takes("-") else 1.0
                node = replace(node, offset=sign * self._duration())
            elif self.next.text == "@":
                raise UnservedPartError("the modifier @")
            else:
                return node

    def _range(self) -> tuple[float, float | None]:
        """Seconds of a window, and of the step: None without steps, 0 for the default."""
        window, step = self._duration(), None
        if window <= 0:
            raise self.syntax_error("as duration must be greater than 0")
        if self._takes(":"):
            step = 0.0 if self.next.text == "]" else self._duration()
        self._need("]", "in subquery or range selector")
        return window, step

    def _duration(self) -> float:
        if self.next.kind not in {"duration", "number"}:
            raise self.syntax_error("in subquery or range, expected duration")
        return seconds_of_duration(self._take().text)


def _takes_empty(matcher: Matcher) -> bool:
    """Whether a matcher takes a series without its label; one with a pattern by its usual forms."""
    if matcher.operator == "=~":
        return matcher.value in {"", ".*"}
    return bool(matcher.value) is (matcher.operator != "=")
