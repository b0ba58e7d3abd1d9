"""Commands of operations as the table of commands has them, from the registry and the models of arguments.

The keys are those of `bezel_base.command_line.parser`. The operations of the benchmark have their commands in its
package; here is which operation each is.
"""

import json
import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo

from bezel.operations.arguments.model import Arguments, Option, Reach, Word
from bezel.operations.guides import guide_of
from bezel.operations.operation import Operation
from bezel.operations.registry import OPERATIONS, operation

_BENCHMARK = "bench"
_DEFAULT = " (default: "
_TYPES = {int: "int", float: "positive"}


def commands() -> str:
    """The table of the commands of all operations, as the file holds it."""
    made: dict[str, Any] = {}
    for each in OPERATIONS:
        *above, word = each.command.split()
        inside = made
        for part in above:
            inside = inside.setdefault("commands", {}).setdefault(part, {})
        inside = inside.setdefault("commands", {}).setdefault(word, {})
        is_own = above != [_BENCHMARK]
        inside.update(command(each) if is_own else {"operation": each.name})
    return json.dumps(made, indent=1, ensure_ascii=False) + "\n"


def command(each: Operation) -> dict[str, Any]:
    """The command of an operation."""
    model = each.arguments()
    made: dict[str, Any] = {"group": each.group} if each.group else {}
    guide = guide_of(each.name).text(lambda name: f"`{operation(name).command_line()}`")
    made |= {"help": each.help, "description": f"{each.help}. {guide}", "operation": each.name}
    if not each.needs_project:
        made["needs_project"] = "optional"
    if any(other.command.startswith(f"{each.command} ") for other in OPERATIONS):
        made["alone"] = True
    if any(place(field) == Word(place(field).metavar, dashed=True) for field in model.model_fields.values()):
        made["dashed_values"] = True
    if each.exit_codes:
        made["exit_codes"] = {str(int(code)): meaning for code, meaning in sorted(each.exit_codes.items())}
    made["options"] = ["json", "change"] if each.kind == "changing" else ["json"]
    made["arguments"] = dict(argument(name, field) for name, field in model.model_fields.items())
    return made


def argument(name: str, field: FieldInfo) -> tuple[str, dict[str, Any]]:
    """An argument: its name on the command line, and its keys."""
    where = place(field)
    keys: dict[str, Any] = {}
    shown = name
    if isinstance(where, Word):
        keys |= {} if field.is_required() else {"nargs": "?"}
    else:
        shown = where.flag or f"--{name.replace('_', '-')}"
        keys |= {"dest": name} if where.flag else {}
        keys |= {"required": True} if field.is_required() else {}
    keys |= value_keys(field.annotation)
    keys |= {"metavar": where.metavar} if where.metavar else {}
    return shown, keys | {"help": help_text(field, is_repeated=keys.get("action") == "append")}


def place(field: FieldInfo) -> Word | Option:
    """Where an argument stands on the command line."""
    places = [each for each in field.metadata if isinstance(each, Word | Option)]
    return places[0] if places else Word() if field.is_required() else Option()


def value_keys(annotation: Any) -> dict[str, Any]:
    """What the command line is to know of an argument's type; the model judges the value."""
    if get_origin(annotation) in {Union, types.UnionType}:
        annotation = next(each for each in get_args(annotation) if each is not type(None))
    if annotation is bool:
        return {"action": "store_true"}
    if get_origin(annotation) is tuple:
        return {"action": "append"}
    if get_origin(annotation) is Literal:
        return {"choices": list(get_args(annotation))}
    return {"type": _TYPES[annotation]} if annotation in _TYPES else {}


def help_text(field: FieldInfo, *, is_repeated: bool = False) -> str:
    """The description of an argument, with what the command line shows beside it: its default, and its repetition."""
    text, default_words, default = str(field.description).partition(_DEFAULT)
    value = field.get_default()
    if not default and not field.is_required() and value not in (None, False, "", ()):
        default_words, default = _DEFAULT, f"{value:g})" if isinstance(value, float) else f"{value})"
    return text + ("; repeatable" if is_repeated else "") + default_words + default


def arguments_inside(model: type[Arguments]) -> Iterator[str]:
    """Names of the arguments that a server of some stacks takes."""
    return (name for name, field in model.model_fields.items() if Reach.INSIDE in field.metadata)
