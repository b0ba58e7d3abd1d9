"""Types of the services' arguments, generated from `Settings`: services/bezel_services/settings/types.py.

A type checker and an editor then know each key, its type and its meaning. Run with `--write` to write the file; a test
holds it.
"""

from __future__ import annotations

import subprocess
import sys
import types
import typing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, WithJsonSchema

from bezel.planner.base import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

ROOT = Path(__file__).parents[3]
PLACE = ROOT / "services/bezel_services/settings/types.py"
# Terms of leases and of their network: a service on Cloud Run has none.
OF_LEASES = ("lease", "network")
# Names that may be outputs of other resources: see bezel_services.settings.late_inputs.
INPUTS = {("Weights", "bucket"), ("Vpc", "network"), ("Vpc", "subnetwork")}
HEAD = '''"""Types of the services' arguments: the settings of a stack file.

Made by `python -m tools.docs.planner.service_settings --write` from bezel/planner/base/settings.py.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypedDict

from pulumi import Input
'''


def types_text() -> str:
    """The whole module."""
    sections = list(dict.fromkeys(_sections(settings.Settings)))
    parts = [_class(each.__name__, each.__doc__ or "", each.model_fields) for each in sections]
    shared = {name: field for name, field in settings.Settings.model_fields.items() if name not in OF_LEASES}
    of_leases = {name: settings.Settings.model_fields[name] for name in OF_LEASES}
    parts.append(_class("ServiceSettings", "Settings of `VllmService`.", shared))
    parts.append(_class("LeasedServiceSettings", "Settings of `LeasedVllmService`.", of_leases, "ServiceSettings"))
    return _format("\n\n".join([HEAD, *parts]))


def _format(text: str) -> str:
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(PLACE), "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout


def _sections(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    """The models below a model, the innermost first."""
    for field in model.model_fields.values():
        for kind in _models_in(field.annotation):
            yield from _sections(kind)
            yield kind


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _models_in(part)


def _class(name: str, doc: str, fields: dict[str, FieldInfo], base: str = "TypedDict") -> str:
    lines = [f"class {name}({base}, total=False):", f'    """{doc}"""', ""]
    for key, field in fields.items():
        text = _type_text(field.annotation, field.metadata)
        text = text.replace("str", "Input[str]") if (name, key) in INPUTS else text
        lines.append(f"    {key}: {f'Required[{text}]' if field.is_required() else text}")
        lines += _comment(field.description or "")
    return "\n".join(lines) + "\n"


def _comment(description: str) -> list[str]:
    """The description below its key, in lines of at most 120 characters."""
    first = description[0] if description[1:2].isupper() else description[0].upper()  # as in vLLM
    text, lines = f'"""{first}{description[1:]}."""', [""]
    for word in text.split():
        if len(f"    {lines[-1]} {word}") > 120:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return [f"    {line}" for line in lines]


def _type_text(annotation: Any, metadata: list[Any] | tuple[Any, ...] = ()) -> str:
    if any(isinstance(each, WithJsonSchema) for each in metadata):
        return "str"  # a duration or an amount of memory, as text
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type_text(arguments[0], arguments[1:])
    if origin is Literal:
        return f"Literal[{', '.join(repr(each) for each in arguments)}]".replace("'", '"')
    if origin is tuple:
        return f"Sequence[{_type_text(arguments[0])}]"
    if origin is dict:
        return f"Mapping[str, {_type_text(arguments[1])}]"
    if origin in {typing.Union, types.UnionType}:
        return " | ".join(_type_text(each) for each in arguments)
    if annotation is type(None):
        return "None"
    return "Any" if annotation is Any else str(annotation.__name__)


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("usage: python -m tools.docs.planner.service_settings --write")
    PLACE.write_text(types_text())
