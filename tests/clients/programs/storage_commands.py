"""Commands of gcloud and rclone on buckets and objects; prints a JSON object a line for each command.

Arguments: the program's name, and its path. Needs the variables of `bezel local env` and TRIED_ENDPOINT.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from outcomes import Calls

NAME, PROGRAM = sys.argv[1:]
SHELF = f"by-{NAME}"
PROJECT = os.environ["GOOGLE_CLOUD_PROJECT"]
FOLDER = Path(tempfile.mkdtemp())
LARGE = b"0123456789" * 2_000_000
_SECONDS = 90  # for one command


def run(*arguments: object, content: bytes = b"") -> bytes:
    """The standard output of a command that has to succeed."""
    command = [PROGRAM, *map(str, arguments)]
    ended = subprocess.run(command, input=content, capture_output=True, timeout=_SECONDS, check=False)
    assert ended.returncode == 0, f"exit status {ended.returncode}: {ended.stderr.decode()[-600:]}"
    return ended.stdout


def equal(actual: object, wanted: object) -> None:
    """Compare a result."""
    assert actual == wanted, f"{str(actual)[:200]} in place of {str(wanted)[:200]}"


def version() -> str:
    """The program's version."""
    parts = run("version").decode().split()
    return next(word.lstrip("v") for word in parts if word.lstrip("v")[:1].isdigit())


def local_files() -> None:
    """Files to upload."""
    (FOLDER / "in").mkdir()
    (FOLDER / "small").write_bytes(b"small")
    (FOLDER / "empty").write_bytes(b"")
    (FOLDER / "in" / "large").write_bytes(LARGE)


def of_gcloud() -> dict[str, Callable[[], object]]:
    """Commands of `gcloud storage`."""
    url = f"gs://{SHELF}"
    ls, cp, rm, cat = (["storage", word] for word in ("ls", "cp", "rm", "cat"))
    buckets, objects = ["storage", "buckets"], ["storage", "objects"]
    grant = ["--member=allAuthenticatedUsers", "--role=roles/storage.objectViewer"]
    return {
        "create a bucket": lambda: run(*buckets, "create", "--location=us-east4", url),
        "list buckets": lambda: equal(f"{url}/" in run(*ls).decode().split(), True),
        "describe a bucket": lambda: equal(b"US-EAST4" in run(*buckets, "describe", url), True),
        "change a bucket": lambda: run(*buckets, "update", url, "--update-labels=tried=yes"),
        "get a policy": lambda: equal(b"legacyBucketOwner" in run(*buckets, "get-iam-policy", url), True),
        "add to a policy": lambda: run(*buckets, "add-iam-policy-binding", url, *grant),
        "cp": lambda: run(*cp, FOLDER / "small", f"{url}/small"),
        "cp of no bytes": lambda: run(*cp, FOLDER / "empty", f"{url}/empty"),
        "cp of 20 MB": lambda: run(*cp, FOLDER / "in" / "large", f"{url}/large"),
        "cp from a pipe": lambda: run(*cp, "-", f"{url}/piped", content=b"piped"),
        "cp with a list of the project": lambda: run(
            *cp, "--predefined-acl=private", FOLDER / "small", f"{url}/private"
        ),
        "cat": lambda: equal(run(*cat, f"{url}/piped"), b"piped"),
        "cat of a range": lambda: equal(run(*cat, "-r", "1-3", f"{url}/piped"), b"ipe"),
        "cp to a file": lambda: (
            run(*cp, f"{url}/large", FOLDER / "down"),
            equal((FOLDER / "down").read_bytes(), LARGE),
            (FOLDER / "down").unlink(),
        ),
        "rsync": lambda: run("storage", "rsync", "--recursive", FOLDER, f"{url}/tree"),
        "ls of a folder": lambda: equal(
            run(*ls, f"{url}/tree/").decode().split(), [f"{url}/tree/empty", f"{url}/tree/small", f"{url}/tree/in/"]
        ),
        "du": lambda: equal(run("storage", "du", "--summarize", f"{url}/tree/in").decode().split()[0], str(len(LARGE))),
        "change an object": lambda: run(*objects, "update", f"{url}/small", "--custom-metadata=tried=yes"),
        "cp within the cloud": lambda: run(*cp, f"{url}/small", f"{url}/copied"),
        "mv": lambda: run("storage", "mv", f"{url}/copied", f"{url}/moved"),
        "compose": lambda: run(*objects, "compose", f"{url}/small", f"{url}/piped", f"{url}/joined"),
        "cat of a composition": lambda: equal(run(*cat, f"{url}/joined"), b"smallpiped"),
        "rm": lambda: run(*rm, f"{url}/small"),
        "rm -r of a folder": lambda: run(*rm, "-r", f"{url}/tree"),
        "rm -r of a bucket": lambda: run(*rm, "-r", url),
    }


