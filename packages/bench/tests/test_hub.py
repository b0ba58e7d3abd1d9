"""Data sets of a hub on loopback: the first rows of a split, once; the token for the hub alone; mistakes by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bench_support.http_server import Answer, Call, Server, serving
from bezel_base.errors import UserError
from bezel_bench.prompts.datasets import read_entries
from bezel_bench.prompts.first_rows import ROWS
from bezel_bench.prompts.hub import fetch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COMMIT = "c" * 40
LONG = f"{'d' * 150}/{'f' * 240}.csv"
FILES = [
    "README.md",
    "data/train-00000-of-00002.csv",
    "data/train-00001-of-00002.csv",
    "data/test.csv",
    "constrained.csv",
    "talks-00000-of-00002.jsonl",
    "talks-00001-of-00002.jsonl",
    "mixed-00000-of-00002.csv",
    "mixed-00001-of-00002.csv",
    "array-00000-of-00002-0123456789abcdef.json",
    "array-00001-of-00002-fedcba9876543210.json",
    "lines/0000.json",
    "lines/0001.json",
    "semicolons.csv",
    LONG,
    "broken.json",
    "latin.jsonl",
    "cut.jsonl",
    "rows.parquet",
]
TEXTS = {
    "data/train-00000-of-00002.csv": 'prompt\n"Why,\nsay?"\n',
    "data/train-00001-of-00002.csv": "prompt\nWhen?\n",
    "talks-00000-of-00002.jsonl": f'{{"prompt": "0"}}\n\n{{"prompt": "{"x" * 200}"}}\n' * (ROWS // 2),
    "mixed-00000-of-00002.csv": "prompt\na\n",
    "mixed-00001-of-00002.csv": "answer\nb\n",
    "array-00000-of-00002-0123456789abcdef.json": '\n[{"prompt": "one"},\n{"prompt": "two"}]',
    "array-00001-of-00002-fedcba9876543210.json": '["three"]',
    "lines/0000.json": '{"prompt": "4"}\n',
    "lines/0001.json": '{"prompt": "5\u2028"}',
    "semicolons.csv": 'prompt;id\n"a, b; ""c""";1\n',
    LONG: "prompt\nlong\n",
    "broken.json": '[{"prompt": "a"}, {"pro',
}


LISTINGS = {
    "asked/revision/main": Answer(json={"sha": COMMIT, "siblings": [{"rfilename": path} for path in FILES]}),
    "broken/revision/v1": Answer(json={"error": "?"}),
    "gated/revision/main": Answer(403, headers={"x-error-message": "You are not in the authorized list."}),
    "short/revision/main": Answer(text="{", headers={"content-length": "99", "connection": "close"}),
    "busy/revision/main": Answer(429),
    "script/revision/main": Answer(json={"sha": COMMIT, "siblings": [{"rfilename": "script.py"}]}),
}


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Server]:
    """A store to which the hub redirects."""
    with serving() as server:
        server.routes[:] = [lambda _: Answer(text="prompt\nfrom the store\n")]
        yield server


@pytest.fixture(scope="module")
def shared_hub(elsewhere: Server) -> Iterator[Server]:
    def answer(call: Call) -> Answer | None:
        if answered := LISTINGS.get(call.path.removeprefix("/api/datasets/ann/")):
            return answered
        if call.path.endswith("/data/test.csv"):
            return Answer(302, headers={"location": f"{elsewhere.url}/stored"})
        path = call.path.removeprefix(f"/datasets/ann/asked/resolve/{COMMIT}/")
        if path == "latin.jsonl":
            return Answer(chunks=[b'{"prompt": "caf\xe9"}\n'])
        if path == "cut.jsonl":
            return Answer(text='{"prompt": "a"}', headers={"content-length": "99", "connection": "close"})
        return Answer(text=TEXTS[path]) if path in TEXTS else None

    with serving() as server:
        server.routes[:] = [answer]
        yield server


