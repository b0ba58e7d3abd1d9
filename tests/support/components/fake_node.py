"""A node at the wire: metadata server, Secret Manager and Storage over HTTP, and its commands on PATH."""

import base64
import http.server
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "components" / "bezel_components" / "node" / "startup.sh"
COMMANDS = Path(__file__).with_name("fake_node.sh")
CURL = Path(__file__).with_name("fake_curl.sh")
TOKEN = "ya29.token-that-nobody-may-see"
SECRET = "hf_planted-value-that-nobody-may-see"
DIGEST = "sha256:" + "a" * 64
IMAGE = f"us-east5-docker.pkg.dev/p/hub/vllm/vllm-tpu@{DIGEST}"
PHASES = ("network", "image", "weights", "compile", "healthy")
MODEL = "/dev/shm/models/gemma"  # noqa: S108 - a folder of the node, below its own root


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def answer(self, status, content, etag=""):
        self.send_response(status)
        if etag:
            self.send_header("ETag", etag)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        with suppress(BrokenPipeError):  # the machine was switched off
            self.wfile.write(content)

    def do_GET(self):
        self.answer(*self.server.node.get(self.path, self.headers))

    def do_POST(self):
        content = self.rfile.read(int(self.headers["content-length"]))
        self.answer(*self.server.node.post(self.path, self.headers, content))

    def do_PUT(self):
        content = self.rfile.read(int(self.headers["content-length"]))
        self.answer(*self.server.node.put(self.path, self.headers, content))


