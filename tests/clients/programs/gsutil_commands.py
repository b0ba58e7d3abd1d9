"""Commands of gsutil by the JSON API and by the XML API; prints a JSON object a line for each command.

Argument: the program's path. Needs GOOGLE_CLOUD_PROJECT, and BOTO_CONFIG: settings with the key file and the https
address.
"""

import contextlib
import importlib
import os
import runpy
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from outcomes import Calls

PROGRAM = sys.argv[1]
PROJECT = os.environ["GOOGLE_CLOUD_PROJECT"]
URL = "gs://by-gsutil"
FOLDER = Path(tempfile.mkdtemp())
LARGE = b"0123456789" * 1_000_000
_XML = ("-o", "GSUtil:prefer_api=xml")
_SECONDS = 90  # for one command


class NotServedError(Exception):
    """The command failed, and its output names what is not served."""


def run(*arguments: object, content: bytes = b"") -> bytes:
    """The standard output of a command that has to succeed.

    Raises:
        NotServedError: It failed for what localcloud does not serve.
    """
    command = [PROGRAM, "-o", f"GSUtil:default_project_id={PROJECT}", *map(str, arguments)]
    with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as log:
        source.write(content)
        source.seek(0)
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            _become(command, source.fileno(), output.fileno(), log.fileno())
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # the processes that gsutil shares its work among end with an interpreter
        output.seek(0)
        log.seek(0)
        stdout, errors = output.read(), log.read().decode()
    if status and "localcloud does not serve" in errors:
        raise NotServedError(errors[errors.index("localcloud does not serve") :])
    assert status == 0, f"exit status {status}: {errors[-600:]}"
    return stdout