def of_rclone() -> dict[str, Callable[[], object]]:
    """Commands of rclone, with the backend of Cloud Storage as it is without settings of one's own."""
    shelf = f":gcs,project_number={PROJECT},location=us-east4,service_account_file="
    shelf += f"'{os.environ['GOOGLE_APPLICATION_CREDENTIALS']}',endpoint='{os.environ['TRIED_ENDPOINT']}/storage/v1/'"
    url = f"{shelf}:{SHELF}"
    uniform = f"{shelf},bucket_policy_only:{SHELF}-uniform"
    return {
        "mkdir": lambda: run("mkdir", url),
        "lsd": lambda: equal(SHELF in run("lsd", f"{shelf}:").decode().split(), True),
        "copy": lambda: run("copy", FOLDER, f"{url}/tree"),
        "copyto of 20 MB": lambda: run("copyto", FOLDER / "in" / "large", f"{url}/chunked"),
        "check": lambda: run("check", FOLDER, f"{url}/tree"),
        "check --download": lambda: run("check", "--download", FOLDER, f"{url}/tree"),
        "rcat": lambda: run("rcat", f"{url}/piped", content=b"piped"),
        "rcat of 20 MB": lambda: run("rcat", f"{url}/large", content=LARGE),
        "cat": lambda: equal(run("cat", f"{url}/piped"), b"piped"),
        "cat of a range": lambda: equal(run("cat", "--offset", "1", "--count", "3", f"{url}/piped"), b"ipe"),
        "copy to files": lambda: (
            run("copy", f"{url}/tree", FOLDER / "down"),
            equal((FOLDER / "down" / "in" / "large").read_bytes(), LARGE),
        ),
        "lsf": lambda: equal(sorted(run("lsf", f"{url}/tree").decode().split()), ["empty", "in/", "small"]),
        "lsjson": lambda: equal(b'"MimeType"' in run("lsjson", "-R", url), True),
        "size": lambda: equal(str(len(LARGE)) in run("size", f"{url}/tree/in").decode(), True),
        "touch": lambda: run("touch", f"{url}/piped"),
        "copyto within the cloud": lambda: run("copyto", f"{url}/piped", f"{url}/copied"),
        "moveto": lambda: run("moveto", f"{url}/copied", f"{url}/moved"),
        "sync": lambda: run("sync", FOLDER / "in", f"{url}/tree"),
        "deletefile": lambda: run("deletefile", f"{url}/moved"),
        "mkdir with uniform access": lambda: run("mkdir", uniform),
        "rcat with uniform access": lambda: run("rcat", f"{uniform}/piped", content=b"piped"),
        "rcat with a list of the project": lambda: run("rcat", f"{shelf}:{SHELF}-uniform/private", content=b"piped"),
        "delete": lambda: run("delete", uniform),
        "rmdir": lambda: run("rmdir", uniform),
        "purge": lambda: run("purge", url),
    }


calls = Calls(f"{NAME} {version()}")
local_files()
for name, call in (of_rclone() if NAME == "rclone" else of_gcloud()).items():
    calls.passes(name, call)
