"""Schemas of every operation's arguments and result, one file each, made by `python -m tools.docs.operations --write`.

They document `--json` and are what the MCP server lists: it answers before any operation is imported.
"""

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any


@lru_cache
def schemas_of(name: str) -> dict[str, Any]:
    """What the file of an operation has.

    `arguments`, `result` and, of a changing one, `outcome` are JSON schemas; `arguments_inside` are the names of the
    arguments that a server of some stacks takes. `exit_codes` are those of the command, with what each means.

    Raises:
        FileNotFoundError: There is no such operation.
    """
    text = (files(__name__) / f"{name}.json").read_text(encoding="utf-8")
    schemas: dict[str, Any] = json.loads(text)
    return schemas