class Node:
    """One machine, which may be booted again and again.

    Attributes:
        attributes: What its metadata holds.
        reports: (phase, state, detail) in the order in which the guest attributes were written.
        broken: path -> (status, how often): what a server answers instead.
        healthy_after: Looks at /health until it is well, after each start of the container.
        container: What it reported of its container, in order.
        waits: How often it has waited for another request.
        known_version: Version of its attributes that it knew when it began to wait.
        written: The requests to write entries of Cloud Logging that it sent, in order.
    """

    def __init__(self, folder: Path) -> None:
        self.fake, self.root, self.home = folder / "fake", folder / "root", folder / "home"
        for one in (self.fake, self.root, self.home, folder / "bin"):
            one.mkdir()
        for name in (
            "docker",
            "gsutil",
            "apt-get",
            "wget",
            "nvidia-ctk",
            "systemctl",
            "sleep",
            "curl",
            "date",
            "python3",
        ):
            shutil.copy(CURL if name == "curl" else COMMANDS, folder / "bin" / name)
            (folder / "bin" / name).chmod(0o755)
        self.reports, self.broken, self.healthy_after, self.looks = [], {}, 2, (0, 0)
        self.container, self.version, self.waits, self.changed = [], 0, 0, threading.Condition()
        self.known_version, self.written, self.is_on = -1, [], False
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
        self.server.node = self
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        self.host = f"127.0.0.1:{self.server.server_address[1]}"
        self.attributes = {
            "bezel-image": IMAGE,
            "bezel-arguments": json.dumps([MODEL, "--max-model-len", "16384", "--limit", '{"image": 4}']),
            "bezel-environment": json.dumps({"VLLM_TPU_BUCKET_PADDING_GAP": "256"}),
            "bezel-secrets-by-name": json.dumps({"HF_TOKEN": "hf-token"}),
            "bezel-weights": "gs://models/gemma",
            "bezel-model-folder": MODEL,
            "bezel-compile-cache": "gs://models/compile-cache/key",
            "bezel-port": self.host.rpartition(":")[2],
            "bezel-device": "tpu",
            "bezel-packages": "",
        }
        self.put_object("models/gemma/config.json", b"{}")
        self.put_object("models/gemma/model.safetensors", b"w" * 1000)
        self.environment = {
            "PATH": f"{folder / 'bin'}:/usr/bin:/bin",
            "HOME": str(self.home),
            "TMPDIR": str(self.home),
            "FAKE": str(self.fake),
            "REAL_CURL": shutil.which("curl") or "",
            "REAL_PYTHON": sys.executable,
            "BEZEL_ROOT": str(self.root),
            "GCE_METADATA_HOST": self.host,
            "GOOGLE_LOGGING_CUSTOM_ENDPOINT": f"http://{self.host}/logging/v2/",
            "GOOGLE_SECRET_MANAGER_CUSTOM_ENDPOINT": f"http://{self.host}/secretmanager/v1/",
            "GOOGLE_STORAGE_CUSTOM_ENDPOINT": f"http://{self.host}/storage/v1/",
        }

    def use_real_curl(self) -> None:
        """Let it ask with the curl of this machine, in place of the quicker stand-in."""
        shutil.copy(COMMANDS, self.fake.parent / "bin" / "curl")

    def boot(self) -> subprocess.CompletedProcess:
        """A boot to its end: a failure, or a machine that waits for requests, which is then switched off."""
        with self.running() as process:
            self.until(lambda: self.waits or process.poll() is not None)
            code = process.poll()
        return subprocess.CompletedProcess(process.args, code or 0, (self.fake / "console").read_text())

    @contextmanager
    def running(self):
        """The machine from its start to when it is switched off."""
        self.reports, self.container, self.waits, self.known_version = [], [], 0, -1
        (self.fake / "calls").write_text("")
        with (self.fake / "console").open("w") as console:
            process = subprocess.Popen(
                ["/bin/bash", str(SCRIPT)],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=console,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        threading.Thread(target=self._watch, args=(process,), daemon=True).start()
        self.is_on = True
        try:
            yield process
        finally:
            self.is_on = False
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(60)

    def _watch(self, process) -> None:
        process.wait()
        with self.changed:
            self.changed.notify_all()

    def until(self, true, seconds: float = 100) -> None:
        """Wait until something is so; it is looked at whenever the machine asks or tells something."""
        with self.changed:
            assert self.changed.wait_for(true, seconds), (self.fake / "console").read_text()

    def ask(self, request: object) -> None:
        """Set the attribute of a request, as an operator does."""
        with self.changed:
            self.attributes["bezel-container"] = request if isinstance(request, str) else json.dumps(request)
            self.version += 1
            self.changed.notify_all()

    def set_clock(self, seconds: int) -> None:
        """Set the machine's clock, in Unix seconds, which its sleeps move; a machine that waits looks at it now."""
        (self.fake / "now").write_text(f"{seconds}\n")
        if self.is_on:
            self.ask("")
            self.settle()

    def settle(self) -> dict:
        """What it reported last of its container, once it has done the last request and waits for another."""
        self.until(lambda: self.known_version == self.version)
        return self.container[-1]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def put_object(self, name: str, content: bytes) -> None:
        path = self.fake / "bucket" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def fails(self, step: str, times: int = 1000, says: str = "it went wrong") -> None:
        """Let a command fail: docker-pull, gsutil-rsync, gsutil-restore, gsutil-save, curl-health, ..."""
        (self.fake / f"{step}.fail").write_text(f"{times}\n")
        (self.fake / f"{step}.says").write_text(f"{says}\n")

    def calls(self, *start: str) -> list[list[str]]:
        """The command lines so far, those of a program and its first words."""
        lines = [line.split("\037") for line in (self.fake / "calls").read_text().splitlines()]
        return [line for line in lines if line[: len(start)] == list(start)]

    def slept(self) -> list[int]:
        return [int(line[1]) for line in self.calls("sleep")]

    def states(self) -> dict[str, str]:
        return {phase: state for phase, state, _ in self.reports}

    def detail(self, phase: str) -> str:
        return [detail for phase_name, _, detail in self.reports if phase_name == phase][-1]

    def files(self) -> dict[str, bytes]:
        """Everything that lies on the machine, beside what the fakes keep for themselves."""
        places = [path for folder in (self.root, self.home) for path in folder.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.root.parent)): path.read_bytes() for path in places}

    def get(self, path, headers):
        status, left = self.broken.get(path, (0, 0))
        if left:
            self.broken[path] = (status, left - 1)
            return status, json.dumps({"error": {"code": status, "message": "refused for a test"}}).encode()
        if path == "/health":
            try:
                started = (self.fake / "running").stat().st_mtime_ns
            except FileNotFoundError:
                return 503, b""
            self.looks = (started, self.looks[1] + 1 if self.looks[0] == started else 1)
            return (200 if self.looks[1] > self.healthy_after else 503), b""
        if path.startswith("/computeMetadata/v1/"):
            return self._metadata(path.removeprefix("/computeMetadata/v1/"), headers)
        if path == "/secretmanager/v1/projects/p/secrets/hf-token/versions/latest:access":
            if headers["authorization"] != f"Bearer {TOKEN}":
                return 401, b"{}"
            return 200, json.dumps({"payload": {"data": base64.b64encode(SECRET.encode()).decode()}}).encode()
        return 404, b"not here"

    def _metadata(self, path, headers):
        if headers["metadata-flavor"] != "Google":
            return 403, b"Missing Metadata-Flavor:Google header."
        if "wait_for_change=true" in path:
            return self._change(path)
        fixed = {
            "project/project-id": "p",
            "instance/zone": "projects/12/zones/us-east5-a",
            "instance/service-accounts/default/token": json.dumps({"access_token": TOKEN, "expires_in": 3599}),
        }
        fixed |= {f"instance/attributes/{name}": value for name, value in self.attributes.items()}
        metadata = (fixed | {"instance/attributes/?recursive=true&alt=json": json.dumps(self.attributes)}).get(path)
        return (404, b"<html>404</html>") if metadata is None else (200, metadata.encode())

    def _change(self, path):
        """The attributes once they have changed; of a short wait at once, as if its time had gone by."""
        last_etag = path.rpartition("&last_etag=")[2]
        with self.changed:
            if last_etag == self.etag and "&timeout_sec=60&" in path:
                self.waits, self.known_version = self.waits + 1, self.version
                self.changed.notify_all()
                self.changed.wait_for(lambda: self.etag != last_etag, 100)
            return 200, json.dumps(self.attributes).encode(), self.etag

    @property
    def etag(self) -> str:
        """The version of its attributes, as its metadata server names it."""
        return f"e{self.version}"

    def post(self, path, headers, content):
        status, left = self.broken.get(path, (0, 0))
        self.broken[path] = (status, max(0, left - 1))
        if path != "/logging/v2/entries:write" or headers["authorization"] != f"Bearer {TOKEN}":
            return 401, b"{}"
        self.written.append(json.loads(content))
        if left:
            return status, json.dumps({"error": {"code": status, "message": "refused for a test"}}).encode()
        return 200, b"{}"

    def put(self, path, headers, content):
        if headers["metadata-flavor"] != "Google":
            return 403, b""
        body, name = json.loads(content), path.rpartition("/bezel/")[2]
        with self.changed:
            if name == "container":
                self.container.append(body)
            else:
                assert body.keys() == {"state", "at", "detail"}
                self.reports.append((name, body["state"], body["detail"]))
            self.changed.notify_all()
        return 200, b""
