"""Checks of a query's nodes: the types of arguments and operands, and labels of a matching. Pure.

Source: prometheus/prometheus, promql/parser/parse.go, checkAST (v0.316.0), whose words the errors have.
"""

from bezel_localcloud.services.monitoring.promql.signatures import (
    COMPARISONS,
    FUNCTIONS,
    SETS,
    UNSERVED_FUNCTIONS,
    type_of,
)
from bezel_localcloud.services.monitoring.promql.syntax import (
    Aggregation,
    Node,
    Operation,
    QueryError,
    QueryFunction,
    Type,
    UnservedPartError,
)


def check_type(node: Node, needed: Type, where: str, place: int) -> None:
    """Check the type of a node's value.

    Raises:
        QueryError: It has another one.
    """
    if (actual := type_of(node)) != needed:
        raise QueryError(f"1:{place}: parse error: expected type {needed} in {where}, got {actual}")


def check_call(call: QueryFunction, place: int) -> None:
    """Check the name and the arguments of a function.

    Raises:
        QueryError: There is no such function, or its arguments are others.
        UnservedPartError: It is not served.
    """
    name = call.function
    if name in UNSERVED_FUNCTIONS:
        raise UnservedPartError(f"the function {name}")
    if name not in FUNCTIONS:
        raise QueryError(f'1:{place}: parse error: unknown function with name "{name[:50]}"')
    signature, number = FUNCTIONS[name], len(call.arguments)
    most = len(signature.arguments)
    if not most - signature.optional <= number <= most:
        bound = f"at most {most}" if signature.optional and number > most else str(most - signature.optional)
        text = f'expected {bound} argument(s) in call to "{name}", got {number}'
        raise QueryError(f"1:{place}: parse error: {text}")
    for argument, needed in zip(call.arguments, signature.arguments, strict=False):
        check_type(argument, needed, f'call to function "{name}"', place)


def check_aggregation(node: Aggregation, place: int) -> None:
    """Check the operand and the parameter of an aggregation.

    Raises:
        QueryError: They have other types.
    """
    check_type(node.inner, "instant vector", "aggregation expression", place)
    if node.parameter is not None:
        check_type(node.parameter, "scalar", "aggregation parameter", place)


def check_operation(node: Operation, place: int) -> None:
    """Check the operands and modifiers of an operator.

    Raises:
        QueryError: They do not fit.
    """
    types = [type_of(node.left), type_of(node.right)]
    problem, scalars, matching = "", types.count("scalar"), node.matching
    if not set(types) <= {"scalar", "instant vector"}:
        problem = "binary expression must contain only scalar and instant vector types"
    elif node.returns_bool and node.operator not in COMPARISONS:
        problem = "bool modifier can only be used on comparison operators"
    elif node.operator in COMPARISONS and scalars == 2 and not node.returns_bool:
        problem = "comparisons between scalars must use BOOL modifier"
    elif node.operator in SETS and scalars:
        problem = f'set operator "{node.operator}" not allowed in binary scalar expression'
    elif matching is not None and scalars:
        problem = "vector matching only allowed between instant vectors"
    elif matching is not None and matching.many and node.operator in SETS:
        problem = f'no grouping allowed for "{node.operator}" operation'
    elif matching is not None and matching.on and (twice := set(matching.labels) & set(matching.include)):
        problem = f'label "{min(twice)}" must not occur in ON and GROUP clause at once'
    if problem:
        raise QueryError(f"1:{place}: parse error: {problem}")
