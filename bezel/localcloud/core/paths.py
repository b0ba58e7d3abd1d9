"""Layout of localcloud's directory, and the endpoint file that clients read."""

import contextlib
import json
import os
import shutil
import stat
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bezel.errors import UserError

PROJECT = "bezel-local"
PROJECT_NUMBER = "123456789012"
DEPLOYER = f"deployer@{PROJECT}.iam.gserviceaccount.com"
CONTROL_AUDIENCE = "localcloud:control"
# Path of the Hugging Face hub's stand-in below localcloud's address; part of HF_ENDPOINT.
HUB_PREFIX = "/huggingface"
DEFAULT_COMPUTE_ACCOUNT = f"{PROJECT_NUMBER}-compute@developer.gserviceaccount.com"
RUN_AGENT = f"service-{PROJECT_NUMBER}@serverless-robot-prod.iam.gserviceaccount.com"


class DirectoryError(UserError):
    """A directory that localcloud must not use."""


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
        """Contents of the buckets: one folder per bucket, objects by their names."""
        return self.root / "objects"

    @property
    def uploads(self) -> Path:
        """Uploads in progress; moved into `objects` when complete."""
        return self.root / "uploads"

    @property
    def logs(self) -> Path:
        """`daemon.log` and `wire.jsonl`."""
        return self.root / "logs"

    @property
    def daemon_log(self) -> Path:
        """Log of the daemon."""
        return self.logs / "daemon.log"

    @property
    def wire_log(self) -> Path:
        """One JSON line a request."""
        return self.logs / "wire.jsonl"

    @property
    def sockets(self) -> Path:
        """Socket files that instances listen on."""
        return self.root / "sockets"

    @property
    def endpoint(self) -> Path:
        """The endpoint file, written when the daemon is ready and removed when it stops."""
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
        """Lock that the running daemon holds."""
        return self.root / "daemon.lock"

    @property
    def start_lock(self) -> Path:
        """Lock that a process holds while it starts or stops the daemon."""
        return self.root / "start.lock"

    @property
    def use_lock(self) -> Path:
        """Lock that all commands that use the daemon hold shared; one that may stop the daemon holds it alone."""
        return self.root / "use.lock"

    def create(self) -> None:
        """Create the folders. The directory holds keys and states, so only its owner can read it and its contents.

        Raises:
            DirectoryError: It belongs to another user, who could change its contents while the daemon runs.
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
        # An earlier version may have left files readable by others.
        for path in (self.root, *self.root.iterdir()):
            close_to_others(path)


@dataclass(frozen=True)
class Endpoint:
    """A running localcloud.

    Attributes:
        directory: Its data directory.
        pid: Process of the daemon.
        base: `http://127.0.0.1:<port>`, without a slash at the end.
        server: Server behind a revision: "sim" or "vllm".
        speed: Factor by which waits of the platform are shortened.
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
        """The settings that a running daemon must share with a requested one, or it is replaced."""
        return self.server, self.speed, self.engine, self.code

    def write(self) -> None:
        """Write the endpoint file atomically."""
        content: dict[str, Any] = asdict(self) | {
            "directory": str(self.directory),
            "credentials": str(self.credentials),
        }
        write_atomically(Paths(self.directory).endpoint, json.dumps(content, indent=2).encode())

    @staticmethod
    def read(directory: Path) -> "Endpoint | None":
        """Return the endpoint last written in a directory, if any; its daemon may have ended.

        Every version of the daemon writes its process id and address; fields that an older one lacks are empty here.
        """
        try:
            content = json.loads(Paths(directory).endpoint.read_text())
            process, base = int(content["pid"]), str(content["base"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        server, speed = content.get("server", ""), content.get("speed", 0.0)
        return Endpoint(directory, process, base, server, speed, content.get("engine", ""), content.get("code", ""))


def engine_of(server: str) -> str:
    """The engine behind a revision of a daemon started with this setting; a change of it needs another daemon."""
    if server == "sim":
        return ""
    return f"{shutil.which('vllm')} {os.environ.get('LOCALCLOUD_VLLM_MODEL')}"


def close_to_others(path: Path) -> None:
    """Remove the permissions of group and others from a file or a folder; a link is left unchanged."""
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
