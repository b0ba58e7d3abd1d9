"""The first rows of a data set's files, copied into one file of their form.

A split may have many files of gigabytes, of which a load sends thousands of rows: reading ends with `ROWS`. Text is
read from its start, of Parquet the index and the groups of rows that are needed. A JSON array is read whole, and only
the first file of several.
"""

import csv
import io
import itertools
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from bezel_base.errors import Problem, UserError
from bezel_bench.prompts.tables import SEPARATORS, parquet_reader

ROWS = 10_000
SUFFIXES = (".parquet", ".jsonl", ".json", ".csv", ".tsv")
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
        elif suffix == ".json":
            with target.open("wb") as copy:
                shutil.copyfileobj(io.BufferedReader(sources[0], _BUFFER), copy)
        else:
            with target.open("w", encoding="utf-8", newline="") as copy:
                texts = zip((_text(source) for source in sources), names, strict=True)
                copy_rows = _copy_lines if suffix == ".jsonl" else _copy_table
                copy_rows(texts, copy, SEPARATORS.get(suffix, ""))
    except UnicodeDecodeError as error:
        consequence = f"it is not text in UTF-8: {error.reason}."
        raise UserError(Problem("--dataset", " ".join(names), consequence, "name another split.")) from None
    finally:
        for source in sources:
            source.close()


def _text(source: io.RawIOBase) -> TextIO:
    return io.TextIOWrapper(io.BufferedReader(source, _BUFFER), encoding="utf-8-sig", newline="")


def _copy_lines(texts: Iterator[tuple[TextIO, str]], copy: TextIO, _: str) -> None:
    lines = (line for text, _ in texts for line in text if line.strip())
    copy.writelines(line if line.endswith("\n") else f"{line}\n" for line in itertools.islice(lines, ROWS))


def _copy_table(texts: Iterator[tuple[TextIO, str]], copy: TextIO, separator: str) -> None:
    writer = csv.writer(copy, delimiter=separator)
    header: list[str] = []
    written = 0
    for text, name in texts:
        rows = csv.reader(text, delimiter=separator)
        try:
            names = next(rows, [])
            if not header:
                header = names
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
                for batch in read.iter_batches(_ROWS_AT_ONCE):
                    writer = writer or parquet.ParquetWriter(target, batch.schema)
                    writer.write_batch(batch.slice(0, ROWS - written))
                    written += min(batch.num_rows, ROWS - written)
                    if written == ROWS:
                        return
            except (ValueError, pa.ArrowException) as error:
                reason = " ".join(str(error).split())[:200]
                raise UserError(
                    Problem("--dataset", name, f"it cannot be read: {reason}.", "name another split.")
                ) from None
    finally:
        if writer is not None:
            writer.close()
