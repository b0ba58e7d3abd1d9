"""Request bodies held to Google's own message definitions: unknown names, wrong types and wrong enum values.

The definitions (data/messages.json) are condensed from Google's discovery documents:
`python -m bezel.localcloud.messages NAME=DOCUMENT.json:ROOT[,ROOT...] ... > data/messages.json` makes them again.
"""

from __future__ import annotations

import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel.localcloud.errors import invalid

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bezel.localcloud.shapes import Json

Fields = dict[str, str]  # name -> "string", "int32", "enum:A|B", "@Message", "[]..." repeated, "{}..." map


@cache
def _definitions() -> dict[str, Fields]:
    content = json.loads((Path(__file__).parent / "data" / "messages.json").read_text())
    messages: dict[str, Fields] = content["messages"]
    return messages


def checked_message(body: Json, message: str, where: str) -> Json:
    """The body with every name in camelCase, as Google stores it.

    Args:
        body: What the caller sent.
        message: Name of the definition, e.g. "run.GoogleCloudRunV2Service".
        where: Name of the field that the body is bound to, e.g. "service"; "" for the whole request.

    Raises:
        ApiError: INVALID_ARGUMENT with every wrong field.
    """
    problems: list[tuple[str, str]] = []
    found: Json = _message(body, message, where, problems)
    if problems:
        raise invalid("\n".join(text for _, text in problems), *problems)
    return found


def _message(body: Any, message: str, where: str, problems: list[tuple[str, str]]) -> Any:
    if not isinstance(body, dict):
        problems.append((where, f"Invalid value at '{where}' ({message.partition('.')[2]})"))
        return body
    fields = _definitions()[message]
    kept = {}
    for given, value in body.items():
        name = re.sub(r"_([a-z])", lambda match: match.group(1).upper(), given)
        if name not in fields:
            at = f" at '{where}'" if where else ""
            problems.append((where, f'Invalid JSON payload received. Unknown name "{given}"{at}: Cannot find field.'))
        elif value is not None:
            snake = re.sub(r"[A-Z]", lambda match: f"_{match.group().lower()}", name)
            path = f"{where}.{snake}" if where else snake
            kept[name] = _value(value, fields[name], message.partition(".")[0], path, problems)
    return kept


def _value(value: Any, kind: str, api: str, where: str, problems: list[tuple[str, str]]) -> Any:
    if kind.startswith("[]") and isinstance(value, list):
        items = enumerate(value)
        return [_value(item, kind[2:], api, f"{where}[{index}]", problems) for index, item in items]
    if kind.startswith("{}") and isinstance(value, dict):
        return {key: _value(item, kind[2:], api, f"{where}[{key}]", problems) for key, item in value.items()}
    if kind.startswith("@"):
        return _message(value, f"{api}.{kind[1:]}", where, problems)
    if not _is_scalar(value, kind):
        shown = "TYPE_ENUM" if kind.startswith("enum:") else f"TYPE_{kind.strip('[]{}').upper()}"
        # A secret's payload is shown to nobody, not even when it has the wrong type.
        value_shown = "" if where.startswith("payload") else f", {json.dumps(value)}"
        problems.append((where, f"Invalid value at '{where}' ({shown}){value_shown}"))
    return value


def _is_scalar(value: object, kind: str) -> bool:
    if kind == "any":
        return True
    if kind == "bool":
        return isinstance(value, bool)
    if kind in {"int32", "int64", "uint32"}:
        return not isinstance(value, bool) and re.fullmatch(r"-?\d+(\.0+)?", str(value)) is not None
    if kind in {"double", "float"}:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind.startswith("enum:"):
        return value in kind.removeprefix("enum:").split("|")
    return kind == "string" and isinstance(value, str)


def condensed(document: Json, roots: list[str], api: str) -> dict[str, Fields]:
    """The messages of a discovery document that some root messages are made of, as `api.Message` -> fields."""
    found: dict[str, Fields] = {}
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        if f"{api}.{name}" in found:
            continue
        properties = document["schemas"][name].get("properties", {})
        found[f"{api}.{name}"] = {field: _kind(definition) for field, definition in sorted(properties.items())}
        waiting += [other for definition in properties.values() for other in _references(definition)]
    return dict(sorted(found.items()))


def _kind(definition: Json) -> str:
    if "$ref" in definition:
        return f"@{definition['$ref']}"
    if definition["type"] == "array":
        return f"[]{_kind(definition['items'])}"
    if definition["type"] == "object":
        return f"{{}}{_kind(definition['additionalProperties'])}"
    if "enum" in definition:
        return "enum:" + "|".join(definition["enum"])
    if definition.get("format") in {"int32", "int64", "uint32"}:
        return str(definition["format"])
    return {"boolean": "bool", "number": "double"}.get(definition["type"], str(definition["type"]))


def _references(definition: Json) -> Iterator[str]:
    if "$ref" in definition:
        yield definition["$ref"]
    for inner in ("items", "additionalProperties"):
        if isinstance(definition.get(inner), dict):
            yield from _references(definition[inner])


def main(arguments: list[str]) -> None:
    """Print the definitions of the documents named by the arguments."""
    messages: dict[str, Fields] = {}
    sources = []
    for argument in arguments:
        api, _, rest = argument.partition("=")
        path, _, roots = rest.rpartition(":")
        document = json.loads(Path(path).read_text())
        messages |= condensed(document, roots.split(","), api)
        sources.append(f"{document['id']} revision {document['revision']}")
    content = {"source": "Google's discovery documents: " + ", ".join(sources), "messages": messages}
    sys.stdout.write(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
