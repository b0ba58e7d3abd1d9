"""Journal of open uploads, in small files of this user, from which another process resumes after a kill.

An upload's URL lets anyone who has it write that object, so only the user can read the files. If they are lost, the
upload of a file restarts from its beginning; it never results in a wrong file.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Entry:
    """One upload or copy under way.

    Attributes:
        place: Endpoint of the bucket, bucket and object.
        content: Hash and size of the content (for a copy: source object and generation); another content is another
            upload.
        replaces: Generation of the object that it replaces.
        handle: The upload's URL, or the token of a copy's next step.
    """

    place: str
    content: str
    replaces: str
    handle: str


def state_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Return the folder in which this user's programs store what they need to resume: XDG_STATE_HOME/bezel/uploads."""
    home = environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(home) / "bezel" / "uploads"


class Journal:
    """The entries below a folder, one file each; written whole or not at all."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, place: str, content: str, replaces: str) -> str:
        """Return the handle of an open upload; "" where there is none, or it is for another content."""
        try:
            entry = Entry(**json.loads(self._file(place).read_text(encoding="utf-8")))
        except (OSError, ValueError, TypeError):
            return ""
        return entry.handle if (entry.content, entry.replaces) == (content, replaces) else ""

    def keep(self, entry: Entry) -> None:
        """Stores an entry, in place of an older one of the same place."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        file = self._file(entry.place)
        part = file.with_name(f".{file.name}.{os.getpid()}")
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as opened:
            json.dump(asdict(entry), opened)
        part.replace(file)

    def drop(self, place: str) -> None:
        """Deletes an entry."""
        self._file(place).unlink(missing_ok=True)

    def _file(self, place: str) -> Path:
        return self._folder / f"{hashlib.sha256(place.encode()).hexdigest()[:32]}.json"
