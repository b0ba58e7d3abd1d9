"""`python3 tools/toolchain/clients.py python|npm|go|maven|debian NAME`: obtain clients for tests; print the folder.

- python NAME: a virtual environment with tests/clients/requirements/NAME.txt (pinned, with hashes).
- npm NAME: a folder with the `node_modules` of tests/clients/npm/NAME/package-lock.json.
- go NAME: a folder with the program of the module tests/clients/go/NAME, or with one of the `tool` lines of
  tests/clients/go/go.mod.
- maven NAME: a folder with the packages of tests/clients/maven/NAME/pom.xml, and all that they need, in `jars`.
- debian NAME: a folder with the Debian package of this release, and the libraries and other packages that the machine
  lacks and the client needs.

Each is made once, in the cache outside the clone, under a name that holds a checksum of its pins, or Debian's release.
Standard library only. Leaves out the project's own environment (`environment`).
"""

import hashlib
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import cache
import debian
import environment
import progress

CLIENTS = environment.CLONE / "tests" / "clients"
# Programs that read images: without C libraries for signatures and storage drivers that the tests do not use.
GO_TAGS = "containers_image_openpgp,exclude_graphdriver_btrfs,exclude_graphdriver_devicemapper"
# Debian's packages that a client does not run without, beside libraries.
_GEMS = """addressable declarative declarative-option domain-name faraday google-cloud-env googleauth http-cookie
    httpclient jwt little-plugger logging memoist mime-types mime-types-data mini-mime multi-json multipart-post os
    public-suffix representable retriable ruby2-keywords rubygems signet uber unf"""
_ALSO = {
    "podman": ("conmon", "crun"),
    "ruby-google-api-client": ("ruby3.1", "rubygems-integration", *(f"ruby-{name}" for name in _GEMS.split())),
}
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"


def python(name: str) -> Path:
    """The virtual environment with the pinned packages of a requirements file.

    Raises:
        progress.StepError: There is no such file, or uv failed.
    """
    pins = _file(CLIENTS / "requirements" / f"{name}.txt")

    def make(folder: Path) -> None:
        uv, log = environment.find_uv(), folder.with_suffix(".log")
        # Relocatable: it is moved to its final name when it is complete.
        steps = {
            "creating an environment": [
                uv,
                "venv",
                "--quiet",
                "--relocatable",
                "--python",
                sys.executable,
                str(folder),
            ],
            "installing packages": [
                *(uv, "pip", "sync", "--quiet", "--require-hashes", "--python", str(folder / "bin" / "python")),
                str(pins),
            ],
        }
        folder.rmdir()
        try:
            for what, command in steps.items():
                progress.run(f"{what} for the clients {name}", command, log=log)
        finally:
            log.unlink(missing_ok=True)

    return _obtain(f"python{sys.version_info.major}.{sys.version_info.minor}-{name}", [pins], make)


def npm(name: str) -> Path:
    """The folder with `node_modules` of a locked package.

    Raises:
        progress.StepError: There is no such package, or npm is missing or failed.
    """
    pins = [_file(CLIENTS / "npm" / name / file) for file in ("package.json", "package-lock.json")]

    def make(folder: Path) -> None:
        for pin in pins:
            shutil.copyfile(pin, folder / pin.name)
        command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
        progress.run(f"installing the npm packages {name}", command, log=folder / "install.log", cwd=folder)

    return _obtain(f"npm-{name}", pins, make)


def go(name: str) -> Path:
    """The folder with a program built by Go.

    Raises:
        progress.StepError: There is no such module or tool, or Go is missing or failed.
    """
    module, package = CLIENTS / "go" / name, "."
    if (module / "go.mod").is_file():
        pins = [module / "go.mod", module / "go.sum", *sorted(module.glob("*.go"))]
    else:
        module = CLIENTS / "go"
        pins = [_file(module / file) for file in ("go.mod", "go.sum")]
        tools = re.findall(r"^(?:tool)?\s+(\S+/\S+)$", pins[0].read_text(), re.MULTILINE)
        package = next((path for path in tools if re.sub(r"/v\d+$", "", path).rpartition("/")[2] == name), "")
    if not package:
        raise progress.StepError(f"{name} is not a tool of {pins[0]}")

    def make(folder: Path) -> None:
        command = ["go", "build", "-mod=readonly", "-tags", GO_TAGS, "-ldflags", "-s -w"]
        command += ["-o", str(folder / name), package]
        progress.run(f"building {name} from its Go modules, once", command, log=folder / "build.log", cwd=module)

    return _obtain(f"go-{name}", pins, make)


def maven(name: str) -> Path:
    """The folder with the packages that a Maven project depends on, in `jars`.

    Raises:
        progress.StepError: There is no such project, or Maven is missing or failed.
    """
    pins = [_file(CLIENTS / "maven" / name / "pom.xml")]

    def make(folder: Path) -> None:
        shutil.copyfile(pins[0], folder / "pom.xml")
        command = ["mvn", "--quiet", "--batch-mode", f"-Dmaven.repo.local={folder / 'repository'}"]
        command += [_COPY, f"-DoutputDirectory={folder / 'jars'}"]
        progress.run(f"fetching the Maven packages {name} (50 MB)", command, log=folder / "fetch.log", cwd=folder)
        shutil.rmtree(folder / "repository")

    return _obtain(f"maven-{name}", pins, make)


def debian_package(name: str) -> Path:
    """The folder with an unpacked Debian package: `usr/bin/...`.

    Raises:
        progress.StepError: This machine has no apt-get, or the package cannot be fetched.
    """
    folder, also = f"clients-debian-{name}-{debian.release()}", _ALSO.get(name, ())

    def make(path: Path) -> None:
        debian.unpack(name, path, size="15 to 40 MB", also=also)

    return cache.obtain(folder, make, waiting=progress.say)


def _file(path: Path) -> Path:
    if not path.is_file():
        raise progress.StepError(f"{path} is missing")
    return path


def _obtain(name: str, pins: list[Path], make: Callable[[Path], None]) -> Path:
    checksum = hashlib.sha256(b"".join(pin.read_bytes() for pin in pins)).hexdigest()[:12]
    return cache.obtain(f"clients-{name}-{checksum}", make, waiting=progress.say)


def main() -> int:
    """Obtain one; return exit code 1 with the reason if that fails, 2 for wrong arguments."""
    kinds = {"python": python, "npm": npm, "go": go, "maven": maven, "debian": debian_package}
    match sys.argv[1:]:
        case [kind, name] if kind in kinds:
            try:
                print(kinds[kind](name))
            except progress.StepError as error:
                sys.stderr.write(f"{error}\n")
                return 1
            return 0
    sys.stderr.write(f"{__doc__}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