@pytest.fixture
def environ(shared_hub: Server, elsewhere: Server, tmp_path: Path) -> dict[str, str]:
    shared_hub.calls.clear()
    elsewhere.calls.clear()
    return {"HF_ENDPOINT": f"{shared_hub.url}/", "HF_TOKEN": "hf_planted", "XDG_CACHE_HOME": str(tmp_path)}


def test_rows_of_all_files_of_a_split_are_read_once(shared_hub: Server, environ: dict[str, str]) -> None:
    file = fetch("ann/asked:train", environ)
    assert [entry.text for entry in read_entries(file)] == ["Why,\nsay?", "When?"]
    assert fetch("ann/asked:train", environ) == file
    assert [call.path.rpartition("/")[2] for call in shared_hub.calls if "/resolve/" in call.path] == [
        "train-00000-of-00002.csv",
        "train-00001-of-00002.csv",
    ]
    assert {call.headers.get("authorization") for call in shared_hub.calls} == {"Bearer hf_planted"}


@pytest.mark.parametrize(("name", "value"), [("HF_HUB_OFFLINE", "1"), ("HF_DATASETS_OFFLINE", "true")])
def test_offline_what_was_kept_is_read_and_the_hub_not_asked(
    name: str, value: str, shared_hub: Server, environ: dict[str, str]
) -> None:
    variable = {name: value}
    with pytest.raises(UserError, match=rf"{name} is set, and .*/bezel/datasets has no copy of it"):
        fetch("ann/asked:train", environ | variable)
    assert not shared_hub.calls
    file = fetch("ann/asked:train", environ)
    shared_hub.calls.clear()
    assert fetch("ann/asked:train", environ | variable | {"HF_ENDPOINT": "http://127.0.0.1:9"}) == file
    for other in ("ann/asked:talks", "ann/asked@v2:train", "ann/none:train"):
        with pytest.raises(UserError, match="has no copy of it"):
            fetch(other, environ | variable)
    file.unlink()
    with pytest.raises(UserError, match="has no copy of it"):
        fetch("ann/asked:train", environ | variable)
    assert not shared_hub.calls
    assert fetch("ann/asked:train", environ | {name: "0"}) == file


@pytest.mark.parametrize("content", [b"", b"\0\0", b"\xff"])
def test_offline_a_place_that_was_cut_is_none(content: bytes, environ: dict[str, str]) -> None:
    (place,) = fetch("ann/asked:train", environ).parents[2].glob("*.place")
    place.write_bytes(content)
    with pytest.raises(UserError, match="has no copy of it"):
        fetch("ann/asked:train", environ | {"HF_HUB_OFFLINE": "1"})


def test_reading_ends_with_the_rows_that_a_load_needs(shared_hub: Server, environ: dict[str, str]) -> None:
    assert len(read_entries(fetch("ann/asked:talks", environ))) == ROWS
    # The second file is not there, and is not asked for.
    assert not [call.path for call in shared_hub.calls if "talks-00001" in call.path]


@pytest.mark.parametrize(
    ("split", "texts"),
    [
        ("array", ["one", "two", "three"]),
        ("array-00001-of-00002-fedcba9876543210", ["three"]),
        ("lines", ["4", "5\u2028"]),
        ("semicolons", ['a, b; "c"']),
        ("f" * 240, ["long"]),
    ],
)
def test_files_of_one_split_are_read_together(split: str, texts: list[str], environ: dict[str, str]) -> None:
    assert [entry.text for entry in read_entries(fetch(f"ann/asked:{split}", environ))] == texts


