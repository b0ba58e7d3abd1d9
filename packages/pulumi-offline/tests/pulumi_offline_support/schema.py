"""Every input of every resource type of the installed Google provider, read from the text of its SDK.

Importing the SDK's hundred packages takes minutes of the fast tests; reading their text takes about a second.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

_CLASS = re.compile(
    r"^class (\w+Args):\n    def __init__\(__self__, \*?,?(.*?)\):\n(?:        \"\"\"(.*?)\"\"\")?",
    re.DOTALL | re.MULTILINE,
)
_PARAMETER = re.compile(r"^\s*(\w+): (.*?)(?: = None)?,?$", re.MULTILINE)
_BEFORE_A_PARAMETER = re.compile(r"\n\s*:param ")
_KIND_AND_NAME = re.compile(r".*? (\w+): ", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Property:
    """An input: `holder` is the class of arguments that it stands in, `kind` its type as the SDK writes it."""

    package: str
    holder: str
    name: str
    kind: str
    documentation: str

    @property
    def camel(self) -> str:
        """The name as the engine writes it."""
        return re.sub(r"_(\w)", lambda match: match[1].upper(), self.name)

    @property
    def nested_class(self) -> str:
        """The class of arguments inside, or ""."""
        match = re.search(r"'(\w+Args)'", self.kind)
        return match[1] if match else ""

    def __str__(self) -> str:
        return f"{self.package}.{self.holder.removesuffix('Args')}.{self.name}"

    def holding(self, sample: object) -> dict[str, object]:
        """Inputs with a value of this property's shape: the sample where it takes text, 1 or true where it does not."""
        value: object = sample
        if "_builtins.bool" in self.kind:
            value = True
        elif "_builtins.int" in self.kind or "_builtins.float" in self.kind:
            value = 1.0
        if self.nested_class:
            value = {"any": value}
        if "Mapping[str" in self.kind and not self.nested_class:
            value = {"any": value}
        return {self.camel: [value] if "Sequence[" in self.kind else value}


def _documentation(docstring: str) -> dict[str, str]:
    """What a docstring says of each parameter, by its name."""
    parts = _BEFORE_A_PARAMETER.split(f"\n{docstring}")[1:]
    named = [(match, part) for part in parts if (match := _KIND_AND_NAME.match(part))]
    return {match[1]: part[match.end() :] for match, part in named}


@functools.cache
def properties() -> tuple[Property, ...]:
    """All of them."""
    spec = find_spec("pulumi_gcp")
    assert spec is not None
    folder = Path(spec.origin or "").parent
    result = []
    for file in sorted(folder.glob("*/*.py")):
        if file.name.startswith(("get_", "outputs.py", "__init__.py")):
            continue
        # Behind the arguments the same stands again, as state and as outputs.
        text = file.read_text(encoding="utf-8").partition("\nclass _")[0]
        for holder, parameters, docstring in _CLASS.findall(text):
            texts = _documentation(docstring)
            result += [
                Property(file.parent.name, holder, name, kind, texts.get(name, ""))
                for name, kind in _PARAMETER.findall(parameters)
            ]
    return tuple(result)


@functools.cache
def _parents() -> dict[tuple[str, str], tuple[Property, ...]]:
    parents: dict[tuple[str, str], tuple[Property, ...]] = {}
    for each in properties():
        if each.nested_class:
            parents[each.package, each.nested_class] = (*parents.get((each.package, each.nested_class), ()), each)
    return parents


def whole(each: Property, inputs: dict[str, object], seen: tuple[str, ...] = ()) -> list[dict[str, object]]:
    """The inputs of whole resources that hold these inputs of a property's holder: one for each way to get there."""
    above = _parents().get((each.package, each.holder), ())
    if not above or each.holder in seen:
        return [inputs]
    return [
        made
        for parent in above
        for made in whole(
            parent, {parent.camel: [inputs] if "Sequence[" in parent.kind else inputs}, (*seen, each.holder)
        )
    ]
