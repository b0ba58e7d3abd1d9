"""Run the Common Expression Language's own conformance tests on localcloud's evaluator.

    .venv/bin/python -m tools.measure.cel_conformance FOLDER [--failures]

FOLDER has the files tests/simple/testdata/*.textproto of github.com/google/cel-spec, e.g. of the Go module
cel.dev/expr. Extensions of the language but that of texts are left out. A test that needs what localcloud refuses by
name (bytes, unsigned numbers, messages, other functions) is counted as not claimed; any other has to have the value,
the type or the error that the test expects. The exit code is 1 if one has not.
"""

import argparse
import math
import re
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from bezel_localcloud.access.cel import types
from bezel_localcloud.access.cel.checker import type_of
from bezel_localcloud.access.cel.evaluator import compile_tree
from bezel_localcloud.access.cel.parser import Bounds, parse
from bezel_localcloud.access.cel.syntax import CelError, FunctionCall, Node, walk
from bezel_localcloud.access.cel.times import SECOND, Duration, Timestamp
from bezel_localcloud.access.cel.values import EvaluationError, are_equal

Message = dict[str, list[Any]]
_WORD = re.compile(
    r"""\s+|\#[^\n]*|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')|(\[[A-Za-z][\w./]*\])|([-+\w.]+|[{}:\[\],;<>])"""
)
_ESCAPE = re.compile(rb"\\(?:([xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL)
_SIGNS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
_EXTENSIONS = ("optionals", "macros2")  # beside the files *_ext
_PRIMITIVES = {"BOOL": types.BOOL, "INT64": types.INT, "DOUBLE": types.DOUBLE, "STRING": types.STRING}
_TIMES = {"TIMESTAMP": types.TIMESTAMP, "DURATION": types.DURATION}
_OBJECTS: dict[str, type[Timestamp | Duration]] = {"[type.googleapis.com/google.protobuf.Timestamp]": Timestamp}
_OBJECTS |= {"[type.googleapis.com/google.protobuf.Duration]": Duration}


class OutOfScopeError(Exception):
    """A test of something that localcloud does not claim; the text names it."""


def read_message(text: str) -> Message:
    """A message in the text format of Protocol Buffers: the values of its fields, in lists.

    Raises:
        ValueError: It is none.
    """
    tokens: list[str] = []
    position = 0
    while position < len(text):
        match = _WORD.match(text, position)
        if match is None:
            raise ValueError(f"no word at {text[position : position + 40]!r}")
        tokens += [word for word in match.groups() if word]
        position = match.end()
    tokens.reverse()
    return _fields(tokens, "")


def _fields(tokens: list[str], end: str) -> Message:
    fields: Message = {}
    while tokens and tokens[-1] != end:
        name = tokens.pop()
        if name in {",", ";"}:
            continue
        if tokens[-1] == ":":
            tokens.pop()
        values = fields.setdefault(name, [])
        if tokens[-1] == "[":
            tokens.pop()
            while tokens[-1] != "]":
                values.append(_value(tokens))
                if tokens[-1] == ",":
                    tokens.pop()
            tokens.pop()
        else:
            values.append(_value(tokens))
    if end:
        tokens.pop()
    return fields


def _value(tokens: list[str]) -> Any:
    word = tokens.pop()
    if word == "{":
        return _fields(tokens, "}")
    if word[0] not in "\"'":
        return word
    parts = [word]
    while tokens and tokens[-1][0] in "\"'":
        parts.append(tokens.pop())
    return b"".join(_ESCAPE.sub(_unescape, part[1:-1].encode()) for part in parts).decode(errors="replace")


def _unescape(match: re.Match[bytes]) -> bytes:
    code, octal, sign = match[1], match[2], match[3]
    if code:
        return bytes([int(code[1:], 16)]) if code[:1] in b"xX" else chr(int(code[1:], 16)).encode()
    return bytes([int(octal, 8)]) if octal else _SIGNS.get(sign, sign)


def first(message: Message, *names: str) -> Any:
    """The first value of a field of a field ..., None without one."""
    value: Any = message
    for name in names:
        values = value.get(name) if isinstance(value, dict) else None
        if not values:
            return None
        value = values[0]
    return value


def value_of(message: Message) -> Any:
    """The value that a `cel.expr.Value` describes.

    Raises:
        OutOfScopeError: It is of a kind that localcloud does not have.
    """
    [(kind, [value])] = message.items()
    match kind:
        case "int64_value":
            return int(value, 0)
        case "double_value":
            return float(value)
        case "string_value":
            return value
        case "bool_value":
            return value == "true"
        case "null_value":
            return None
        case "list_value":
            return [value_of(item) for item in value.get("values", [])]
        case "map_value":
            entries = value.get("entries", [])
            return {value_of(first(entry, "key")): value_of(first(entry, "value")) for entry in entries}
        case "object_value":
            [(name, [parts])] = value.items()
            if name in _OBJECTS:
                seconds, nanos = int(first(parts, "seconds") or 0), int(first(parts, "nanos") or 0)
                return _OBJECTS[name](seconds * SECOND + nanos)
    raise OutOfScopeError(kind)


def type_in(message: Message) -> types.Type:
    """The type that a `cel.expr.Type` describes.

    Raises:
        OutOfScopeError: localcloud does not have it.
    """
    [(kind, [value])] = message.items()
    if kind == "primitive" and value in _PRIMITIVES:
        return _PRIMITIVES[value]
    if kind == "well_known" and value in _TIMES:
        return _TIMES[value]
    if kind == "dyn":
        return types.DYN
    if kind == "null":
        return types.NULL
    if kind == "list_type":
        return types.list_of(type_in(first(value, "elem_type")))
    if kind == "map_type":
        return types.map_of(type_in(first(value, "key_type")), type_in(first(value, "value_type")))
    raise OutOfScopeError(f"{kind} {value}" if isinstance(value, str) else kind)


def failure_of(test: Message) -> str:
    """What a test expects and does not get; "" if it passes.

    Raises:
        OutOfScopeError: It is a test of something that localcloud does not claim.
    """
    for field in ("disable_macros", "container", "unknown", "any_unknowns", "locale"):
        if field in test:
            raise OutOfScopeError(field)
    expected: Any = first(test, "value") or first(test, "typed_result", "result")
    wanted = True if expected is None else value_of(expected)
    has_error = "eval_error" in test or "any_eval_errors" in test
    bindings = {first(each, "key"): value_of(first(each, "value", "value")) for each in test.get("bindings", [])}
    try:
        tree = parse(first(test, "expr"), Bounds())
        if failure := _failure_of_type(test, tree):
            return failure
        if "check_only" in test:
            return ""
        value = compile_tree(tree)(bindings)
    except CelError as error:
        if "localcloud does not evaluate" in str(error):
            raise OutOfScopeError(str(error).removeprefix("localcloud does not evaluate ")) from None
        return "" if has_error else f"{wanted!r}, and it is refused: {error}"
    except EvaluationError as error:
        return "" if has_error else f"{wanted!r}, and it has no value: {error}"
    if has_error:
        return f"an error, and it is {value!r}"
    return "" if _are_same(value, wanted) else f"{wanted!r}, and it is {value!r}"


def _failure_of_type(test: Message, tree: Node) -> str:
    """The type that a test expects and does not get; "" if it passes.

    Raises:
        CelError: The expression has no type.
    """
    calls = (each for each in walk(tree) if isinstance(each, FunctionCall))
    if unknown := [call.name for call in calls if call.name not in types.STANDARD]:
        raise OutOfScopeError(f"{unknown[0]}()")
    variables = {}
    for declaration in test.get("type_env", []):
        if "ident" not in declaration or "." in first(declaration, "name"):
            raise OutOfScopeError("declared function or qualified name")
        variables[first(declaration, "name")] = type_in(first(declaration, "ident", "type"))
    deduced = first(test, "typed_result", "deduced_type")
    expected = type_in(deduced) if deduced else None
    if "disable_check" in test:
        return ""
    checked_type = type_of(tree, types.Declarations(variables, types.STANDARD))
    return f"the type {expected}, and it is {checked_type}" if expected and checked_type != expected else ""


def _are_same(value: Any, wanted: Any) -> bool:
    """Whether two values are equal and of one type; NaN is as good as NaN here."""
    if all(isinstance(each, float) and math.isnan(each) for each in (value, wanted)):
        return True
    return are_equal(value, wanted) and type(value) is type(wanted)


def main() -> int:
    """Print how many tests of each file pass; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split(":", maxsplit=1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--failures", action="store_true", help="print each test that fails, and what is not claimed")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for file in sorted(options.folder.glob("*.textproto")):
        if file.stem in _EXTENSIONS or (file.stem.endswith("_ext") and file.stem != "string_ext"):
            continue
        counts: Counter[str] = Counter()
        for section in read_message(file.read_text(encoding="utf-8")).get("section", []):
            for test in section.get("test", []):
                try:
                    failure = failure_of(test)
                except OutOfScopeError as error:
                    counts["not claimed"] += 1
                    reasons[str(error)] += 1
                    continue
                counts["failed" if failure else "passed"] += 1
                if failure and options.failures:
                    name = f"{file.stem}/{first(section, 'name')}/{first(test, 'name')}"
                    sys.stdout.write(f"  {name}: {first(test, 'expr')!r} should be {failure}\n")
        total += counts
        sys.stdout.write(f"{file.stem:<16} {_line(counts)}\n")
    sys.stdout.write(f"{'all':<16} {_line(total)}\n")
    if options.failures:
        sys.stdout.write("".join(f"  not claimed: {reason} ({count})\n" for reason, count in reasons.most_common()))
    return 1 if total["failed"] or not total["passed"] else 0


def _line(counts: Counter[str]) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in ("passed", "failed", "not claimed"))


if __name__ == "__main__":
    sys.exit(main())
