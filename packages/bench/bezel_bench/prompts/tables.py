"""Rows of a table of prompts: CSV, TSV, or Parquet with the extra `parquet`. Leaves out what a row means."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bezel_base.errors import Problem, UserError

SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARQUET = ".parquet"
_ROWS_AT_ONCE = 1024


def is_table(file: Path) -> bool:
    """Whether the name of a file is that of a table."""
    return file.suffix.lower() in {*SEPARATORS, _PARQUET}


def is_binary(file: Path) -> bool:
    """Whether a table is no text."""
    return file.suffix.lower() == _PARQUET


def text_rows(file: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a CSV or TSV with their places, by the names of its header.

    Raises:
        UserError: It has no header, or a row has more cells than it.
    """
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=SEPARATORS[file.suffix.lower()])
    try:
        for row in reader:
            if None in row:
                consequence = f"it has more cells than the header has names: {', '.join(reader.fieldnames or ())}."
                raise UserError(Problem(f"{file}, line {reader.line_num}", None, consequence, "quote the text."))
            yield f"line {reader.line_num}", row
    except csv.Error as error:
        raise UserError(Problem(str(file), None, f"it is not a table: {error}.", "repair it.")) from None


def parquet_rows(file: Path, columns: list[str] | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a Parquet file with their places; only the columns named, where some are.

    Raises:
        UserError: It cannot be read, or the reader is not installed.
    """
    pa, parquet = parquet_reader(str(file))
    try:
        source = parquet.ParquetFile(file)
        names = None if columns is None else [name for name in columns if name in source.schema_arrow.names]
        number = 0
        for batch in source.iter_batches(_ROWS_AT_ONCE, columns=names or None):
            for row in batch.to_pylist():
                number += 1
                yield f"row {number}", row
    except (OSError, pa.ArrowException) as error:
        reason = " ".join(str(error).split())[:200]
        raise UserError(Problem(str(file), None, f"it cannot be read: {reason}.", "name a Parquet file.")) from None


def parquet_reader(name: str) -> tuple[Any, Any]:
    """The modules `pyarrow` and `pyarrow.parquet`.

    Args:
        name: The file that is to be read, for the error.

    Raises:
        UserError: They are not installed.
    """
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        consequence = "Parquet needs a reader that is not installed (60 MB)."
        raise UserError(Problem(name, None, consequence, "pip install 'bezel-bench[parquet]'.")) from None
    return pa, parquet
