"""Calls of gcsfs, by the file systems' interface; prints a JSON object a line for each call.

Needs GOOGLE_APPLICATION_CREDENTIALS, GOOGLE_CLOUD_PROJECT and TRIED_ENDPOINT.
"""

import os
import tempfile
from importlib.metadata import version
from pathlib import Path

import gcsfs
from outcomes import Calls

calls = Calls(f"gcsfs {version('gcsfs')}")
PROJECT = os.environ["GOOGLE_CLOUD_PROJECT"]
SHELF = "by-gcsfs"
LARGE = b"0123456789" * 2_000_000
OPTIONS = {"project": PROJECT, "token": "google_default", "endpoint_url": os.environ["TRIED_ENDPOINT"]}
files = gcsfs.GCSFileSystem(**OPTIONS, cache_timeout=0, use_listings_cache=False)


def equal(actual, wanted):
    assert actual == wanted, f"{str(actual)[:200]} in place of {str(wanted)[:200]}"


def names(*arguments, **named):
    return sorted(files.find(*arguments, **named))


def check_write(name, content, block_size=None):
    more = {"block_size": block_size} if block_size else {}
    with files.open(f"{SHELF}/{name}", "wb", **more) as opened:
        opened.write(content)
    equal(files.cat(f"{SHELF}/{name}"), content)


def check_append():
    with files.open(f"{SHELF}/piped", "ab") as opened:
        opened.write(b" more")
    equal(files.cat(f"{SHELF}/piped"), b" more")  # gcsfs itself says that it writes over
    files.pipe(f"{SHELF}/piped", b"piped")


def moved_folder():
    files.put(str(FOLDER), f"{SHELF}/tree", recursive=True)
    equal(names(f"{SHELF}/tree"), [f"{SHELF}/tree/in/two", f"{SHELF}/tree/one"])
    files.mv(f"{SHELF}/tree", f"{SHELF}/moved", recursive=True)
    equal(names(f"{SHELF}/moved"), [f"{SHELF}/moved/in/two", f"{SHELF}/moved/one"])


def got_folder():
    files.get(f"{SHELF}/moved", f"{FOLDER}/got", recursive=True)
    equal((FOLDER / "got" / "in" / "two").read_bytes(), b"two")


def read_part():
    with files.open(f"{SHELF}/chunked", "rb") as opened:
        opened.seek(15)
        equal(opened.read(5), b"56789")


def changed_metadata():
    files.setxattrs(f"{SHELF}/piped", tried="yes")
    equal(files.getxattr(f"{SHELF}/piped", "tried"), "yes")


def removed_bucket():
    files.rm(SHELF, recursive=True)
    assert not files.exists(SHELF)


FOLDER = Path(tempfile.mkdtemp())
(FOLDER / "in").mkdir()
(FOLDER / "one").write_bytes(b"one")
(FOLDER / "in" / "two").write_bytes(b"two")
for name, call in {
    "mkdir": lambda: files.mkdir(SHELF, location="us-east4"),
    "buckets": lambda: equal(SHELF in [one.strip("/") for one in files.buckets], True),
    "exists": lambda: equal((files.exists(SHELF), files.exists("by-nobody/x")), (True, False)),
    "pipe": lambda: files.pipe(f"{SHELF}/piped", b"piped"),
    "cat": lambda: equal(files.cat(f"{SHELF}/piped"), b"piped"),
    "cat of a range": lambda: equal(files.cat_file(f"{SHELF}/piped", 1, 3), b"ip"),
    "open to append": check_append,
    "open to write": lambda: check_write("small", b"small"),
    "open to write in chunks": lambda: check_write("chunked", LARGE, 5 << 20),
    "open to write no bytes": lambda: check_write("empty", b""),
    "pipe of 20 MB": lambda: files.pipe(f"{SHELF}/large", LARGE),
    "open to read a part": read_part,
    "touch": lambda: files.touch(f"{SHELF}/touched"),
    "info": lambda: equal(files.info(f"{SHELF}/large")["size"], len(LARGE)),
    "ls": lambda: equal(len(files.ls(SHELF, detail=False)), 6),
    "glob": lambda: equal(files.glob(f"{SHELF}/*ou*"), [f"{SHELF}/touched"]),
    "walk": lambda: equal([len(file_names) for _, _, file_names in files.walk(SHELF)], [6]),
    "setxattrs": changed_metadata,
    "cp": lambda: files.cp(f"{SHELF}/piped", f"{SHELF}/a/copied"),
    "merge": lambda: files.merge(f"{SHELF}/merged", [f"{SHELF}/piped", f"{SHELF}/small"]),
    "put, mv of a folder": moved_folder,
    "get of a folder": got_folder,
    "du": lambda: equal(files.du(f"{SHELF}/moved"), 6),
    "checksum": lambda: files.checksum(f"{SHELF}/piped"),
    "rm": lambda: files.rm(f"{SHELF}/small"),
    "rm of a folder": lambda: files.rm(f"{SHELF}/moved", recursive=True),
    "rm of a bucket": removed_bucket,
}.items():
    calls.passes(name, call)
calls.raises("cat of none", FileNotFoundError, lambda: files.cat("by-nobody/x"))
