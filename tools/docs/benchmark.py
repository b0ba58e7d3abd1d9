"""Generated parts of the benchmark's documents: figures and columns from their definitions, and the result's schema.

python -m tools.docs.benchmark            the tables, as Markdown
python -m tools.docs.benchmark --schema   the JSON schema of a result
python -m tools.docs.benchmark --write    puts them into docs/metrics.md and docs/bench-result.schema.json, and options
                                          of other clients into docs/other-clients.md
"""

from __future__ import annotations

import itertools
import json
import operator
import sys
from typing import TYPE_CHECKING, Any

from bezel_bench.commands.like.line import clients
from bezel_bench.metrics.definitions import DEFINITIONS
from bezel_bench.metrics.request_rows import COLUMNS as REQUEST_COLUMNS
from bezel_bench.metrics.request_rows import GAPS
from bezel_bench.result.document import SCHEMA, Result
from bezel_bench.result.sample_file import COLUMNS
from tools.docs.generated_sections import ROOT, put, table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CLIENTS = ROOT / "docs" / "other-clients.md"
DOCUMENT = ROOT / "docs" / "metrics.md"
SCHEMA_FILE = ROOT / "docs" / "bench-result.schema.json"


def tables() -> str:
    """Tables of every figure, of every column of the samples, and of every column of the rows of requests."""
    figures = [(f"`{metric.name}`", metric.unit, metric.formula, metric.needs) for metric in DEFINITIONS]
    columns = [(f"`{name}`", text) for name, text in COLUMNS.items()]
    rows = [(f"`{name}`", text) for name, text in REQUEST_COLUMNS.items()]
    rows.append((f"`{GAPS}`", "in JSON lines only: the times between neighbouring chunks"))
    return "\n".join(
        [
            "### Figures\n",
            table(("figure", "unit", "formula", "needs"), figures),
            "### Columns of the samples\n",
            table(("column", "what it holds"), columns),
            "### Columns of the requests\n",
            table(("column", "what it holds"), rows),
        ]
    )


def client_tables() -> str:
    """A table of the options of each other client, with what does the same here."""
    return "\n".join(
        f"### {client['title']}\n\n{table(('option', 'here'), _client_rows(client['rows']))}"
        for client in clients().values()
    )


def _client_rows(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Options with what does the same here; neighbours with the same are one row."""
    parts = [(row["options"], _counterpart(row), " (other releases)" * bool(row.get("older"))) for row in rows]
    groups = itertools.groupby(parts, key=operator.itemgetter(1, 2))
    named = [([f"`{option}`" for options, *_ in group for option in options], *same) for same, group in groups]
    return [(f"{', '.join(options)}{releases}", here) for options, here, releases in named]


def _counterpart(row: Mapping[str, Any]) -> str:
    return f"`{row['here']}`" if "here" in row else row.get("does") or f"not here: {row['why']}"


def schema() -> str:
    """The JSON schema of a result, as text."""
    schema = Result.model_json_schema(by_alias=True, mode="serialization")
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **schema}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def main(flags: list[str]) -> None:
    """Print one of the two, or write both."""
    if "--write" not in flags:
        sys.stdout.write(schema() if "--schema" in flags else tables())
        return
    SCHEMA_FILE.write_text(schema(), encoding="utf-8")
    put(DOCUMENT, "tools.docs.benchmark", tables())
    put(CLIENTS, "tools.docs.benchmark", client_tables())


if __name__ == "__main__":
    main(sys.argv[1:])
