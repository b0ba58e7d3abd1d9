"""The first rows of a data set's files, copied into one file of their form.

A split may have many files of gigabytes, of which a load sends thousands of rows: reading ends with `ROWS`. Text is
read from its start, of Parquet the index and the groups of rows that are needed. A JSON array is read whole.
"""

import csv
import io
import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from bezel_base.errors import Problem, UserError
from bezel_bench.prompts.tables import SEPARATORS, parquet_reader, separator_of

ROWS = 10_000
SUFFIXES = (".parquet", ".jsonl", ".ndjson", ".json", ".csv", ".tsv")
_BUFFER = 1024 * 1024
_ROWS_AT_ONCE = 1024


def copy_first_rows(sources: Sequence[io.RawIOBase], names: Sequence[str], target: Path) -> None:
    """Write the first rows of some files of one form, which is that of the target's suffix.

    Args:
        sources: The files, in order; read only as far as needed, and closed.
        names: Their names, for errors.
        target: The file to write.

    Raises:
        UserError: A file is not of its form, or of other columns than the first.
    """
    suffix = target.suffix.lower()
    try:
        if suffix == ".parquet":
            _copy_parquet(sources, names, target)
        else:
            with target.open("w", encoding="utf-8", newline="") as copy:
                texts = zip((_text(source) for source in sources), names, strict=True)
                copy_rows = _copy_table if suffix in SEPARATORS else _copy_lines
                copy_rows(texts, copy)
    except UnicodeDecodeError as error:
        consequence = f"it is not text in UTF-8: {error.reason}."
        raise UserError(Problem("--dataset", " ".join(names), consequence, "name another split.")) from None
    finally:
        for source in sources:
            source.close()


def _text(source: io.RawIOBase) -> TextIO:
    return io.TextIOWrapper(io.BufferedReader(source, _BUFFER), encoding="utf-8-sig", newline="")


def _copy_lines(texts: Iterator[tuple[TextIO, str]], copy: TextIO) -> None:
    lines = (line for text, name in texts for line in _lines(text, name) if line.strip())
    copy.writelines(line if line.endswith("\n") else f"{line}\n" for line in itertools.islice(lines, ROWS))


def _lines(text: TextIO, name: str) -> Iterator[str]:
    """The lines of a text; of a JSON array its items."""
    first = next((line for line in text if line.strip()), "")
    if not (name.lower().endswith(".json") and first.lstrip()[0:1] == "["):
        return itertools.chain([first], text)
    try:
        return map(json.dumps, json.loads(first + text.read()))
    except (ValueError, RecursionError) as error:
        consequence = f"it begins as a JSON array and is none: {error}."
        raise UserError(Problem("--dataset", name, consequence, "name another split.")) from None


def _copy_table(texts: Iterator[tuple[TextIO, str]], copy: TextIO) -> None:
    header: list[str] = []
    written = 0
    for text, name in texts:
        first = text.readline()
        rows = csv.reader(itertools.chain([first], text), delimiter=separator_of(name, first))
        try:
            names = next(rows, [])
            if not header:
                header, writer = names, csv.writer(copy, delimiter=separator_of(name, first))
                writer.writerow(header)
            elif names != header:
                consequence = f"it has the columns {', '.join(names)}, the first file {', '.join(header)}."
                raise UserError(Problem("--dataset", name, consequence, "name a split of one form."))
            for row in itertools.islice(rows, ROWS - written):
                writer.writerow(row)
                written += 1
        except csv.Error as error:
            raise UserError(Problem("--dataset", name, f"it is not a table: {error}.", "name another split.")) from None
        if written == ROWS:
            return


def _copy_parquet(sources: Sequence[io.RawIOBase], names: Sequence[str], target: Path) -> None:
    pa, parquet = parquet_reader(names[0])
    writer, written = None, 0
    try:
        for source, name in zip(sources, names, strict=True):
            try:
                read = parquet.ParquetFile(io.BufferedReader(source, _BUFFER))
                writer = writer or parquet.ParquetWriter(target, read.schema_arrow)
                for batch in read.iter_batches(_ROWS_AT_ONCE):
                    writer.write_batch(batch.slice(0, ROWS - written).cast(writer.schema))
                    written += min(batch.num_rows, ROWS - written)
                    if written == ROWS:
                        return
            except (ValueError, pa.ArrowException) as error:
                consequence = f"it cannot be read: {' '.join(str(error).split())[:200]}."
                raise UserError(Problem("--dataset", name, consequence, "name another split.")) from None
    finally:
        if writer is not None:
            writer.close()
