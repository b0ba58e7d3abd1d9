"""Descriptions of arguments and outputs, read from the docstrings where their classes have them.

A pydantic model has a docstring behind each field, a dataclass and a resource a section `Attributes:`. Fields whose
names say all in Python have none there; their descriptions are here.
"""

import ast
import inspect
import itertools
import re
import textwrap
from typing import Any

_COMMON = {
    "project": "Google Cloud project.",
    "location": "Region.",
    "registry": "Host of the registry that has the image.",
    "tag": "Tag of the image; its digest is looked up.",
    "repository_id": "Name of the repository in Artifact Registry.",
    "create": "Whether the bucket is made here; otherwise it must exist.",
    "labels": "Labels of the resources that take some.",
    "deletion_protection": "Whether deleting the service is refused; on by default.",
    "container": "The server's container.",
    "min_instances": "Instances kept running without traffic.",
    "max_instances": "Most instances at a time.",
    "zonal_redundancy": "Whether GPUs are reserved in another zone, at a higher price.",
    "environment": "Plain environment variables, no secrets.",
    "port": "Port of the server.",
    "cpu": "vCPUs.",
    "memory_gib": "Memory in GiB.",
    "accelerators": "GPUs of an instance.",
    "startup_probe": "Probe that ends the start of an instance.",
    "liveness_probe": "Probe of a running instance; none by default.",
    "mounts": "Buckets that the server reads as folders.",
    "period_seconds": "Time between two probes.",
    "timeout_seconds": "Time limit of one.",
    "failure_threshold": "Failed probes after which the instance has failed.",
    "initial_delay_seconds": "Time before the first one.",
    "bucket": "Name of the bucket, without `gs://`.",
    "name": "Name of the mount.",
    "source": "Origin of the model, e.g. its id on the Hugging Face hub.",
    "description": "What the account is for.",
}
_ATTRIBUTE = re.compile(r"^    (\w+): ", re.MULTILINE)


def describe_fields(model: type[Any]) -> dict[str, str]:
    """Field -> description of a class and those above it; under "" that of the class itself."""
    described = dict(_COMMON)
    for base in reversed(model.__mro__):
        if base.__module__.startswith("bezel"):
            described |= _behind_fields(base) | attributes_of(base.__doc__ or "")
    return {**described, "": summary_of(model)}


def describe_outputs(resource: type[Any]) -> dict[str, str]:
    """Output -> description of a class of resources and those above it."""
    described: dict[str, str] = {}
    for base in reversed(resource.__mro__):
        if base.__module__.startswith("bezel"):
            described |= attributes_of(base.__doc__ or "")
    return described


def summary_of(described: type[Any]) -> str:
    """The description at the top of a class, without its sections."""
    text = inspect.cleandoc(described.__doc__ or "")
    return " ".join(re.split(r"\n\n(?:Attributes|Raises|Args|Example):", text)[0].split())


def attributes_of(docstring: str) -> dict[str, str]:
    """Name -> description of the section `Attributes:` of a docstring."""
    section = inspect.cleandoc(docstring).partition("Attributes:\n")[2]
    section = re.split(r"^\w+:\n", section, flags=re.MULTILINE)[0]
    parts = _ATTRIBUTE.split(section)[1:]
    return {name: " ".join(text.split()) for name, text in zip(parts[::2], parts[1::2], strict=True)}


def _behind_fields(model: type[Any]) -> dict[str, str]:
    body = ast.parse(textwrap.dedent(inspect.getsource(model))).body[0]
    described, statements = {}, getattr(body, "body", [])
    for field, behind in itertools.pairwise(statements):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(behind, ast.Expr)
            and isinstance(behind.value, ast.Constant)
        ):
            described[field.target.id] = " ".join(str(behind.value.value).split())
    return described
