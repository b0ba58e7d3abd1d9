"""Start of a door: the command of its container, its variables, and the place of its archive. Pure.

Owns what a deploy declares of the container, so that a policy can compare a declaration with it. The command has the
archive's digest: another archive at that place is not run. It is read once, unpacked and run from a copy, since Cloud
Run fetches a mounted secret anew at each reading, and Python reads an archive at each import.

Python's `-I` leaves out the working folder and Python's variables: only its own library and the archive are imported.
"""

import hashlib
from typing import Final

FOLDER: Final = "/door"
"""Where the secret with the packed archive is mounted."""
ARCHIVE_NAME: Final = "door.pyz.bz2"
PORT: Final = 8080
COMMANDS: Final = ("python",)
UPSTREAM: Final = "DOOR_UPSTREAM"
"""URL of the server that the door calls."""
AUDIENCE: Final = "DOOR_AUDIENCE"
"""Audience of the identity tokens that it calls with."""
BUCKET: Final = "DOOR_BUCKET"
"""Bucket of its keys and of their use."""
VARIABLES: Final = frozenset({UPSTREAM, AUDIENCE, BUCKET})

_PROGRAM = """\
import bz2, hashlib, runpy, sys, tempfile
path, digest = sys.argv[1:]
with bz2.open(path) as file:
    content = file.read()
if hashlib.sha256(content).hexdigest() != digest:
    sys.exit(f"{path} is not the archive that this revision was deployed with, so it does not start: deploy again.")
with tempfile.NamedTemporaryFile(suffix=".pyz") as copy:
    copy.write(content)
    copy.flush()
    del sys.argv[1:]
    runpy.run_path(copy.name, run_name="__main__")
"""


def arguments_of(archive: bytes) -> tuple[str, ...]:
    """Arguments of the container that runs an archive, and no other."""
    return ("-I", "-c", _PROGRAM, f"{FOLDER}/{ARCHIVE_NAME}", hashlib.sha256(archive).hexdigest())
