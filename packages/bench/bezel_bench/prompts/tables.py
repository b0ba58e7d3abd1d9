"""Rows of a table of prompts: CSV, TSV, or Parquet with the extra `parquet`. Leaves out what a row means."""

import csv
import io
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from bezel_base.errors import Problem, UserError

SEPARATORS = {".csv": ",", ".tsv": "\t"}
_PARQUET = ".parquet"
_ROWS_AT_ONCE = 1024
csv.field_size_limit(2**31 - 1)  # a cell may have a whole document; the default is 128 KiB


def is_table(file: Path) -> bool:
    """Whether the name of a file is that of a table."""
    return file.suffix.lower() in {*SEPARATORS, _PARQUET}


def is_binary(file: Path) -> bool:
    """Whether a table is no text."""
    return file.suffix.lower() == _PARQUET


def separator_of(name: str, header: str) -> str:
    """The sign between the cells of a CSV or TSV; spreadsheets of many countries write semicolons into a CSV."""
    usual = SEPARATORS[Path(name).suffix.lower()]
    return next((sign for sign in (usual, ";", "\t") if sign in header), usual)


def text_rows(file: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a CSV or TSV with their places, by the names of its header.

    Raises:
        UserError: It has no header, or a row has more cells than it.
    """
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=separator_of(file.name, text.partition("\n")[0]))
    try:
        for row in reader:
            if None in row:
                consequence = f"it has more cells than the header has names: {', '.join(reader.fieldnames or ())}."
                raise UserError(Problem(f"{file}, line {reader.line_num}", None, consequence, "quote the text."))
            yield f"line {reader.line_num}", row
    except csv.Error as error:
        raise UserError(Problem(str(file), None, f"it is not a table: {error}.", "repair it.")) from None


def parquet_rows(file: Path, prompts: Collection[str], lengths: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a Parquet file with their places; of all columns where it has none with prompts.

    Args:
        file: The file.
        prompts: The names of the columns that may have prompts.
        lengths: The name of the column with lengths; "" for none.

    Raises:
        UserError: It cannot be read, or the reader is not installed.
    """
    pa, parquet = parquet_reader(str(file))
    try:
        source = parquet.ParquetFile(file)
        # The index of a data frame is a column of this name.
        names = [name for name in source.schema_arrow.names if not name.startswith("__index_level_")]
        if any(name in prompts for name in names):
            names = [name for name in names if name in {*prompts, lengths}]
        number = 0
        for batch in source.iter_batches(_ROWS_AT_ONCE, columns=names):
            for row in batch.to_pylist():
                number += 1
                yield f"row {number}", row
    except (OSError, ValueError, pa.ArrowException) as error:
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
