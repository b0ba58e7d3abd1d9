"""Types of the Common Expression Language, and what each operator and function takes and makes. Pure.

Source: github.com/google/cel-spec, doc/langdef.md, "List of Standard Definitions"; `split`, `join`, `replace`, `trim`,
`lowerAscii` and `upperAscii` as in cel-go's extension for texts, `extract` as in IAM's reference of attributes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Type:
    """A type.

    Attributes:
        name: Its name, as errors show it.
        parts: Types of a list's elements, or of a map's keys and values.
        fields: Names and types of a record's fields.
    """

    name: str
    parts: tuple["Type", ...] = ()
    fields: tuple[tuple[str, "Type"], ...] = ()

    def __str__(self) -> str:
        return f"{self.name}({', '.join(map(str, self.parts))})" if self.parts else self.name


DYN = Type("dyn")
"""The type of a value that only its evaluation knows: it fits every other."""
BOOL, INT, DOUBLE, STRING, NULL = Type("bool"), Type("int"), Type("double"), Type("string"), Type("null")
TIMESTAMP, DURATION = Type("timestamp"), Type("duration")
ANY, OTHER = Type("A"), Type("B")
"""Parameters of signatures: each stands for one type within a call."""
_KEYS = frozenset({"bool", "int", "string", "dyn"})


def list_of(part: Type) -> Type:
    """The type of a list."""
    return Type("list", (part,))


def map_of(key: Type, value: Type) -> Type:
    """The type of a map."""
    return Type("map", (key, value))


def record(name: str, fields: Mapping[str, Type]) -> Type:
    """A type with these fields and no other."""
    return Type(name, fields=tuple(fields.items()))


def common_type(types: list[Type]) -> Type:
    """The one type of several values, `dyn` where they differ or are none."""
    return types[0] if types and all(each == types[0] for each in types) else DYN


def is_key(type_: Type) -> bool:
    """Whether values of a type can be keys of a map."""
    return type_.name in _KEYS


class Signature(NamedTuple):
    """What a function takes, and what it makes of that."""

    parameters: tuple[Type, ...]
    result: Type


Functions = Mapping[str, tuple[Signature, ...]]
"""Signatures by the names that calls have in a tree."""


@dataclass(frozen=True)
class Declarations:
    """What an expression may read and call.

    Attributes:
        variables: The variables with their types.
        functions: The operators, functions and methods; others are not supported.
    """

    variables: Mapping[str, Type]
    functions: Functions


def signatures(result: Type, *parameters: tuple[Type, ...]) -> tuple[Signature, ...]:
    """Signatures of one result."""
    return tuple(Signature(each, result) for each in parameters)


def overload(name: str, arguments: list[Type], functions: Functions) -> Type | None:
    """The type of a call's result, `dyn` where it depends on what is `dyn`; None if no signature fits."""
    results = [
        _substitute(signature.result, bound)
        for signature in functions[name]
        if (bound := _bind(signature.parameters, arguments)) is not None
    ]
    return common_type(results) if results else None


def _bind(parameters: tuple[Type, ...], arguments: list[Type]) -> dict[str, Type] | None:
    """The types that a signature's parameters stand for in a call; None if it does not fit."""
    bound: dict[str, Type] = {}
    if len(parameters) != len(arguments):
        return None
    return bound if all(_fits(*pair, bound) for pair in zip(parameters, arguments, strict=True)) else None


def _fits(parameter: Type, argument: Type, bound: dict[str, Type]) -> bool:
    if parameter in {ANY, OTHER}:
        bound_type = bound.setdefault(parameter.name, argument)
        if bound_type == argument:
            return True
        bound[parameter.name] = DYN
        return _fits(bound_type, argument, bound)
    if DYN in {parameter, argument}:
        return True
    if parameter.name != argument.name:
        return False
    return all(_fits(*pair, bound) for pair in zip(parameter.parts, argument.parts, strict=True))


def _substitute(result: Type, bound: dict[str, Type]) -> Type:
    if result in {ANY, OTHER}:
        return bound.get(result.name, DYN)
    return Type(result.name, tuple(_substitute(part, bound) for part in result.parts)) if result.parts else result


