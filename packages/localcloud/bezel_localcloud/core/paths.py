"""Layout of localcloud's directory, and the endpoint file that clients read."""

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import shutil
import stat
from dataclasses import asdict, dataclass
from pathlib import Path

from bezel_base.atomic_write import write_whole
from bezel_base.errors import Problem, UserError

_PACKAGES = ("bezel_localcloud", "bezel_base", "bezel_catalog", "bezel_simulated_vllm")
PROJECT_VARIABLE = "LOCALCLOUD_PROJECT"
PROJECT = os.environ.get(PROJECT_VARIABLE) or "bezel-local"
"""Id of the project that a daemon serves; names of resources in all modules hold it, so it is fixed for a process."""
PROJECT_NUMBER = "123456789012"
_NUMBERED = re.compile(rf"^projects/{PROJECT_NUMBER}(?=/|$)")
BILLING_ACCOUNT = "billingAccounts/BE2E10-10CA1C-10D000"
DEPLOYER = f"deployer@{PROJECT}.iam.gserviceaccount.com"
CONTROL_AUDIENCE = "localcloud:control"
# Path of the Hugging Face hub's stand-in below localcloud's address; part of HF_ENDPOINT.
HUB_PREFIX = "/huggingface"
DEFAULT_COMPUTE_ACCOUNT = f"{PROJECT_NUMBER}-compute@developer.gserviceaccount.com"
RUN_AGENT = f"service-{PROJECT_NUMBER}@serverless-robot-prod.iam.gserviceaccount.com"
# APIs that a new project has enabled from the start, the one that enables others among them.
ENABLED_FROM_THE_START = frozenset(
    f"{name}.googleapis.com"
    for name in ("serviceusage", "cloudresourcemanager", "compute", "storage", "storage-api", "logging", "monitoring")
)
BUILT_IN_ACCOUNTS = frozenset({DEPLOYER, DEFAULT_COMPUTE_ACCOUNT})
BUILT_IN_BINDINGS = frozenset(
    {("roles/owner", f"serviceAccount:{DEPLOYER}"), ("roles/run.serviceAgent", f"serviceAccount:{RUN_AGENT}")}
)
BILLING_BINDINGS = frozenset({("roles/billing.admin", f"serviceAccount:{DEPLOYER}")})


class DirectoryError(UserError):
    """A directory that localcloud must not use."""


class Paths:
    """The files below one directory.

    Attributes:
        root: The directory.
        database: SQLite store of everything but object contents.
        contents: Bytes of the objects, one file for each generation of each object.
        objects: The buckets as mounts show them: one folder per bucket, its objects' files by their names.
        uploads: Uploads in progress; moved into `contents` when complete.
        blobs: Manifests, configs and layers of pushed images, by digest.
        blob_uploads: Uploads of blobs in progress; moved into `blobs` when complete and verified.
        daemon_log: Log of the daemon.
        wire_log: One JSON line a request.
        certificates: Certificate of the https port, and the authority that clients trust.
        balancer_authority: Certificate of the authority that clients of load balancers trust.
        sockets: Socket files that instances listen on.
        secret_files: Secrets that containers mount, a folder for each instance and secret.
        nodes: File systems of the machines.
        hub: Repositories that were put on the model hub, one file each.
        seeded: Notes of commands on what they have put into the project already.
        endpoint: The endpoint file, written when the daemon is ready and removed when it stops.
        credentials: Service account key file of the deployer.
        external_account: Its credential file of the type external_account.
        subject_token: The token that this one names.
        issuer_key: Private key that signs localcloud's own tokens.
        daemon_lock: Lock that the running daemon holds.
        start_lock: Lock that a process holds while it starts or stops the daemon.
        use_lock: Lock that all commands that use the daemon hold shared; one that may stop the daemon holds it alone.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.database = root / "cloud.db"
        self.contents = root / "contents"
        self.objects = root / "objects"
        self.uploads = root / "uploads"
        self.blobs = root / "registry" / "blobs"
        self.blob_uploads = root / "registry" / "uploads"
        self.daemon_log = root / "logs" / "daemon.log"
        self.wire_log = root / "logs" / "wire.jsonl"
        self.certificates = root / "certificates"
        self.balancer_authority = self.certificates / "balancer-authority.pem"
        self.sockets = root / "sockets"
        self.secret_files = root / "secret-files"
        self.nodes = root / "nodes"
        self.hub = root / "hub"
        self.seeded = root / "seeded"
        self.endpoint = root / "endpoint.json"
        self.credentials = root / "credentials.json"
        self.external_account = root / "external-account.json"
        self.subject_token = root / "subject-token.jwt"
        self.issuer_key = root / "issuer.pem"
        self.daemon_lock = root / "daemon.lock"
        self.start_lock = root / "start.lock"
        self.use_lock = root / "use.lock"

    def create(self) -> None:
        """Create the folders. The directory holds keys and states, so only its owner can read it and its contents.

        Raises:
            DirectoryError: It cannot be created, or belongs to another user, who could change its contents while the
                daemon runs.
        """
        try:
            self.root.mkdir(parents=True, exist_ok=True, mode=0o700)
        except FileNotFoundError:  # below /proc, say
            repair = "choose another directory."
            raise DirectoryError(Problem(str(self.root), None, "cannot be created there.", repair)) from None
        if (owner := self.root.stat().st_uid) != os.geteuid():
            consequence = "its owner could read the keys that localcloud writes there, so nothing was started."
            text = f"belongs to the user with id {owner}: {consequence}"
            raise DirectoryError(Problem(str(self.root), None, text, "use a directory of your own."))
        self._create_folders()
        ignored = self.root / ".gitignore"
        if not ignored.exists():
            ignored.write_text("# Keys and states of localcloud: not for a repository.\n*\n")
        # An earlier version may have left files readable by others.
        for path in (self.root, *self.root.iterdir()):
            close_to_others(path)

    def delete_contents(self) -> None:
        """Delete the files of the project's resources; the store has their rows."""
        for folder in (
            *self._content_folders(),
            self.secret_files,
            self.blobs.parent,
            self.nodes,
            self.hub,
            self.seeded,
        ):
            shutil.rmtree(folder, ignore_errors=True)
        self._create_folders()

    def _create_folders(self) -> None:
        registry = (self.blobs.parent, self.blobs, self.blob_uploads)
        for folder in (*self._content_folders(), *registry, self.hub, self.seeded, self.daemon_log.parent):
            folder.mkdir(exist_ok=True, mode=0o700)

    def _content_folders(self) -> tuple[Path, ...]:
        return self.contents, self.objects, self.uploads


