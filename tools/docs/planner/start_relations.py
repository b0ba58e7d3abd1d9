"""Tables of docs/start-relations.md, from the catalogue's relations on which a start of vLLM fails.

python -m tools.docs.planner.start_relations            the tables, as Markdown
python -m tools.docs.planner.start_relations --write    puts them into docs/start-relations.md
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from bezel_catalog.vllm.attention_backends import attention_backends
from bezel_catalog.vllm.start_relations import start_relations
from tools.docs.generated_sections import ROOT, put, table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bezel_catalog.vllm.start_relations import StartRelation


def tables() -> str:
    """Tables of the refused relations, of those that are not checked, and of the attention backends."""
    rows = start_relations().values()
    refused = [row for row in rows if not row.not_checked]
    unchecked = [(_options(row), row.not_checked, _place(row)) for row in rows if row.not_checked]
    backends = [(f"`{name}`", *cells) for name, cells in _backends()]
    return "\n".join(
        [
            f"{len(refused)} relations are refused by the plan and by the simulated server:\n",
            table(
                ("a start fails where", "options", "compared with", "place"),
                [(row.rule, _options(row), ", ".join(row.reads), _place(row)) for row in refused],
            ),
            "Not checked, and said in the plan where the option is set:\n",
            table(("options", "not checked", "place"), unchecked),
            'Attention backends of Gemma 4 by compute capability; "images" are 12B, 26B-A4B and 31B with images on:\n',
            table(
                ("backend", "8.9, text", "8.9, images", "12.0, text", "12.0, images", "types of the cache"), backends
            ),
        ]
    )


def _backends() -> Iterable[tuple[str, tuple[str, ...]]]:
    for name, backend in attention_backends().items():
        cells = [
            "yes" if backend.refuses and not any(backend.refuses[where][inputs].values()) else "no"
            for where in ("8.9", "12.0")
            for inputs in ("text", "images")
        ]
        if "yes" in cells and not name.startswith(("ROCM_", "CPU_")):
            types = backend.kv_cache_dtypes["8.9"]["text"]
            yield name, (*cells, ", ".join(f"`{kind}`" for kind in types))


def _options(row: StartRelation) -> str:
    return ", ".join(f"`{name}`" for name in row.options) or "the model"


def _place(row: StartRelation) -> str:
    return f"`{row.package}` {row.release}, `{row.place}`"


def main(flags: list[str]) -> None:
    """Print the tables, or write them into their document."""
    if "--write" not in flags:
        sys.stdout.write(tables())
        return
    put(ROOT / "docs" / "start-relations.md", "tools.docs.planner.start_relations", tables())


if __name__ == "__main__":
    main(sys.argv[1:])