_TEXTS = {number: (STRING,) * number for number in range(1, 4)}
_ORDER = [(INT, INT), (DOUBLE, DOUBLE), (INT, DOUBLE), (DOUBLE, INT), (STRING, STRING), (BOOL, BOOL)]
ORDER_OF_TIMES = [(TIMESTAMP, TIMESTAMP), (DURATION, DURATION)]
_LIST, _MAP = list_of(ANY), map_of(ANY, OTHER)
ZONED = ("getDate", "getDayOfMonth", "getDayOfWeek", "getDayOfYear", "getFullYear", "getMonth")
"""Methods of a timestamp that take a time zone."""
ZONED_OR_SPAN = ("getHours", "getMinutes", "getSeconds", "getMilliseconds")
"""Methods of a timestamp that take a time zone, which a duration has too."""
OF_TIMESTAMPS = {f".{name}": signatures(INT, (TIMESTAMP,), (TIMESTAMP, STRING)) for name in (*ZONED, *ZONED_OR_SPAN)}
LOGIC: Functions = {
    "&&": signatures(BOOL, (BOOL, BOOL)),
    "||": signatures(BOOL, (BOOL, BOOL)),
    "!": signatures(BOOL, (BOOL,)),
}
SUMS_OF_TIMES: Functions = {
    "+": signatures(TIMESTAMP, (TIMESTAMP, DURATION), (DURATION, TIMESTAMP)),
    "-": signatures(TIMESTAMP, (TIMESTAMP, DURATION)),
}
STANDARD: Functions = {
    **LOGIC,
    "?:": signatures(ANY, (BOOL, ANY, ANY)),
    **dict.fromkeys(("==", "!="), signatures(BOOL, (ANY, ANY), (INT, DOUBLE), (DOUBLE, INT))),
    **dict.fromkeys(("<", "<=", ">", ">="), signatures(BOOL, *_ORDER, *ORDER_OF_TIMES)),
    "in": signatures(BOOL, (ANY, _LIST), (ANY, _MAP)),
    "[]": (Signature((_LIST, INT), ANY), Signature((_MAP, ANY), OTHER)),
    "negate": (Signature((INT,), INT), Signature((DOUBLE,), DOUBLE)),
    "+": (
        *(Signature((each, each), each) for each in (INT, DOUBLE, STRING, _LIST, DURATION)),
        *SUMS_OF_TIMES["+"],
    ),
    "-": (
        *(Signature((each, each), each) for each in (INT, DOUBLE, DURATION)),
        *SUMS_OF_TIMES["-"],
        Signature((TIMESTAMP, TIMESTAMP), DURATION),
    ),
    **dict.fromkeys(("*", "/"), (Signature((INT, INT), INT), Signature((DOUBLE, DOUBLE), DOUBLE))),
    "%": signatures(INT, (INT, INT)),
    **dict.fromkeys(("size", ".size"), signatures(INT, (STRING,), (_LIST,), (_MAP,))),
    "string": signatures(STRING, (STRING,), (INT,), (DOUBLE,), (BOOL,), (TIMESTAMP,), (DURATION,)),
    "int": signatures(INT, (INT,), (DOUBLE,), (STRING,), (TIMESTAMP,)),
    "double": signatures(DOUBLE, (DOUBLE,), (INT,), (STRING,)),
    "dyn": signatures(DYN, (ANY,)),
    "timestamp": signatures(TIMESTAMP, (STRING,), (INT,), (TIMESTAMP,)),
    "duration": signatures(DURATION, (STRING,), (DURATION,)),
    **OF_TIMESTAMPS,
    **{f".{name}": (*OF_TIMESTAMPS[f".{name}"], Signature((DURATION,), INT)) for name in ZONED_OR_SPAN},
    **dict.fromkeys((".startsWith", ".endsWith", ".contains", ".matches", "matches"), signatures(BOOL, _TEXTS[2])),
    **dict.fromkeys((".lowerAscii", ".upperAscii", ".trim"), signatures(STRING, _TEXTS[1])),
    ".extract": signatures(STRING, _TEXTS[2]),
    ".split": signatures(list_of(STRING), _TEXTS[2], (STRING, STRING, INT)),
    ".join": signatures(STRING, (list_of(STRING),), (list_of(STRING), STRING)),
    ".replace": signatures(STRING, _TEXTS[3], (STRING, STRING, STRING, INT)),
}
