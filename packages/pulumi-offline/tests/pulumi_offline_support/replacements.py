"""Evidence that a change of a property takes a new resource."""

import fnmatch
import functools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bezel_pulumi_offline.lifecycle.fields import Field, Fields, Mark
from bezel_pulumi_offline.resources import TYPES
from pulumi_offline_support.discovery import SCHEMAS, discovery
from pulumi_offline_support.sdk import documentation

STATED = json.loads((Path(__file__).parents[1] / "replacements.json").read_text())
HINT = re.compile(
    r"forces a new|recreate the|(?:can|may) ?not be changed|trigger replacement|immutable\b(?!_)", re.IGNORECASE
)


def settable(fields: Fields, path: str = "") -> Iterator[tuple[str, Field]]:
    for item in fields:
        if not item.marks & (Mark.OUTPUT | Mark.REFUSED) and not item.name.startswith("effective"):
            yield path + item.name, item
            yield from settable(item.fields, f"{path}{item.name}.")


def said_by_google(token: str, fields: Fields, path: str) -> str:
    """The discovery document's words on a property that is in the body, found by its place on the wire."""
    if token not in SCHEMAS:
        return ""
    document, name = SCHEMAS[token]
    schema: dict[str, Any] = discovery(document)[name]
    description = ""
    for part in path.split("."):
        item = next(candidate for candidate in fields if candidate.name == part)
        for step in item.path:
            schema = schema.get("properties", {}).get(step, {})
            description = schema.get("description", "")
            inner = schema.get("items") or schema.get("additionalProperties") or schema
            schema = discovery(document)[inner["$ref"]] if "$ref" in inner else inner
        fields = item.fields
    return description


def is_stated(part: str, token: str, path: str) -> bool:
    return any(
        fnmatch.fnmatchcase(token, entry["of"])
        and any(fnmatch.fnmatchcase(path, pattern) for pattern in entry["paths"])
        for entry in STATED[part]
    )


@functools.cache
def known_by(token: str) -> dict[str, list[str]]:
    """How it is known that a property replaces: path, documentation, discovery, stated; nothing where it is not."""
    row = TYPES[token]
    named = set(re.findall(r"{(\w+)}", row.id + row.collection + row.path))
    docs = documentation(token)
    ways_by_path: dict[str, list[str]] = {}
    for path, _ in settable(row.fields):
        ways = {
            "path": path in named,
            "documentation": bool(HINT.search(docs.get(path, ""))),
            "discovery": bool(HINT.search(said_by_google(token, row.fields, path))),
            "stated": is_stated("replaces", token, path),
        }
        ways_by_path[path] = [way for way, so in ways.items() if so]
    return ways_by_path
