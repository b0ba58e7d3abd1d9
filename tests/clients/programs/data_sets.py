"""Files of prompts that pandas, pyarrow and `datasets` write, as the benchmark reads them, and a hub with their parts.

Arguments: the folders of the packages that read, then an empty folder.
"""

import json
import re
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import datasets
import pandas as pd
import pyarrow as pa
from outcomes import Calls
from pyarrow import parquet

sys.path[:0] = sys.argv[1:-1]
from bezel_base.errors import UserError  # noqa: E402
from bezel_bench.prompts.datasets import read_entries  # noqa: E402
from bezel_bench.prompts.hub import fetch  # noqa: E402

FOLDER = Path(sys.argv[-1])
TEXTS = ["What?", 'Why, say\n"we"\u2028?', "é" * 70_000]
CHATS = [[{"role": "user", "content": text}, {"role": "assistant", "content": "a"}] for text in TEXTS]
FRAME = pd.DataFrame({"prompt": TEXTS, "tokens": [3.0, 4.0, 5.0], "at": pd.Timestamp(1)})
SHARDS = [f"train-0000{number}-of-00003-{number:016x}.parquet" for number in range(3)]
calls = Calls(f"datasets {version('datasets')}, pandas {version('pandas')}, pyarrow {version('pyarrow')}")


def reads(name: str, write: Callable[[Path], Any], column: str = "") -> None:
    """Write a file, and expect its texts and lengths."""
    file = FOLDER / name

    def check() -> None:
        write(file)
        entries = read_entries(file, column, "tokens")
        assert [(entry.text, entry.output_tokens) for entry in entries] == list(zip(TEXTS, (3, 4, 5), strict=True))

    calls.passes(f"{name}, {column or 'no column named'}", check)


class Hub(BaseHTTPRequestHandler):
    """A hub's listing, and its files in parts."""

    def log_message(self, *_: Any) -> None:
        """Print nothing between the outcomes."""

    def do_GET(self) -> None:
        body = json.dumps({"sha": "c" * 40, "siblings": [{"rfilename": f"data/{name}"} for name in SHARDS]}).encode()
        if "/resolve/" in self.path:
            body = (FOLDER / "hub" / "data" / Path(unquote(self.path)).name).read_bytes()
        begin = int(re.sub(r"\D", "", self.headers.get("range", "0")))
        self.send_response(206 if begin else 200)
        self.send_header("content-length", str(len(body) - begin))
        self.end_headers()
        self.wfile.write(body[begin:])


def takes_a_split() -> None:
    """Take the parts of a split from a hub, and compare with what `datasets` loads."""
    (FOLDER / "hub" / "data").mkdir(parents=True)
    for name, text in zip(SHARDS, TEXTS, strict=True):
        datasets.Dataset.from_dict({"prompt": [text]}).to_parquet(FOLDER / "hub" / "data" / name)
    hub = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=hub.serve_forever, daemon=True).start()
    environ = {"HF_ENDPOINT": f"http://127.0.0.1:{hub.server_port}", "XDG_CACHE_HOME": str(FOLDER / "cache")}
    loaded = datasets.load_dataset(str(FOLDER / "hub"), split="train")
    assert [entry.text for entry in read_entries(fetch("a/b:train", environ))] == loaded["prompt"][:] == TEXTS


def of_chats(file: Path) -> None:
    """Write messages, which Parquet stores with the fields of all."""
    chats = [[first, second | {"name": "n", "at": pd.Timestamp(1)}] for first, second in CHATS]
    datasets.Dataset.from_dict({"messages": chats, "tokens": [3, 4, 5]}).to_parquet(file)


datasets.disable_progress_bars()
for codec in ("none", "snappy", "gzip", "brotli", "zstd", "lz4"):
    reads(f"{codec}.parquet", lambda file, codec=codec: FRAME.to_parquet(file, compression=codec, index=True))
TABLE = pa.table({"a.b": pa.array(TEXTS, pa.large_string()).dictionary_encode(), "tokens": ["3", "4", "5"]})
reads("dictionary.parquet", lambda file: parquet.write_table(TABLE, file, row_group_size=1), "a.b")
reads("chats.parquet", of_chats)
reads("frame.csv", FRAME.to_csv, "prompt")
reads("semicolons.csv", lambda file: FRAME.to_csv(file, sep=";", encoding="utf-8-sig"))
reads("frame.tsv", lambda file: FRAME.to_csv(file, sep="\t"))
reads("frame.jsonl", lambda file: FRAME.to_json(file, orient="records", lines=True, force_ascii=False))
reads("frame.json", lambda file: FRAME.to_json(file, orient="records", indent=1))
reads("set.jsonl", lambda file: datasets.Dataset.from_pandas(FRAME).to_json(file, force_ascii=False))
calls.passes("load_dataset of parts with hashes", takes_a_split)
FRAME.to_json(FOLDER / "columns.json")
calls.raises("a table by columns is no list of prompts", UserError, lambda: read_entries(FOLDER / "columns.json"))
