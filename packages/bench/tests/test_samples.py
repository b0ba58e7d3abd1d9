"""The file of raw samples: nothing is lost, nothing is taken for another file, and it stays small."""

import pickle
from array import array

import numpy as np
import pytest

from bench_support.cells import record
from bench_support.runs import BEGAN, MS, SECOND, closed_loop, columns, failed_sample, good_sample, measurement, noise
from bezel_bench.commands.measure.checkpoint import ResultFiles
from bezel_bench.result.columns import FIELDS, Columns
from bezel_bench.result.document import ResultError
from bezel_bench.result.pickled import pack, unpack
from bezel_bench.result.sample import Sample
from bezel_bench.result.sample_file import COLUMNS, read_samples, samples_path, write_samples


def same(one: Columns, other: Columns) -> bool:
    pairs = [(one[name], other[name]) for name in FIELDS]
    pairs += [(one.failure, other.failure), (one.chunks, other.chunks), (one.chunk_counts, other.chunk_counts)]
    return all(np.array_equal(left, right) for left, right in pairs)


def test_samples_come_out_of_the_file_as_they_went_in(tmp_path):
    dice = noise(1)
    odd = [
        failed_sample(0, BEGAN, "timeout"), good_sample(1, BEGAN, ttft=300 * SECOND, tokens=1), Sample(index=2),
        Sample(index=9, sent=BEGAN, done=BEGAN + 9, failure="truncated", chunks=array("q", [BEGAN + 3, BEGAN + 5])),
        good_sample(5, BEGAN - 3 * SECOND),
        good_sample(3, BEGAN + 5, step=dice.randrange(9 * SECOND), tokens=70), failed_sample(4, BEGAN + 7, "http_429"),
    ]  # fmt: skip
    cells = {
        "c1-u4": (columns(closed_loop(4, 10)), BEGAN),
        "c2-u1": (Columns.of(odd), BEGAN),
        "c3": (Columns.of([]), BEGAN),
    }

    written = write_samples(tmp_path / "r.samples.npz", cells)

    read_back = read_samples(tmp_path / "r.samples.npz", written.sha256)
    assert read_back.keys() == cells.keys()
    for name, (rows, began) in read_back.items():
        assert (began, same(rows, cells[name][0])) == (BEGAN, True), name


def test_the_columns_are_those_that_are_documented(tmp_path):
    write_samples(tmp_path / "r.samples.npz", {"c1": (columns(closed_loop(1, 3)), BEGAN)})
    with np.load(tmp_path / "r.samples.npz", allow_pickle=False) as file:
        assert {name.removeprefix("c1/") for name in file.files} == COLUMNS.keys()
        assert file["c1/sent"].tolist() == [0, 201 * MS, 402 * MS]


def test_the_same_samples_are_the_same_file(tmp_path):
    cells = {"c1": (columns(closed_loop(2, 5)), BEGAN)}
    one, other = (write_samples(tmp_path / name, cells).sha256 for name in ("a.npz", "b.npz"))
    assert one == other


def test_another_file_is_found_out(tmp_path):
    path = samples_path(tmp_path / "r.json")
    written = write_samples(path, {"c1": (columns(closed_loop(1, 3)), BEGAN)})
    write_samples(path, {"c1": (columns(closed_loop(1, 4)), BEGAN)})
    with pytest.raises(ResultError, match="the samples are not those of the result"):
        read_samples(path, written.sha256)


def test_a_file_of_before_the_kernels_stamps_is_read_without_them(tmp_path):
    rows = columns(closed_loop(1, 3))
    rows["departed"][:] = rows["sent"] + 9
    write_samples(tmp_path / "new.npz", {"c1": (rows, BEGAN)})
    with np.load(tmp_path / "new.npz") as file:
        arrays = {name: file[name] for name in file.files}
    for missing, is_read in (("departed", True), ("first_after", True), ("sent", False)):
        arrays.pop(f"c1/{missing}")
        np.savez(tmp_path / "old.npz", **arrays)
        if is_read:
            (old, _) = read_samples(tmp_path / "old.npz")["c1"]
            assert (old["departed"].tolist(), old["sent"].tolist()) == ([0] * 3, rows["sent"].tolist())
        else:
            with pytest.raises(ResultError, match="is not a sample file"):
                read_samples(tmp_path / "old.npz")


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip at all"])
def test_what_holds_no_samples_is_reported(tmp_path, content):
    (tmp_path / "r.samples.npz").write_bytes(content)
    with pytest.raises(ResultError, match="is not a sample file"):
        read_samples(tmp_path / "r.samples.npz")
    with pytest.raises(ResultError, match="put the file into the folder of its result"):
        read_samples(tmp_path / "absent.npz")


