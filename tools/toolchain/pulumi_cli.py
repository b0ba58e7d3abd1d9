"""Pulumi CLI, one pinned version, from the first of three places that has it.

1. PATH, if it is that version and has its Python language host beside it.
2. The official release, if it can be reached.
3. Built with Go from the modules that Pulumi publishes (tools/toolchain/pulumi), without what only other clouds need
   (`pulumi_source`). The official language host is missing there, so that of bezel_pulumi_offline takes its place.

Leaves out the virtual environment (`environment`) and the cache's folders (`cache`).
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import cache
import progress
import pulumi_source

if TYPE_CHECKING:
    import tarfile

VERSION = "3.274.1"
GO_MINIMUM = (1, 26)
SDK = "github.com/pulumi/pulumi/sdk/v3"
CLI = f"{pulumi_source.PKG}/cmd/pulumi"
# No part of a run: generators of SDKs, environments of Pulumi Cloud, git, colours of source code.
UNOPTIMIZED = (
    f"{pulumi_source.PKG}/cmd/esc",
    f"{pulumi_source.PKG}/codegen",
    "github.com/alecthomas/chroma",
    "github.com/cloudflare/circl",
    "github.com/git-pkgs",
    "github.com/go-git/go-git/v6",
    "github.com/ProtonMail/go-crypto",
    "github.com/pulumi/pulumi-cloud-sdk",
)
# The compiler's own heap may grow to five times what lives in it: a fifth of its time, at most 2 GiB each.
COMPILER_HEAP = {"GOGC": "400"}
SDK_SCRIPTS = ("python/cmd/pulumi-language-python-exec", "python/dist/pulumi-resource-pulumi-python")
LANGUAGE_HOST = "pulumi-language-python"
# Beside the CLI it causes no warning about plugins from PATH; `.venv/bin/pulumi` names the clone whose host it starts.
LANGUAGE_HOST_SCRIPT = '#!/bin/sh\nexec "${BEZEL_LANGUAGE_HOST:?start pulumi as .venv/bin/pulumi}" "$@"\n'
CONNECT_SECONDS = 5.0
REPAIR = f"""\
Pulumi {VERSION} could not be set up, so nothing can be deployed. Any one of these repairs it:
  - install it and put it on PATH: curl -fsSL https://get.pulumi.com | sh -s -- --version {VERSION}
  - give this machine access to get.pulumi.com, and run `make setup` again
  - install Go {GO_MINIMUM[0]}.{GO_MINIMUM[1]} or newer (https://go.dev/dl), and run `make setup` again:
    the CLI is then built here, once"""


class NoWayError(Exception):
    """None of the three sources worked; the text says what was tried and what to install."""


def find() -> Path:
    """The folder that holds `pulumi`, made if need be.

    Raises:
        NoWayError: The pinned version cannot be obtained.
    """
    if installed := _on_path():
        return installed
    release = cache.root() / f"pulumi-{VERSION}-release"
    if release.is_dir():
        return release
    built = cache.root() / _built_name()
    if built.is_dir():
        return built
    tried = []
    for name, install in (("the official release", _download), ("a build with Go from the published modules", _build)):
        try:
            return install()
        except progress.StepError as error:
            tried.append(f"  - {name}: {error}")
    raise NoWayError("\n".join(["Tried:", *tried, "", REPAIR]))


def _on_path() -> Path | None:
    program = shutil.which("pulumi")
    if program is None:
        return None
    folder = Path(program).resolve().parent
    if not (folder / LANGUAGE_HOST).exists():
        return None
    quiet = os.environ | {"PULUMI_SKIP_UPDATE_CHECK": "1"}
    answer = subprocess.run([program, "version"], capture_output=True, text=True, check=False, timeout=30, env=quiet)
    return folder if answer.stdout.strip() == f"v{VERSION}" else None


def _download() -> Path:
    import tarfile  # late, as what fetches: half of the start of each recipe of `make`, which finds a CLI

    systems = {"Linux": "linux", "Darwin": "darwin"}
    machines = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
    system, machine = systems.get(platform.system()), machines.get(platform.machine())
    if system is None or machine is None:
        raise progress.StepError(f"there is none for {platform.system()} on {platform.machine()}")
    base = os.environ.get("BEZEL_PULUMI_RELEASES", "https://get.pulumi.com/releases/sdk")
    archive = f"pulumi-v{VERSION}-{system}-{machine}.tar.gz"

    def make(folder: Path) -> None:
        checksums = _fetch(f"{base}/pulumi-{VERSION}-checksums.txt").decode()
        expected = next((line.split()[0] for line in checksums.splitlines() if line.endswith(archive)), None)
        progress.say(f"downloading Pulumi {VERSION}")
        content = _fetch(f"{base}/{archive}")
        if hashlib.sha256(content).hexdigest() != expected:
            raise progress.StepError(f"{archive} does not match its published checksum: not used")
        packed = folder / archive
        packed.write_bytes(content)
        with tarfile.open(packed) as tar:
            for member in tar.getmembers():
                # The archive's one folder is named `pulumi`, like the file in it.
                member.name = member.name.partition("/")[2]
                if member.isfile():
                    _extract(tar, member, folder)
        packed.unlink()

    return cache.obtain(f"pulumi-{VERSION}-release", make, waiting=progress.say)


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    import tarfile

    # Python before 3.11.4 has no filters; the archive is the published one by its checksum.
    if hasattr(tarfile, "data_filter"):
        tar.extract(member, folder, filter="data")
    else:
        tar.extract(member, folder)


def _fetch(url: str) -> bytes:
    import urllib.error
    import urllib.request

    try:
        with urllib.request.urlopen(url, timeout=CONNECT_SECONDS) as answer:  # noqa: S310 -- https, or a test's own server
            content: bytes = answer.read()
            return content
    except (urllib.error.URLError, OSError) as error:
        raise progress.StepError(f"{url}: {getattr(error, 'reason', error)}") from error


def _build() -> Path:
    _check_go()

    def make(folder: Path) -> None:
        log = folder / "build.log"
        source = _write_source(folder / "source", log)
        flags = f"-s -w -X {SDK}/go/common/version.Version=v{VERSION}"
        # Debug information would be stripped by the linker anyway.
        compiler = ["-gcflags=all=-dwarf=false", *(f"-gcflags={path}/...=-N -l -dwarf=false" for path in UNOPTIMIZED)]
        # Its path differs each time: trimmed, a build that follows an interrupted one takes over what was compiled.
        command = ["go", "build", "-mod=readonly", f"-modfile={source / 'go.mod'}", "-trimpath", "-buildvcs=false"]
        command += ["-tags", pulumi_source.TAGS, *compiler, "-ldflags", flags, "-o", str(folder / "pulumi"), CLI]
        progress.run(
            f"building the Pulumi CLI {VERSION} from its Go modules, once; about 3 minutes on 2 cores",
            command,
            log=log,
            env=os.environ | COMPILER_HEAP,
            cwd=_modules(),
        )
        for script in SDK_SCRIPTS:
            target = folder / Path(script).name
            shutil.copyfile(_module_folder(SDK) / script, target)
            target.chmod(0o755)
        (folder / LANGUAGE_HOST).write_text(LANGUAGE_HOST_SCRIPT)
        (folder / LANGUAGE_HOST).chmod(0o755)
        shutil.rmtree(source)
        log.unlink()

    return cache.obtain(_built_name(), make, waiting=progress.say)


def _write_source(folder: Path, log: Path) -> Path:
    """Write the changed modules to `folder`, with a go.mod that names them instead of the published ones.

    Raises:
        progress.StepError: A module cannot be downloaded, or is not the one that the build is made for.
    """
    download = ["go", "mod", "download", *(module.path for module in pulumi_source.MODULES)]
    progress.run("downloading the modules of the Pulumi CLI", download, log=log, cwd=_modules())
    folder.mkdir()
    for name in ("go.mod", "go.sum"):
        shutil.copyfile(_modules() / name, folder / name)
    with (folder / "go.mod").open("a") as file:
        for module in pulumi_source.MODULES:
            written = folder / module.stand_ins.name
            module.write(_module_folder(module.path), written)
            file.write(f'\nreplace {module.path} => "{written}"\n')
    return folder


def _check_go() -> None:
    try:
        text = subprocess.run(
            ["go", "env", "GOVERSION"], capture_output=True, text=True, check=True, timeout=30
        ).stdout.strip()
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        raise progress.StepError("Go is not installed") from error
    version = tuple(int(part) for part in text.removeprefix("go").split(" ")[0].split(".")[:2] if part.isdigit())
    if version < GO_MINIMUM:
        raise progress.StepError(f"{text} is too old: {GO_MINIMUM[0]}.{GO_MINIMUM[1]} or newer is needed")


def _module_folder(module: str) -> Path:
    command = ["go", "list", "-m", "-f", "{{.Dir}}", module]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=_modules())
    return Path(answer.stdout.strip())


def _built_name() -> str:
    inputs = b"".join((_modules() / name).read_bytes() for name in ("go.mod", "go.sum"))
    inputs += LANGUAGE_HOST_SCRIPT.encode() + pulumi_source.build_inputs()
    return f"pulumi-{VERSION}-built-{hashlib.sha256(inputs).hexdigest()[:12]}"


def _modules() -> Path:
    return Path(__file__).resolve().parent / "pulumi"
