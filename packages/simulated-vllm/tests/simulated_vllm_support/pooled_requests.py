"""Requests to models that pool with the shapes of a real server's answers (`tools/vllm/releases/pooled.py`)."""

from __future__ import annotations

import gzip
import json
from dataclasses import astuple
from typing import TYPE_CHECKING, Any

from simulated_vllm_support.client_requests import Asked
from simulated_vllm_support.samples import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Iterable

# Of a model's files, what a server reads before it answers; the tokenizer is cut to its vocabulary.
_KEPT = ("config.json", "modules.json", "tokenizer_config.json", "chat_template.jinja")
Row = tuple[str, dict[str, bytes], list[tuple[Asked, list[Any]]]]


def write(release: str, rows: Iterable[Row]) -> None:
    """Write each model's files and its requests with the shapes of the real server's answers."""
    models: dict[str, Any] = {}
    for name, files, answers in rows:
        calls = [[*astuple(request)[:4], request.content.decode("latin-1"), shape] for request, shape in answers]
        models[name] = {"files": {file: files[file].decode() for file in _KEPT if file in files}, "calls": calls}
    content = json.dumps({"vllm": release, "models": models}, separators=(",", ":")).encode()
    _file(release).write_bytes(gzip.compress(content, mtime=0))


def read(release: str) -> list[Row]:
    """Return the models of a release, with files that a simulated server takes, and their requests."""
    models = json.loads(gzip.decompress(_file(release).read_bytes()))["models"]
    tokenizer = json.dumps({"model": {"vocab": {f"token{number}": number for number in range(64)}}}).encode()
    return [
        (
            name,
            {
                "model.safetensors": b"\0" * 400_000,
                "tokenizer.json": tokenizer,
                **{file: text.encode() for file, text in row["files"].items()},
            },
            [
                (Asked(kind, method, path, tuple(map(tuple, headers)), content.encode("latin-1")), shape)
                for kind, method, path, headers, content, shape in row["calls"]
            ],
        )
        for name, row in models.items()
    ]


def _file(release: str) -> Any:
    return FIXTURES.parent / "pooling" / f"requests-{release}.json.gz"
