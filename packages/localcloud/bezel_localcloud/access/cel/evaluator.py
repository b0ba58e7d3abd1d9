"""Common Expression Language: parsed and checked once, evaluated as often as there are requests. Pure.

Attribute mappings and conditions of identity providers, and conditions of IAM bindings (`access.conditions`, which
declares less), are evaluated here. Supports texts, numbers, booleans, lists, maps and times with their operators; has()
and the macros; the functions that `types.STANDARD` lists. As in the language's definition, `&&` and `||` hide an error
of one side where the other side decides. Anything else is refused before it is evaluated.

An expression is bounded twice: parts within each other, words and signs when it is parsed; steps and the size of each
value when it is evaluated (`Meter`), counted before the work is done. `&&` and `||` do not hide that this ends it.

Source: github.com/google/cel-spec, doc/langdef.md.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bezel_localcloud.access.cel.checker import type_of
from bezel_localcloud.access.cel.functions import FUNCTIONS, check_constants
from bezel_localcloud.access.cel.operators import OPERATORS, no_overload
from bezel_localcloud.access.cel.parser import Bounds, parse
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
from bezel_localcloud.access.cel.types import DYN, STANDARD, Declarations
from bezel_localcloud.access.cel.values import EvaluationError, Meter, Scope, boolean

Expression = Callable[..., Any]  # (values of the variables by their names, the meter: one of its own without it)
_Evaluate = Callable[[Scope], Any]


def compile_expression(expression: str, variables: Iterable[str]) -> Expression:
    """An expression as a function of its variables, whose types only their values tell, and of the evaluation's meter.

    That function raises EvaluationError where the expression has no value, and TooMuchWorkError at a bound.

    Args:
        expression: The text.
        variables: Names of the variables that it may read.

    Raises:
        CelError: It is not understood, reads another variable, or has parts whose types do not fit.
    """
    tree = parse(expression, Bounds())
    type_of(tree, Declarations(dict.fromkeys(variables, DYN), STANDARD))
    return compile_tree(tree)


def compile_tree(tree: Node) -> Expression:
    """As `compile_expression`, of a tree whose types are checked.

    Raises:
        CelError: A constant is no time, or no time zone.
    """
    evaluate = _compile(tree)
    return lambda values, meter=None: evaluate(Scope(values, meter or Meter()))


def _compile(node: Node) -> _Evaluate:
    match node:
        case Literal(value):
            return lambda _: value
        case Name(name):
            return lambda scope: scope[name]
        case Field(of, name):
            return _field(_compile(of), name)
        case Presence(of, name):
            return _presence(_compile(of), name)
        case FunctionCall(name, arguments):
            return _call(name, arguments, [_compile(each) for each in arguments])
        case ListOf(items):
            return _list_of([_compile(item) for item in items])
        case MapOf(pairs):
            return _map_of([(_compile(key), _compile(value)) for key, value in pairs])
        case Comprehension():
            return _comprehension(node)


def _field(of: _Evaluate, name: str) -> _Evaluate:
    def evaluate(scope: Scope) -> Any:
        scope.meter.work.spend()
        value = of(scope)
        if isinstance(value, Mapping) and name in value:
            return value[name]
        raise EvaluationError(f"no such key: {name[:100]}")

    return evaluate


def _presence(of: _Evaluate, name: str) -> _Evaluate:
    def evaluate(scope: Scope) -> bool:
        scope.meter.work.spend()
        value = of(scope)
        if not isinstance(value, Mapping):
            raise EvaluationError(f"no such key: {name[:100]}")
        return name in value

    return evaluate


def _call(name: str, nodes: tuple[Node, ...], arguments: list[_Evaluate]) -> _Evaluate:
    if name in {"&&", "||"}:
        return _connective(*arguments, by=name == "||")
    if name == "!":
        return lambda scope: not boolean(arguments[0](scope))
    if name == "?:":
        test, chosen, other = arguments
        return lambda scope: chosen(scope) if boolean(test(scope)) else other(scope)
    if name in OPERATORS:
        return _operation(OPERATORS[name], arguments)
    try:
        constant = check_constants(name, [node.value if isinstance(node, Literal) else None for node in nodes])
    except EvaluationError as error:
        raise CelError(f"{name.lstrip('.')}(): {error}") from None
    return (lambda _: constant) if constant is not None else _function(FUNCTIONS[name], name.lstrip("."), arguments)


def _operation(operation: Callable[..., Any], arguments: list[_Evaluate]) -> _Evaluate:
    if len(arguments) == 1:
        [operand] = arguments
        return lambda scope: operation(scope.meter, operand(scope))
    left, right = arguments
    return lambda scope: operation(scope.meter, left(scope), right(scope))


def _connective(left: _Evaluate, right: _Evaluate, *, by: bool) -> _Evaluate:
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


def _function(function: Callable[..., Any], name: str, arguments: list[_Evaluate]) -> _Evaluate:
    def evaluate(scope: Scope) -> Any:
        values = [argument(scope) for argument in arguments]
        scope.meter.work.spend()
        try:
            return function(scope.meter, *values)
        except (TypeError, ValueError, AttributeError):
            raise no_overload(name) from None

    return evaluate


def _list_of(items: list[_Evaluate]) -> _Evaluate:
    def evaluate(scope: Scope) -> list[Any]:
        made = [item(scope) for item in items]
        scope.meter.makes(scope.meter.weight(made))
        return made

    return evaluate


def _map_of(pairs: list[tuple[_Evaluate, _Evaluate]]) -> _Evaluate:
    def evaluate(scope: Scope) -> dict[Any, Any]:
        made: dict[Any, Any] = {}
        for key_of, value_of in pairs:
            key = key_of(scope)
            if not isinstance(key, str | int):
                raise EvaluationError("a key that is neither a text nor a whole number nor a boolean")
            if key in made:  # to Python, 1 and True are the same one: such a map is refused too
                raise EvaluationError(f"the key {key!r:.100} is there twice")
            made[key] = value_of(scope)
        scope.meter.makes(scope.meter.weight(made))
        return made

    return evaluate


def _comprehension(node: Comprehension) -> _Evaluate:
    """A macro of a list's elements or a map's keys."""
    condition = _compile(node.condition) if node.condition is not None else lambda _: True
    loop = _Loop(node.variable, _compile(node.of), condition)
    result = _compile(node.result) if node.result is not None else lambda scope: scope[node.variable]
    match node.macro:
        case "exists" | "all":
            return lambda scope: _decide(loop, scope, by=node.macro == "exists")
        case "exists_one":
            return lambda scope: sum(boolean(condition(inner)) for inner in loop.scopes(scope)) == 1
    return lambda scope: _collect(loop, scope, result)


class _Loop(NamedTuple):
    """What a macro goes through: with `variable` each element of `of` in turn, asked for `condition`."""

    variable: str
    of: _Evaluate
    condition: _Evaluate

    def scopes(self, scope: Scope) -> Iterator[Scope]:
        """The scope of each element."""
        items = self.of(scope)
        if not isinstance(items, list | Mapping):
            raise EvaluationError("a list is needed")
        for item in items:
            scope.meter.work.spend()
            yield scope.having(self.variable, item)


def _decide(loop: _Loop, scope: Scope, *, by: bool) -> bool:
    """`exists` (decided by a true element) or `all` (by a false one); the errors of others are hidden then."""
    failure: EvaluationError | None = None
    for inner in loop.scopes(scope):
        try:
            if boolean(loop.condition(inner)) is by:
                return by
        except EvaluationError as error:
            failure = failure or error
    if failure:
        raise failure
    return not by


def _collect(loop: _Loop, scope: Scope, result: _Evaluate) -> list[Any]:
    """`map` or `filter`: the results of the elements that fulfil the condition."""
    made, weight, meter = [], 1, scope.meter
    for inner in loop.scopes(scope):
        if boolean(loop.condition(inner)):
            made.append(result(inner))
            weight += meter.weight(made[-1])
            meter.check_size(weight)
    return made