def _become(command: list[str], *descriptors: int) -> NoReturn:
    """Run gsutil in this process, a fork: a new interpreter imports for longer than most commands take."""
    status = 0
    try:
        os.setpgid(0, 0)
        signal.alarm(_SECONDS)
        for place, descriptor in enumerate(descriptors):
            os.dup2(descriptor, place)
        sys.argv = command
        runpy.run_path(PROGRAM, run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 - the fork ends here, whatever happens
        traceback.print_exc()
        status = 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def import_modules() -> None:
    """Import what gsutil imports; its main module reads the arguments at once, so each fork imports that one anew."""
    sys.argv = [PROGRAM]
    importlib.import_module("gslib.__main__")
    del sys.modules["gslib.__main__"]


def equal(actual: object, wanted: object) -> None:
    """Compare a result."""
    assert actual == wanted, f"{str(actual)[:200]} in place of {str(wanted)[:200]}"


def holds(output: bytes, wanted: str) -> None:
    """Look for a text in a result."""
    assert wanted in output.decode(), f"{wanted!r} is not in {output[-300:]!r}"


def local_files() -> None:
    """Files to upload."""
    (FOLDER / "in").mkdir()
    (FOLDER / "small").write_bytes(b"small")
    (FOLDER / "empty").write_bytes(b"")
    (FOLDER / "in" / "large").write_bytes(LARGE)
    (FOLDER / "cors").write_text('[{"origin": ["*"], "method": ["GET"], "maxAgeSeconds": 60}]')
    (FOLDER / "lifecycle").write_text('{"rule": [{"action": {"type": "Delete"}, "condition": {"age": 9}}]}')


def setting(*arguments: str, content: str, says: str) -> Callable[[], object]:
    """A command pair `gsutil NAME set ... URL`, `gsutil NAME get URL`."""
    return lambda: (run(*arguments, "set", content, URL), holds(run(*arguments, "get", URL), says))


def commands() -> dict[str, Callable[[], object]]:
    """Commands in their order."""
    small, down = f"{URL}/small", FOLDER / "down"
    reader = "allAuthenticatedUsers:objectViewer"
    return {
        "mb": lambda: run("mb", "-l", "us-east4", "-b", "on", URL),
        "ls": lambda: holds(run("ls"), f"{URL}/"),
        "ls -Lb": lambda: holds(run("ls", "-Lb", URL), "US-EAST4"),
        "ubla get": lambda: holds(run("ubla", "get", URL), "Enabled: True"),
        "ubla set": lambda: run("ubla", "set", "on", URL),
        "pap get": lambda: holds(run("pap", "get", URL), "inherited"),
        "pap set": lambda: run("pap", "set", "inherited", URL),
        "versioning": setting("versioning", content="on", says="Enabled"),
        "label ch": lambda: (run("label", "ch", "-l", "tried:yes", URL), holds(run("label", "get", URL), "tried")),
        "cors": setting("cors", content=str(FOLDER / "cors"), says="maxAgeSeconds"),
        "lifecycle": setting("lifecycle", content=str(FOLDER / "lifecycle"), says="Delete"),
        "defstorageclass": setting("defstorageclass", content="NEARLINE", says="NEARLINE"),
        "web": lambda: (run("web", "set", "-m", "index.html", URL), holds(run("web", "get", URL), "index.html")),
        "logging get": lambda: run("logging", "get", URL),
        "retention": lambda: (
            run("retention", "set", "1s", URL),
            holds(run("retention", "get", URL), "Duration: 1 Second"),
            run("retention", "clear", URL),
        ),
        "requesterpays": lambda: (
            run("requesterpays", "set", "on", URL),
            run("requesterpays", "set", "off", URL),
            holds(run("requesterpays", "get", URL), "Disabled"),
        ),
        "iam ch": lambda: (run("iam", "ch", reader, URL), holds(run("iam", "get", URL), "allAuthenticatedUsers")),
        "cp": lambda: run("cp", FOLDER / "small", small),
        "cp of no bytes": lambda: run("cp", FOLDER / "empty", f"{URL}/empty"),
        "cp of 10 MB, resumable": lambda: run("cp", FOLDER / "in" / "large", f"{URL}/large"),
        "cp from a pipe": lambda: run("cp", "-", f"{URL}/piped", content=b"piped"),
        "cp -Z": lambda: (
            run("cp", "-Z", FOLDER / "small", f"{URL}/z"),
            run("cp", f"{URL}/z", down),
            equal(down.read_bytes(), b"small"),
            down.unlink(),
        ),
        "cp -J": lambda: (run("cp", "-J", FOLDER / "small", f"{URL}/j"), equal(run("cat", f"{URL}/j"), b"small")),
        "cp in parallel parts": lambda: run(
            *(
                "-o",
                "GSUtil:parallel_composite_upload_threshold=2M",
                "-o",
                "GSUtil:parallel_composite_upload_component_size=4M",
            ),
            *("cp", FOLDER / "in" / "large", f"{URL}/parts"),
        ),
        "hash": lambda: holds(run("hash", f"{URL}/parts"), "crc32c"),
        "cat": lambda: equal(run("cat", f"{URL}/piped"), b"piped"),
        "cat -r": lambda: equal(run("cat", "-r", "1-3", f"{URL}/piped"), b"ipe"),
        "cp to a file": lambda: (run("cp", f"{URL}/large", down), equal(down.read_bytes(), LARGE), down.unlink()),
        "cp to a file in slices": lambda: (
            run("-o", "GSUtil:sliced_object_download_threshold=2M", "cp", f"{URL}/large", down),
            equal(down.read_bytes(), LARGE),
            down.unlink(),
        ),
        "rsync -r": lambda: run("rsync", "-r", FOLDER, f"{URL}/tree"),
        "ls of a folder": lambda: holds(run("ls", f"{URL}/tree/"), f"{URL}/tree/in/"),
        "ls -la": lambda: holds(run("ls", "-la", f"{URL}/tree/in"), str(len(LARGE))),
        "ls with a wildcard": lambda: holds(run("ls", f"{URL}/**/lar*"), f"{URL}/tree/in/large"),
        "du -s": lambda: holds(run("du", "-s", f"{URL}/tree/in"), str(len(LARGE))),
        "stat": lambda: holds(run("stat", small), "Content-Length:         5"),
        "setmeta": lambda: (
            run("setmeta", "-h", "x-goog-meta-tried:yes", "-h", "Content-Type:text/plain", small),
            holds(run("stat", small), "tried:"),
        ),
        "rewrite -s": lambda: (run("rewrite", "-O", "-s", "standard", small), holds(run("stat", small), "STANDARD")),
        "cp within the cloud": lambda: run("cp", small, f"{URL}/copied"),
        "mv": lambda: run("mv", f"{URL}/copied", f"{URL}/moved"),
        "compose": lambda: (
            run("compose", small, f"{URL}/piped", f"{URL}/joined"),
            equal(run("cat", f"{URL}/joined"), b"smallpiped"),
        ),
        "retention temp": lambda: (run("retention", "temp", "set", small), run("retention", "temp", "release", small)),
        "iam get of an object": lambda: run("iam", "get", URL),
        "xml: ls": lambda: holds(run(*_XML, "ls", f"{URL}/tree/"), f"{URL}/tree/in/"),
        "xml: cp": lambda: run(*_XML, "cp", FOLDER / "small", f"{URL}/xml"),
        "xml: cp of 10 MB, resumable": lambda: run(*_XML, "cp", FOLDER / "in" / "large", f"{URL}/xml-large"),
        "xml: cat": lambda: equal(run(*_XML, "cat", f"{URL}/xml"), b"small"),
        "xml: cp within the cloud": lambda: run(*_XML, "cp", f"{URL}/xml", f"{URL}/xml-copy"),
        "xml: rm": lambda: run(*_XML, "rm", f"{URL}/xml-copy"),
        "rm": lambda: run("rm", small),
        "rm -a": lambda: run("rm", "-a", f"{URL}/piped"),
        "rm -r of a folder": lambda: run("rm", "-r", f"{URL}/tree"),
    }


def main() -> None:
    """Make every call."""
    import_modules()
    calls = Calls(f"gsutil {run('version').decode().split()[-1]}")
    local_files()
    for name, call in commands().items():
        calls.passes(name, call)
    for name, arguments in {
        "xml: stat, which asks for the access control list": (*_XML, "stat", f"{URL}/xml"),
        "acl get": ("acl", "get", f"{URL}/empty"),
        "notification list": ("notification", "list", URL),
        "hmac list": ("hmac", "list"),
    }.items():
        calls.lacks(name, NotServedError, lambda arguments=arguments: run(*arguments), "localcloud does not serve it")
    calls.passes("rm -r of the bucket", lambda: run("rm", "-r", URL))


if __name__ == "__main__":
    main()
