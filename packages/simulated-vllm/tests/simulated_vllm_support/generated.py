"""Generated requests to a vLLM server: bodies made from the release's published document, the same from the same seed.

Each request varies one field of one endpoint (its class) with a value that fits the published schema or does not, and
adds up to two other fields with usual values. Answers are kept short, and every prompt is. `generated_values.json` has
the values that a schema does not say: usual ones, ones at the edges of what the server accepts, and wrong ones.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bezel_catalog.vllm.servers import recorded_server
from bezel_simulated_vllm.release import DEFAULT_RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterator

_VALUES: dict[str, Any] = json.loads(Path(__file__).with_name("generated_values.json").read_bytes())
# Endpoint -> a body that is answered with 200.
BASES: dict[str, dict[str, Any]] = _VALUES["bases"]
_USUAL, _OWN_USUAL, _EDGES, _OWN_EDGES = (_VALUES[name] for name in ("usual", "own_usual", "edges", "own_edges"))
# Values that are wrong somewhere.
_WRONG: list[Any] = _VALUES["wrong"]
# Numbers of answers that a server on CPU computes for minutes.
_MANY = (5000,)
# Fields of /tokenize that it has with a prompt as well as with messages.
_OF_PROMPTS = ("prompt", "return_token_strs", "add_special_tokens")
_WORDS = ("a", "hi", "look", "auto", "text", "zebra")
_DEEPEST = 5


@dataclass(frozen=True)
class Generated:
    """A request: its endpoint, the field that it varies, and its body."""

    path: str
    field: str
    body: dict[str, Any]

    @property
    def kind(self) -> str:
        """The class of validation."""
        return f"{self.path} {self.field}"


def generate(count: int, seed: int = 22, release: str = DEFAULT_RELEASE) -> list[Generated]:
    """Return that many requests, each field of each endpoint about equally often."""
    rng = random.Random(seed)  # noqa: S311 - the same requests each time
    classes = [(path, name) for path in BASES for name in fields_of(path, release)]
    requests: list[Generated] = []
    seen: set[str] = set()
    while len(requests) < count:
        for path, name in classes:
            if len(requests) == count:
                break
            for _ in range(200):
                request = Generated(path, name, _body(rng, path, name, release))
                text = json.dumps([path, request.body], sort_keys=True)
                if text not in seen and request.body.get("n") not in _MANY:
                    break
            seen.add(text)
            requests.append(request)
    return requests


def _schemas(release: str) -> dict[str, Any]:
    return dict(recorded_server(release).document)


def _resolve(schema: Any, release: str) -> Any:
    while isinstance(schema, dict) and "$ref" in schema:
        schema = _schemas(release)["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


@cache
def fields_of(path: str, release: str = DEFAULT_RELEASE) -> dict[str, Any]:
    """Return the schemas of a body's fields by name."""
    body = _schemas(release)["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]
    branches = [_resolve(branch, release) for branch in body.get("anyOf", [body])]
    return {name: schema for branch in branches for name, schema in _resolve(branch, release)["properties"].items()}


def _body(rng: random.Random, path: str, name: str, release: str) -> dict[str, Any]:
    schemas = fields_of(path, release)
    body = json.loads(json.dumps(BASES[path]))
    if path == "/tokenize" and (name not in _OF_PROMPTS or rng.random() < 0.2):
        body.pop("prompt")
        body["messages"] = BASES["/v1/chat/completions"]["messages"]
    others = [other for other in schemas if other not in ("prompt", "messages", "input", name)]
    for other in rng.sample(others, min(len(others), rng.choice((0, 0, 0, 1, 2)))):
        body[other] = _usual(rng, path, other, release)
    chance = rng.random()
    if chance < 0.5:
        body[name] = _usual(rng, path, name, release)
    elif chance < 0.6:
        body[name] = _fitting(rng, schemas[name], 0, release)
    elif chance < 0.8 and (edges := _OWN_EDGES.get(path, {}).get(name) or _EDGES.get(name)):
        body[name] = rng.choice(edges)
    elif chance < 0.95:
        body[name] = _wrong(rng, schemas[name], release)
    else:
        body.pop(name, None)
    return body


def _usual(rng: random.Random, path: str, name: str, release: str) -> Any:
    values = _OWN_USUAL.get(path, {}).get(name) or _USUAL.get(name)
    return rng.choice(values) if values else _fitting(rng, fields_of(path, release)[name], 0, release)


def _fitting(rng: random.Random, schema: Any, depth: int, release: str) -> Any:
    """Return a value that fits a published schema."""
    schema = _resolve(schema, release)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            return _fitting(rng, rng.choice(schema[key]), depth + 1, release)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return rng.choice(schema["enum"])
    kind, least = schema.get("type"), max(int(schema.get("minimum", 0)), 0)
    if kind == "array":
        count = rng.choice((0, 1, 2)) if depth < _DEEPEST else 0
        return [_fitting(rng, schema.get("items", {}), depth + 1, release) for _ in range(count)]
    if kind == "object":
        return _object(rng, schema, depth, release)
    plain = {
        "string": _WORDS,
        "integer": range(least, least + 5),
        "number": (0, 0.5, 1),
        "boolean": (True, False),
        "null": (None,),
    }
    return rng.choice(plain.get(kind, (1, "a", {}, None)))


def _object(rng: random.Random, schema: Any, depth: int, release: str) -> dict[str, Any]:
    required = schema.get("required", [])
    chosen = [name for name in schema.get("properties", {}) if name in required or rng.random() < 0.3]
    result = {
        name: _fitting(rng, schema["properties"][name], depth + 1, release)
        for name in chosen
        if name in required or depth < _DEEPEST
    }
    inner = schema.get("additionalProperties")
    if isinstance(inner, dict) and inner and not result and rng.random() < 0.7:
        result[rng.choice(_WORDS)] = _fitting(rng, inner, depth + 1, release)
    return result


def _wrong(rng: random.Random, schema: Any, release: str) -> Any:
    """Return a value that does not fit, most often: any, or one that fits with a part replaced or left out."""
    fits = _fitting(rng, schema, 0, release)
    if isinstance(fits, dict) and fits and rng.random() < 0.6:
        name = rng.choice(list(fits))
        if rng.random() < 0.3:
            return {key: value for key, value in fits.items() if key != name}
        return {**fits, name: rng.choice(_WRONG)}
    if isinstance(fits, list) and fits and rng.random() < 0.5:
        return [*fits, rng.choice(_WRONG)]
    return rng.choice(_WRONG)


def constant_fields(requests: list[Generated], release: str = DEFAULT_RELEASE) -> Iterator[str]:
    """Yield the fields that no request gives two different values."""
    for path in BASES:
        for name in fields_of(path, release):
            values = {json.dumps(one.body.get(name), sort_keys=True) for one in requests if one.path == path}
            if len(values) < 2:
                yield f"{path} {name}"
