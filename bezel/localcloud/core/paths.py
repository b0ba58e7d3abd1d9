"""Where localcloud keeps what: the files of its directory, and the address that it tells its clients."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import uuid
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = "bezel-local"
PROJECT_NUMBER = "123456789012"
DEPLOYER = f"deployer@{PROJECT}.iam.gserviceaccount.com"
CONTROL_AUDIENCE = "localcloud:control"
# Where the stand-in for the Hugging Face hub is below localcloud's address; what HF_ENDPOINT names.
HUB_PREFIX = "/huggingface"
DEFAULT_COMPUTE_ACCOUNT = f"{PROJECT_NUMBER}-compute@developer.gserviceaccount.com"
RUN_AGENT = f"service-{PROJECT_NUMBER}@serverless-robot-prod.iam.gserviceaccount.com"


class DirectoryError(Exception):
    """A directory that is not to be used."""


@dataclass(frozen=True)
class Paths:
    """The files below one directory."""

    root: Path

    @property
    def database(self) -> Path:
        """SQLite store of everything but object contents."""
        return self.root / "cloud.db"

    @property
    def objects(self) -> Path:
        """Contents of the buckets: one folder a bucket, objects by their names."""
        return self.root / "objects"

    @property
    def uploads(self) -> Path:
        """Contents on their way in; moved into `objects` when whole."""
        return self.root / "uploads"

    @property
    def logs(self) -> Path:
        """`daemon.log` and `wire.jsonl`."""
        return self.root / "logs"

    @property
    def daemon_log(self) -> Path:
        """What the daemon says."""
        return self.logs / "daemon.log"

    @property
    def wire_log(self) -> Path:
        """One JSON line a request."""
        return self.logs / "wire.jsonl"

    @property
    def sockets(self) -> Path:
        """Where instances listen."""
        return self.root / "sockets"

    @property
    def endpoint(self) -> Path:
        """Written when the daemon is ready, removed when it stops."""
        return self.root / "endpoint.json"

    @property
    def credentials(self) -> Path:
        """Service account key file of the deployer."""
        return self.root / "credentials.json"

    @property
    def issuer_key(self) -> Path:
        """Private key that signs localcloud's own tokens."""
        return self.root / "issuer.pem"

    @property
    def daemon_lock(self) -> Path:
        """Held by the running daemon."""
        return self.root / "daemon.lock"

    @property
    def start_lock(self) -> Path:
        """Held by whoever starts or stops the daemon."""
        return self.root / "start.lock"

    @property
    def use_lock(self) -> Path:
        """Held in common by all commands that use the daemon, and alone by one that may stop it."""
        return self.root / "use.lock"

    def create(self) -> None:
        """Make the folders; the directory holds keys and states, so it and what lies in it is for its owner only.

        Raises:
            DirectoryError: It belongs to somebody else, who could change under the daemon's hands what lies there.
        """
        self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        if (owner := self.root.stat().st_uid) != os.geteuid():
            msg = (
                f"{self.root} belongs to the user with id {owner}, who could read the keys that localcloud would put "
                "there: use a directory of your own."
            )
            raise DirectoryError(msg)
        for folder in (self.objects, self.uploads, self.logs):
            folder.mkdir(exist_ok=True, mode=0o700)
        # What an earlier version left readable.
        for path in (self.root, *self.root.iterdir()):
            close_to_others(path)


@dataclass(frozen=True)
class Endpoint:
    """A running localcloud.

    Attributes:
        directory: Where it keeps everything.
        pid: Process of the daemon.
        base: `http://127.0.0.1:<port>`, without a slash at the end.
        server: What stands behind a revision: "sim" or "vllm".
        speed: By how much waits of the platform are shortened.
        engine: Executable and model of a real server; "" for the simulated one.
        code: Fingerprint of the code that it runs.
    """

    directory: Path
    pid: int
    base: str
    server: str
    speed: float
    engine: str = ""
    code: str = ""
    project: str = PROJECT

    @property
    def credentials(self) -> Path:
        """Key file to log in with."""
        return Paths(self.directory).credentials

    @property
    def kind(self) -> tuple[str, float, str, str]:
        """What tells a daemon that will do from one that has to be replaced."""
        return self.server, self.speed, self.engine, self.code

    def write(self) -> None:
        """Tell the clients, atomically."""
        content: dict[str, Any] = asdict(self) | {
            "directory": str(self.directory),
            "credentials": str(self.credentials),
        }
        write_atomically(Paths(self.directory).endpoint, json.dumps(content, indent=2).encode())

    @staticmethod
    def read(directory: Path) -> Endpoint | None:
        """The endpoint last told of in a directory, if any; says nothing about whether it still runs.

        Every version of the daemon has told its process and its address; what an older one left out is empty here.
        """
        try:
            content = json.loads(Paths(directory).endpoint.read_text())
            process, base = int(content["pid"]), str(content["base"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        server, speed = content.get("server", ""), content.get("speed", 0.0)
        return Endpoint(directory, process, base, server, speed, content.get("engine", ""), content.get("code", ""))


def engine_of(server: str) -> str:
    """What a daemon started now would put behind a revision: a change of it needs another daemon."""
    if server == "sim":
        return ""
    return f"{shutil.which('vllm')} {os.environ.get('LOCALCLOUD_VLLM_MODEL')}"


def close_to_others(path: Path) -> None:
    """Take from a file or a folder what its owner's group and everybody may do; a link stays as it is."""
    with contextlib.suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if mode & 0o077 and not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & 0o700)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace a file in one step, for its owner only; a reader or a kill sees the old or the new content."""
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    temporary.replace(path)