def test_parquet_of_a_split_is_read_together(shared_hub: Server, environ: dict[str, str]) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    stored: dict[str, bytes] = {}
    for number, texts in enumerate((pa.array([], pa.string()), pa.array(["a"], pa.large_string()))):
        parquet.write_table(pa.table({"prompt": texts}), sink := pa.BufferOutputStream())
        stored[f"{number:04}.parquet"] = sink.getvalue().to_pybytes()

    def answer(call: Call) -> Answer | None:
        if call.path.startswith("/api/datasets/ann/parts/"):
            return Answer(json={"sha": COMMIT, "siblings": [{"rfilename": name} for name in stored]})
        body = stored.get(call.path.rpartition("/")[2], b"")
        begin = int(call.headers.get("range", "bytes=0-")[6:-1])
        return Answer(206, chunks=[body[begin:]], headers={"content-length": str(len(body) - begin)}) if body else None

    shared_hub.routes.insert(0, answer)
    try:
        assert [entry.text for entry in read_entries(fetch("ann/parts", environ))] == ["a"]
    finally:
        shared_hub.routes.remove(answer)


def test_a_part_of_a_split_is_not_the_split(environ: dict[str, str]) -> None:
    parts = [fetch(f"ann/asked:{split}", environ) for split in ("train-00000-of-00002", "train")]
    assert [len(read_entries(part)) for part in parts] == [1, 2]


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("mixed", r"mixed-00001-of-00002.csv\n   it has the columns answer, the first file prompt"),
        ("latin", "it is not text in UTF-8"),
        ("cut", "cut.jsonl cannot be read"),
        ("broken", "it begins as a JSON array and is none"),
        ("rows", "HTTP 404"),
    ],
)
def test_a_broken_file_leaves_nothing_in_the_cache(
    split: str, message: str, environ: dict[str, str], tmp_path: Path
) -> None:
    if split == "rows":
        pytest.importorskip("pyarrow")
    with pytest.raises(UserError, match=message):
        fetch(f"ann/asked:{split}", environ)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_token_of_the_hub_is_not_sent_elsewhere(elsewhere: Server, environ: dict[str, str]) -> None:
    assert [entry.text for entry in read_entries(fetch("ann/asked:test", environ))] == ["from the store"]
    assert [call.headers.get("authorization") for call in elsewhere.calls] == [None]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ann/asked", r"several files of it match.*\n.*name one: ann/asked:SPLIT"),
        ("ann/asked:valid", "no file of it match"),
        ("ann/nothing", "HTTP 404"),
        ("ann/broken@v1", "lists no files of a data set"),
        ("ann/gated", r"HTTP 403 .*main. You are not in the authorized list.\n.*HF_TOKEN"),
        ("ann/short", r"cannot be read: .*\n.*check HF_ENDPOINT and the network"),
        ("ann/busy", r"HTTP 429 .*\n.*try again later"),
        ("ann/script", r"none is .parquet.*\n.*ann/script@refs/convert/parquet:SPLIT"),
        ("a b", "expected the name of a data set"),
        ("https://huggingface.co/datasets/ann/asked", "expected the name of a data set"),
    ],
)
def test_a_wrong_name_is_refused(name: str, message: str, environ: dict[str, str]) -> None:
    with pytest.raises(UserError, match=message):
        fetch(name, environ)


def test_a_cache_that_cannot_be_written_is_named(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"cannot be kept in .*\n.*set XDG_CACHE_HOME"):
        fetch("ann/asked:train", environ | {"XDG_CACHE_HOME": str(tmp_path / "file")})


def test_a_kept_file_is_read_where_its_place_cannot_be_kept(environ: dict[str, str], tmp_path: Path) -> None:
    file = fetch("ann/asked:train", environ)
    (place,) = tmp_path.rglob("*.place")
    place.unlink()
    place.mkdir()
    assert fetch("ann/asked:train", environ) == file


@pytest.mark.parametrize("address", ["http://127.0.0.1:9", "127.0.0.1", "http://a b", "http://a:b", "http://[::1"])
def test_a_hub_that_is_not_there_is_named(address: str, environ: dict[str, str]) -> None:
    with pytest.raises(UserError, match="check HF_ENDPOINT and the network"):
        fetch("ann/asked", environ | {"HF_ENDPOINT": address})