def with_project_id(name: str) -> str:
    """A resource's full name with this project's id, also where it has the project's number: Google accepts both."""
    return _NUMBERED.sub(f"projects/{PROJECT}", name)


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
        emulator: Address for clients that send no credentials; "" where there is none.
        tls: Address for clients that know only https; "" where there is none.
        project: Id of its project.
    """

    directory: Path
    pid: int
    base: str
    server: str
    speed: float
    engine: str = ""
    code: str = ""
    emulator: str = ""
    tls: str = ""
    project: str = PROJECT

    @property
    def credentials(self) -> Path:
        """Key file to log in with."""
        return Paths(self.directory).credentials

    @property
    def external_account(self) -> Path:
        """Credential file for clients that get tokens at a fixed address with a key file."""
        return Paths(self.directory).external_account

    @property
    def authority(self) -> Path:
        """Certificate that clients of the https port trust."""
        return Paths(self.directory).certificates / "authority.pem"

    @property
    def port(self) -> int:
        """Port of the APIs."""
        return int(self.base.rpartition(":")[2])

    @property
    def kind(self) -> tuple[str, float, str, str]:
        """The settings that a running daemon must share with a requested one, or it is replaced."""
        return self.server, self.speed, self.engine, self.code

    def write(self) -> None:
        """Write the endpoint file atomically."""
        content = asdict(self) | {"directory": str(self.directory), "credentials": str(self.credentials)}
        write_whole(Paths(self.directory).endpoint, json.dumps(content, indent=2), mode=0o600)

    @staticmethod
    def read(directory: Path) -> "Endpoint | None":
        """Return the endpoint last written in a directory, if any; its daemon may have ended.

        Every version of the daemon writes its process id and address; fields that an older one lacks are empty here.
        """
        try:
            content = json.loads(Paths(directory).endpoint.read_text(encoding="utf-8"))
            process, base = int(content["pid"]), str(content["base"])
        except (OSError, ValueError, KeyError, TypeError):
            return None
        server, speed = content.get("server", ""), content.get("speed", 0.0)
        usual = {"engine": "", "code": "", "emulator": "", "tls": "", "project": PROJECT}
        more = (str(content.get(name, value)) for name, value in usual.items())
        return Endpoint(directory, process, base, server, speed, *more)


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


def fingerprint() -> str:
    """A short digest of a daemon's inputs: the sources and data of every package that it runs."""
    digest = hashlib.sha256()
    for package in package_folders():
        # By texts: to compare and cut a thousand `Path`s would take half of the time, at each start and command.
        outside = len(str(package.parent)) + 1
        for folder, folders, files in os.walk(package):
            folders[:] = sorted({*folders} - {"__pycache__"})
            for path in sorted(f"{folder}/{file}" for file in files):
                if (file := Path(path)).is_file():
                    content = file.read_bytes()
                    digest.update(f"{path[outside:]} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]


def package_folders() -> list[Path]:
    """Folders of the packages that a daemon and its containers run: this one, and those that it depends on."""
    specs = (importlib.util.find_spec(name) for name in _PACKAGES)
    return [Path(folder) for spec in specs if spec for folder in spec.submodule_search_locations or ()]


def python_path(present: str | None) -> str:
    """PYTHONPATH by which an interpreter finds these packages, before what a caller's own has."""
    roots = dict.fromkeys(str(folder.resolve().parent) for folder in package_folders())
    return os.pathsep.join([*roots, *([present] if present else [])])
