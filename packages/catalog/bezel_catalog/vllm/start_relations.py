"""Relations on which a start of vLLM fails: of its arguments with the model, the device and the host.

Data: vllm/start_relations/*.toml, one row for each place in the source of a release. Leaves the rules themselves to
the plan and to the simulated server, each of which has code of its own.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bezel_catalog.loader import DATA, make, read_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDER = "vllm/start_relations"


@dataclass(frozen=True, slots=True)
class StartRelation:
    """One relation that ends a start.

    `rule` says what fails. `package` ("vllm" or "tpu-inference"), `release` and `place` (file: function) are its
    source. `options` are those that it reads; `reads` is what it compares them with: "model config", "processor",
    "tokenizer", "quantisation", "device", "host", "options". `not_checked` says why the plan cannot judge it, as the
    end of "not checked: ..."; "" where plan and simulated server refuse it. `values` are those of the options for which
    that is said, of the keys of a map as well; () for every value.
    """

    id: str
    rule: str
    package: str
    release: str
    place: str
    options: tuple[str, ...]
    reads: tuple[str, ...]
    not_checked: str = ""
    values: tuple[str, ...] = ()


@functools.cache
def start_relations() -> Mapping[str, StartRelation]:
    """Return the relations by their id.

    Raises:
        DataFileError: a row lacks a field, or has an unknown one.
    """
    relations = {}
    for path in sorted((DATA / _FOLDER).glob("*.toml")):
        file = f"{_FOLDER}/{path.name}"
        for name, row in read_toml(file).items():
            relations[name] = make(StartRelation, f"{file}: {name}", {"id": name, **row})
    return relations
