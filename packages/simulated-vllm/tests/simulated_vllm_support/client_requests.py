"""Requests of clients with the shapes of a real server's answers, by release (`tools/vllm/releases/compare.py`)."""

from __future__ import annotations

import gzip
import json
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from simulated_vllm_support.samples import FIXTURES
from simulated_vllm_support.shapes import shape_of

if TYPE_CHECKING:
    from collections.abc import Iterable

_OF_A_KIND = 5


@dataclass(frozen=True)
class Asked:
    """One request.

    Attributes:
        kind: what it tries, by our own names.
        content: the body as it is sent.
    """

    kind: str
    method: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    content: bytes = b""


def answer_shape(status: int, kind: str, text: str) -> list[Any]:
    """Return what is compared of an answer: its type of content, status, and shape or text of an error."""
    return [kind.partition(";")[0], *shape_of(status, text)]


def write(release: str, answers: Iterable[tuple[Asked, list[Any]]]) -> None:
    """Write some requests of each kind with the shapes of the real server's answers."""
    rows: list[list[Any]] = []
    kinds: dict[str, int] = {}
    for request, shape in answers:
        kinds[request.kind] = kinds.get(request.kind, 0) + 1
        if kinds[request.kind] <= _OF_A_KIND:
            kind, method, path, headers, content = astuple(request)
            rows.append([kind, method, path, headers, content.decode("latin-1"), shape])
    file = FIXTURES / f"clients-{release}.json.gz"
    file.write_bytes(gzip.compress(json.dumps(rows, separators=(",", ":")).encode(), mtime=0))


def read(release: str) -> list[tuple[Asked, list[Any]]]:
    """Return the written requests of a release with the shapes of the real server's answers."""
    rows = json.loads(gzip.decompress((FIXTURES / f"clients-{release}.json.gz").read_bytes()))
    return [
        (Asked(kind, method, path, tuple(map(tuple, headers)), content.encode("latin-1")), shape)
        for kind, method, path, headers, content, shape in rows
    ]
