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
    "array.json",
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
    "array.json": '[{"prompt": "one"}, {"prompt": "two"}]',
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
        if call.path == "/api/datasets/ann/asked/revision/main":
            return Answer(json={"sha": COMMIT, "siblings": [{"rfilename": path} for path in FILES]})
        if call.path == "/api/datasets/ann/broken/revision/v1":
            return Answer(json={"error": "?"})
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


def test_reading_ends_with_the_rows_that_a_load_needs(shared_hub: Server, environ: dict[str, str]) -> None:
    assert len(read_entries(fetch("ann/asked:talks", environ))) == ROWS
    # The second file is not there, and is not asked for.
    assert not [call.path for call in shared_hub.calls if "talks-00001" in call.path]


def test_an_array_is_read_whole(environ: dict[str, str]) -> None:
    assert [entry.text for entry in read_entries(fetch("ann/asked:array", environ))] == ["one", "two"]


@pytest.mark.parametrize(
    ("split", "message"),
    [
        ("mixed", r"mixed-00001-of-00002.csv\n   it has the columns answer, the first file prompt"),
        ("latin", "it is not text in UTF-8"),
        ("cut", "cut.jsonl cannot be read"),
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
        ("a b", "expected the name of a data set"),
    ],
)
def test_a_wrong_name_is_refused(name: str, message: str, environ: dict[str, str]) -> None:
    with pytest.raises(UserError, match=message):
        fetch(name, environ)


def test_a_hub_that_is_not_there_is_named(environ: dict[str, str]) -> None:
    with pytest.raises(UserError, match="check HF_ENDPOINT and the network"):
        fetch("ann/asked", environ | {"HF_ENDPOINT": "http://127.0.0.1:9"})
