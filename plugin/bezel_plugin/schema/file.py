"""The stored schema: reading it takes a millisecond, making it loads every component."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from bezel_components.base.caller_names import SchemaNames

FILE = Path(__file__).parents[1] / "schema.json"


def read_schema() -> str:
    """The package's schema as JSON."""
    return FILE.read_text(encoding="utf-8")


@cache
def schema_names() -> SchemaNames:
    """The names of all inputs and outputs, for messages."""
    schema = json.loads(read_schema())
    return names_of(schema["types"], schema["resources"])


def names_of(*described: Mapping[str, Mapping[str, Any]]) -> SchemaNames:
    """The names of the properties of types or resources, each a mapping of those by their tokens."""
    objects = [each for tokens in described for each in tokens.values()]
    parts = [each.get(part, {}) for each in objects for part in ("properties", "inputProperties")]
    return SchemaNames(key for part in parts for key in part)