def test_a_measurement_passes_a_pipe_whole():
    cut = Sample(index=9, sent=BEGAN, done=BEGAN + 9, failure="truncated", detail="é", chunks=array("q", [BEGAN + 3]))
    samples = [*closed_loop(4, 2).samples, failed_sample(8, BEGAN, "http_429", detail="slow"), cut, Sample(index=10)]
    for run in (measurement(samples, cpu_seconds=0.5), measurement([])):
        assert unpack(pickle.loads(pickle.dumps(pack(run)))) == run  # noqa: S301 - its own bytes


def test_a_result_copies_the_samples_that_its_process_kept(tmp_path):
    measured, files = record(closed_loop(4, 10)), ResultFiles(tmp_path / "r.json", "bezel-bench")
    (tmp_path / "r.cells").mkdir()
    files.keep(measured)
    copied = files.write_samples([measured.cell], tmp_path / "copied.npz")
    # Another process reads them, and so sees that they are whole.
    continued = ResultFiles(tmp_path / "r.json", "bezel-bench")
    packed = continued.write_samples([measured.cell], tmp_path / "packed.npz")
    assert (copied.file, packed.file, copied.sha256) == ("copied.npz", "packed.npz", packed.sha256)
    assert same(read_samples(tmp_path / "copied.npz", copied.sha256)[measured.cell.id][0], measured.samples)
    (tmp_path / "r.cells" / f"{measured.cell.id}.npz").write_bytes(b"PK")
    with pytest.raises(ResultError, match="is not a sample file"):
        continued.write_samples([measured.cell], tmp_path / "packed.npz")
    assert files.write_samples([], tmp_path / "none.npz") is None


def test_rows_are_chosen_with_their_chunks():
    rows = columns(measurement([good_sample(index, BEGAN + index, tokens=index + 1) for index in range(6)]))
    chosen = rows.where(np.array([5, 0, 2]))
    assert chosen.chunk_counts.tolist() == [6, 1, 3]
    assert chosen.chunks.tolist() == [
        *(BEGAN + 5 + 100 * MS + step * 10 * MS for step in range(6)), BEGAN + 100 * MS,
        *(BEGAN + 2 + 100 * MS + step * 10 * MS for step in range(3)),
    ]  # fmt: skip
    assert (chosen.gaps() == 10 * MS).all()
    assert len(chosen.gaps()) == 5 + 2
    assert rows.where(np.zeros(6, np.bool_)).gaps().tolist() == []
    again = chosen.where(np.array([2, 0]))
    assert again.chunks.tolist() == [*chosen.chunks[7:], *chosen.chunks[:6]]
    assert (again.gaps() == 10 * MS).all()


@pytest.mark.slow
def test_a_request_takes_few_bytes(tmp_path):
    size, tokens = 20_000, 16
    dice = np.random.default_rng(3)
    sent = BEGAN + np.sort(dice.integers(0, 600 * SECOND, size))
    gaps = dice.integers(9 * MS, 11 * MS, (size, tokens))
    chunks = sent[:, None] + np.cumsum(gaps, axis=1)
    fields = dict.fromkeys(FIELDS, np.zeros(size, np.int64))
    fields |= {"index": np.arange(size), "sent": sent, "planned": sent, "first": chunks[:, 0], "last": chunks[:, -1]}
    fields |= {"done": chunks[:, -1] + MS, "output_tokens": np.full(size, tokens), "prompt_tokens": np.full(size, 128)}
    rows = Columns(fields, np.zeros(size, np.int64), chunks.ravel(), np.full(size, tokens))

    written = write_samples(tmp_path / "r.samples.npz", {"c1": (rows, BEGAN)})
    (read_back, _) = read_samples(tmp_path / "r.samples.npz", written.sha256)["c1"]
    assert same(rows, read_back)
    assert (tmp_path / "r.samples.npz").stat().st_size < 90 * size
