"""Schemas of every operation's arguments and result, one file each, made by `python -m tools.docs.operations --write`.

They document `--json` and are what the MCP server lists: it answers before any operation is imported.
"""

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any


@lru_cache
def schemas_of(name: str) -> dict[str, dict[str, Any]]:
    """`arguments` and `result` -> JSON schema, of the operation of that name.

    Raises:
        FileNotFoundError: There is no such operation.
    """
    text = (files(__name__) / f"{name}.json").read_text(encoding="utf-8")
    schemas: dict[str, dict[str, Any]] = json.loads(text)
    return schemas
