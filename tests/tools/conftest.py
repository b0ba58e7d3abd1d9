"""Fixtures of the set-up's tests: wheels, the small clone, a release on this machine, a gate at which a build waits."""

import hashlib
import io
import os
import tarfile
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copytree

import pytest

from tests.support.tools.fresh_environment import wheels
from tests.support.tools.toolchain_clone import FAKE_APT, FAKE_DPKG, FAKE_GO, FAKE_UV, Clone

__all__ = ["wheels"]

ROOT = Path(__file__).parent.parent.parent
VERSION = "3.274.1"


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    """uv and a proxy are there; no release can be reached; Go is not installed."""
    folder = tmp_path / "clone"
    copytree(ROOT / "tools" / "toolchain", folder / "tools" / "toolchain")
    made = Clone(folder, tmp_path / "cache" / "bezel", tmp_path / "bin")
    made.bin.mkdir()
    made.tool("uv", FAKE_UV)
    made.tool("haproxy", "#!/bin/sh\n")
    made.tool("chromium", "#!/bin/sh\n")
    made.variables = {
        "BEZEL_PULUMI_RELEASES": "http://127.0.0.1:9",
        "FAKE_COUNT": str(tmp_path / "builds"),
        "FAKE_SDK": str(tmp_path / "sdk"),
        "FAKE_PUBLISHED": str(tmp_path / "published"),
        "FAKE_GATE": str(tmp_path / "gate"),
        "FAKE_UV_GATE": str(tmp_path / "uv-gate"),
        "FAKE_BUILD_FAILS": "",
        "FAKE_FETCHED": str(tmp_path / "fetched"),
        "FAKE_OFFLINE": str(tmp_path / "offline"),
        "FAKE_OLD_LISTS": str(tmp_path / "old-lists"),
    }
    for script in ("python/cmd/pulumi-language-python-exec", "python/dist/pulumi-resource-pulumi-python"):
        file = tmp_path / "sdk" / script
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("#!/bin/sh\n")
    monkeypatch.syspath_prepend(ROOT / "tools" / "toolchain")
    write_published_modules(tmp_path / "published")
    return made


def write_published_modules(folder: Path) -> None:
    """Write what a build takes out of each module that it changes, and nothing else."""
    import pulumi_source

    for module in pulumi_source.MODULES:
        texts = {pattern.replace("*", "_x"): "" for pattern in module.removed_files}
        texts |= {name: "\n".join(lines) for name, lines in module.removed_lines.items()}
        for name, text in texts.items():
            file = folder / module.stand_ins.name / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.replace("{", "{\n}"))


@pytest.fixture
def go(clone: Clone) -> Clone:
    """The clone, with a Go that is new enough."""
    clone.tool("go", FAKE_GO.format(version="go1.26.1"))
    return clone


@pytest.fixture
def debian(clone: Clone) -> Clone:
    """A clone with a Pulumi, and without a proxy, on a machine that has packages."""
    clone.tool("pulumi", "#!/bin/sh\necho v3.274.1\n")
    clone.tool("pulumi-language-python", "#!/bin/sh\n")
    (clone.bin / "haproxy").unlink()
    clone.tool("apt-get", FAKE_APT)
    clone.tool("dpkg-deb", FAKE_DPKG)
    return clone


@pytest.fixture
def release() -> Iterator[Callable[..., str]]:
    """`release(good_checksum=True)` serves an official release on this machine; its base URL."""
    servers: list[ThreadingHTTPServer] = []

    def serve(*, good_checksum: bool = True) -> str:
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as tar:
            for name in ("pulumi", "pulumi-language-python", "pulumi-language-python-exec"):
                text = f"#!/bin/sh\necho v{VERSION}\n".encode()
                entry = tarfile.TarInfo(f"pulumi/{name}")
                entry.size, entry.mode = len(text), 0o755
                tar.addfile(entry, io.BytesIO(text))
        archive = packed.getvalue()
        digest = hashlib.sha256(archive if good_checksum else b"another").hexdigest()
        names = [
            f"pulumi-v{VERSION}-{system}-{machine}.tar.gz"
            for system in ("linux", "darwin")
            for machine in ("x64", "arm64")
        ]
        files = {f"/pulumi-{VERSION}-checksums.txt": "".join(f"{digest}  {name}\n" for name in names).encode()}
        files |= {f"/{name}": archive for name in names}

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = files.get(self.path)
                self.send_response(200 if body else 404)
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *_: object) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def gate(clone: Clone) -> Iterator[Path]:
    """A named pipe at which a build waits until something is written into it."""
    path = Path(clone.variables["FAKE_GATE"])
    os.mkfifo(path)
    yield path
    path.unlink()
