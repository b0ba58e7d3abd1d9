"""A resource type in the installed SDK: its class, the classes of nested arguments, their documentation."""

import functools
import importlib
import inspect
import re
import warnings
from typing import Any

from bezel_pulumi_offline.lifecycle.fields import Fields
from bezel_pulumi_offline.resources import TYPES


def short(token: str) -> str:
    """cloudrunv2.Service for gcp:cloudrunv2/service:Service."""
    return re.sub(r"^gcp:(\w+)/\w+:(\w+)$", r"\1.\2", token)


def snake(name: str) -> str:
    """The SDK's spelling of a property."""
    return re.sub(r"[A-Z]", lambda match: "_" + match[0].lower(), name)


def _module_name(name: str) -> str:
    """The SDK's module of a type: iam_member for iAMMember, url_map for uRLMap."""
    spelled = name[0].upper() + name[1:] if name[1].isupper() else name
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", spelled).lower()


def arguments_of(token: str, form: str = "{}Args") -> tuple[Any, Any]:
    """The class of a type's arguments (or, as `_{}State`, of its state) and the module of those nested in it."""
    match = re.fullmatch(r"gcp:(\w+)/(\w+):(\w+)", token)
    assert match
    package = f"pulumi_gcp.{match[1]}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the SDK's own, at import
        # A package loads at its first use. If that is the import of one of its modules, the package stays without the
        # classes of that module, for every later test in this process.
        getattr(importlib.import_module(package), match[3])
        module = importlib.import_module(f"{package}.{_module_name(match[2])}")
        return getattr(module, form.format(match[3])), importlib.import_module(f"{package}._inputs")


def parameters(arguments: Any) -> dict[str, Any]:
    """The properties of a class of arguments by name, with what tells their types."""
    by_name = dict(inspect.signature(arguments.__init__).parameters)
    del by_name["__self__"]
    return by_name


def nested_class(parameter: Any, inputs: Any) -> Any:
    """The class of the arguments inside a property, or None."""
    names = re.findall(r"ForwardRef\('(\w+Args)'|\b(\w+Args)\b", str(parameter))
    return next((getattr(inputs, name) for pair in names for name in pair if name and hasattr(inputs, name)), None)


@functools.cache
def documentation(token: str) -> dict[str, str]:
    """The SDK's words on each property, by its path in Pulumi's spelling."""
    arguments, inputs = arguments_of(token)
    return _texts_of_fields(TYPES[token].fields, arguments, inputs, "")


def _texts_of_fields(fields: Fields, arguments: Any, inputs: Any, path: str) -> dict[str, str]:
    texts: dict[str, str] = {}
    for part in re.split(r":param ", arguments.__init__.__doc__ or "")[1:]:
        head, _, text = part.partition(": ")
        texts[head.split()[-1]] = " ".join(text.split())
    by_path: dict[str, str] = {}
    signature = parameters(arguments)
    for item in fields:
        name = snake(item.name)
        by_path[path + item.name] = texts.get(name, "")
        inner = nested_class(signature.get(name), inputs) if item.fields else None
        if inner is not None:
            by_path |= _texts_of_fields(item.fields, inner, inputs, f"{path}{item.name}.")
    return by_path
