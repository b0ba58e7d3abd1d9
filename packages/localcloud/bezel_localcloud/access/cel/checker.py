"""Type check of an expression of the Common Expression Language, before anything is evaluated. Pure.

Source: github.com/google/cel-spec, doc/langdef.md, "Gradual Type Checking": a part of the type `dyn` is checked when it
is evaluated, any other here.
"""

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
from bezel_localcloud.access.cel.types import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    Declarations,
    Type,
    common_type,
    is_key,
    list_of,
    map_of,
    overload,
)


def type_of(root: Node, declarations: Declarations) -> Type:
    """The type of an expression's value.

    Raises:
        CelError: It reads a variable or a field that is not declared, calls a function that is not supported, or one
            with arguments that it does not take.
    """
    return _Checker(declarations).type_of(root, {})


class _Checker:
    def __init__(self, declarations: Declarations) -> None:
        self._declarations = declarations

    def type_of(self, node: Node, local: dict[str, Type]) -> Type:
        """The type of a node's value; `local` has the variables of the macros around it."""
        match node:
            case Literal(value):
                return _literal(value)
            case Name(name):
                return self._variable(name, local)
            case Field(of, name) | Presence(of, name):
                field = _field(self.type_of(of, local), of, name)
                return BOOL if isinstance(node, Presence) else field
            case FunctionCall(name, arguments):
                self._check_supported(name)
                return self._call(name, [self.type_of(each, local) for each in arguments])
            case ListOf(items):
                return list_of(common_type([self.type_of(item, local) for item in items]))
            case MapOf(pairs):
                keys = [self.type_of(key, local) for key, _ in pairs]
                if wrong := [key for key in keys if not is_key(key)]:
                    raise CelError(f"a key of a map is a text, a whole number or a boolean: not {wrong[0]}")
                return map_of(common_type(keys), common_type([self.type_of(value, local) for _, value in pairs]))
            case Comprehension():
                return self._comprehension(node, local)

    def _variable(self, name: str, local: dict[str, Type]) -> Type:
        variable_type = local.get(name) or self._declarations.variables.get(name)
        if variable_type is None:
            raise CelError(f"undeclared reference to '{name}'")
        return variable_type

    def _check_supported(self, name: str) -> None:
        if name not in self._declarations.functions:
            is_function = name[-1].isalnum() and name != "in"
            raise CelError(f"localcloud does not evaluate {_spelling(name)}{'()' if is_function else ''}")

    def _call(self, name: str, arguments: list[Type]) -> Type:
        result = overload(name, arguments, self._declarations.functions)
        if result is None:
            types = ", ".join(map(str, arguments))
            raise CelError(f"no matching overload for '{_spelling(name)}' applied to ({types})")
        return result

    def _comprehension(self, node: Comprehension, local: dict[str, Type]) -> Type:
        of = self.type_of(node.of, local)
        if of.name not in {"list", "map", "dyn"}:
            raise CelError(f"{node.macro}() is of a list or a map: not of {of}")
        variables = local | {node.variable: of.parts[0] if of.parts else DYN}
        if node.condition is not None and self.type_of(node.condition, variables) not in {BOOL, DYN}:
            raise CelError(f"the condition of {node.macro}() is neither true nor false")
        if node.macro == "map" and node.result is not None:
            return list_of(self.type_of(node.result, variables))
        return list_of(variables[node.variable]) if node.macro == "filter" else BOOL


def _spelling(name: str) -> str:
    """The name of a call as it is written in an expression."""
    return "-" if name == "negate" else name.lstrip(".")


def _literal(value: object) -> Type:
    types: dict[type, Type] = {bool: BOOL, int: INT, float: DOUBLE, str: STRING}
    return types.get(type(value), NULL)


def _field(of: Type, node: Node, name: str) -> Type:
    if of == DYN:
        return DYN
    if of.name == "map" and of.parts[0] in {STRING, DYN}:
        return of.parts[1]
    for field, its_type in of.fields:
        if field == name:
            return its_type
    if of.fields and isinstance(node, Name):
        raise CelError(f"undeclared reference to '{node.name}.{name}'")
    raise CelError(f"the type {of} has no field '{name}'")
