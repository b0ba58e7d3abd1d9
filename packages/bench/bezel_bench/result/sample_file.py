"""Sample file of a result: the raw samples, compact, exact, and readable with numpy alone.

    numpy.load("run.samples.npz")["<cell id>/sent"]

Owns the file's columns; `docs/metrics.md` lists `COLUMNS`. One array a column and cell, all of a cell of one length but
`chunk_gaps`. Every integer is stored in the narrowest type that holds its column: an instant as nanoseconds since
`began` (`NOT_REACHED` where the request did not get so far), a chunk as nanoseconds since the one before it in the same
request, or since `first`.
"""

import hashlib
import io
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem
from bezel_bench.result.columns import FIELDS, Columns, Ints
from bezel_bench.result.document import ResultError, SampleFile
from bezel_bench.result.sample import INSTANTS, KINDS

NOT_REACHED = -(2**63)  # an instant may be before `began`, where several machines' clocks were merged
_LATER = ("departed", "first_after")  # columns that the files of earlier versions lack
COLUMNS = {
    "began": "one value: CLOCK_MONOTONIC at the start of the load, in nanoseconds. Instants count from it; "
    f"{NOT_REACHED}: not reached",
    "index": "index of the request in the plan, from 0",
    "worker": "process that sent it",
    "user": "user of a closed loop, or connection",
    "turn": "turn of a conversation, from 0",
    "group": "group of a shared prefix, -1 for none",
    "planned": "instant at which it should have been sent",
    "begun": "instant at which its worker took, or requested, a connection",
    "sent": "instant at which its bytes were given to the kernel",
    "departed": "instant at which the kernel says that it left, of the first 512 requests and one of 127 later ones",
    "first_after": "of a first token that was read together with later ones: the instant after which it arrived",
    "first": "instant of the first token of any channel that had a text",
    "first_content": "instant of the first content token",
    "last": "instant of the last chunk with a token",
    "done": "instant at which the response was complete, or had failed",
    "status": "HTTP status, 0 for none",
    "failure": f"0 for none, else the index in: {', '.join(KINDS)} (from 1)",
    "prompt_tokens": "by usage, cached ones included; -1: not reported",
    "output_tokens": "by usage, reasoning included; -1: not reported",
    "cached_tokens": "by usage; -1: not reported",
    "reasoning_tokens": "by usage; -1: not reported",
    "asked_tokens": "max_tokens of the request",
    "chunk_counts": "chunks with a token",
    "chunk_gaps": (
        "for each chunk of each request, nanoseconds since the one before; for its first one since `first`, or since "
        "`began` where `first` was not reached"
    ),
}


def samples_path(result: Path) -> Path:
    """Return the path of a result's samples."""
    return result.with_name(f"{result.stem}.samples.npz")


def write_samples(path: Path, cells: Mapping[str, tuple[Columns, int]]) -> SampleFile:
    """Write the samples of cells atomically.

    Args:
        path: The file.
        cells: Samples and start of the load (nanoseconds of CLOCK_MONOTONIC), by the cell's id.

    Returns:
        The result's record of the file.

    Raises:
        OSError: It could not be written.
    """
    content = io.BytesIO()
    arrays = {
        f"{name}/{column}": values for name, cell in cells.items() for column, values in _stored_arrays(*cell).items()
    }
    with zipfile.ZipFile(content, "w") as file:
        for name, values in arrays.items():
            array = io.BytesIO()
            np.lib.format.write_array(array, values, allow_pickle=False)
            # With a fixed date, so that the same samples give the same file; level 1 takes a third of the time.
            entry = zipfile.ZipInfo(f"{name}.npy")
            file.writestr(entry, array.getbuffer(), zipfile.ZIP_DEFLATED, compresslevel=1)
    return _write(path, content.getvalue())


def copy_samples(source: Path, path: Path) -> SampleFile:
    """Write the content of another sample file atomically; return the result's record of the copy.

    Raises:
        OSError: It could not be read or written.
    """
    return _write(path, source.read_bytes())


def _write(path: Path, content: bytes) -> SampleFile:
    write_whole(path, content)
    return SampleFile(file=path.name, sha256=hashlib.sha256(content).hexdigest())


def read_samples(path: Path, sha256: str | None = None) -> dict[str, tuple[Columns, int]]:
    """Return the samples of every cell of a file, by id, each with the instant at which its load began.

    Args:
        path: The file.
        sha256: The expected digest; None accepts any.

    Raises:
        ResultError: It cannot be read, is not the file that the result names, or holds no samples.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        consequence = f"the samples cannot be read: {error.strerror}."
        repair = "put the file into the folder of its result."
        raise ResultError(Problem(str(path), None, consequence, repair)) from None
    if sha256 is not None and hashlib.sha256(data).hexdigest() != sha256:
        consequence = "the samples are not those of the result: their SHA-256 differs."
        raise ResultError(Problem(str(path), None, consequence, "restore the file, or measure again."))
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            names = sorted({name.rpartition("/")[0] for name in file.files})
            return {name: _read({column: _column(file, name, column) for column in COLUMNS}) for name in names}
    except (EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
        consequence = f"the file is not a sample file of `bezel bench` ({error})."
        raise ResultError(Problem(str(path), None, consequence, "restore the file, or measure again.")) from None


def _column(file: Mapping[str, Ints], name: str, column: str) -> Ints:
    if column in _LATER and f"{name}/{column}" not in file:
        return np.full(len(file[f"{name}/index"]), NOT_REACHED)
    return file[f"{name}/{column}"]


def _stored_arrays(columns: Columns, began: int) -> dict[str, Ints]:
    instants = {name: np.where(columns[name] > 0, columns[name] - began, NOT_REACHED) for name in INSTANTS}
    firsts = np.cumsum(columns.chunk_counts) - columns.chunk_counts
    gaps = np.diff(columns.chunks, prepend=0)
    has = columns.chunk_counts > 0
    gaps[firsts[has]] = columns.chunks[firsts[has]] - _origin(columns["first"], began)[has]
    rest = {name: columns[name] for name in FIELDS if name not in INSTANTS}
    whole = rest | instants
    arrays = {name: whole[name] for name in FIELDS}
    arrays |= {"failure": columns.failure, "chunk_counts": columns.chunk_counts, "chunk_gaps": gaps}
    return {"began": np.array([began])} | {name: _narrow(values) for name, values in arrays.items()}


def _read(arrays: dict[str, Ints]) -> tuple[Columns, int]:
    wide = {name: values.astype(np.int64) for name, values in arrays.items()}
    began = int(wide["began"][0])
    for name in INSTANTS:
        wide[name] = np.where(wide[name] == NOT_REACHED, 0, wide[name] + began)
    counts, gaps = wide["chunk_counts"], wide["chunk_gaps"]
    total = np.cumsum(gaps)
    has = counts > 0
    firsts = (np.cumsum(counts) - counts)[has]
    # The cumulative sum runs over all requests: each request's own begins at its first chunk.
    origin = _origin(wide["first"], began)[has] - total[firsts] + gaps[firsts]
    chunks = total + np.repeat(origin, counts[has])
    return Columns({name: wide[name] for name in FIELDS}, wide["failure"], chunks, counts), began


def _origin(first: Ints, began: int) -> Ints:
    return np.where(first > 0, first, began)


def _narrow(values: Ints) -> Ints:
    if len(values) == 0:
        return values
    low, high = int(values.min()), int(values.max())
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return values.astype(kind)
    return values
