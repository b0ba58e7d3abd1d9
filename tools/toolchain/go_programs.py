"""`python3 tools/toolchain/go_programs.py NAME`: build a program from its published Go modules; print its folder.

- actionlint: checks workflow files (`make lint`).
- gitea: a forge for tests of the workflows (`make gitops`), with the templates and texts that it reads at run time.
- act: runs a workflow's jobs on this machine.
- pulumi-language-yaml: runs Pulumi programs in YAML (tests of the Pulumi package).
- pulumi-sdk-generator: writes the SDK of a Pulumi package for `pulumi package add`; its source is in tools/go.
- promql-reference: answers PromQL queries with Prometheus's own engine, for tests of localcloud's; its source too.
- scrape-reference: relabels series and reads metrics with Prometheus's own code, likewise.

`... NAME -- ARGUMENTS` runs it with these arguments instead; where Go is missing it says so and does nothing, but in
CI that is an error. Each is built once, in the cache outside the clone, from the pins in tools/go/NAME (go.mod and
go.sum). Standard library only. Leaves out the Pulumi CLI (`pulumi_cli`) and outside clients (`clients`).
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cache
import environment
import progress

MODULES = environment.CLONE / "tools" / "go"


@dataclass(frozen=True)
class Program:
    """A program and how it is built.

    Attributes:
        module: The Go module; "." for the one in tools/go/NAME itself.
        package: The package below the module; "" for the module itself.
        tags: Build tags.
        data: Folders of the module that the program reads at run time.
    """

    module: str
    package: str = ""
    tags: str = ""
    data: tuple[str, ...] = ()


PROGRAMS = {
    "actionlint": Program("github.com/rhysd/actionlint", "/cmd/actionlint"),
    "act": Program("github.com/nektos/act"),
    "pulumi-language-yaml": Program("."),
    "pulumi-sdk-generator": Program("."),
    "promql-reference": Program("."),
    "scrape-reference": Program("."),
    # SQLite is its only database that needs no server.
    "gitea": Program("code.gitea.io/gitea", tags="sqlite,sqlite_unlock_notify", data=("templates", "options")),
}


class NoGoError(progress.StepError):
    """Go is not installed."""


def find(name: str) -> Path:
    """The folder that holds the program `name`, built if need be.

    Raises:
        NoGoError: Go is not installed.
        progress.StepError: The build failed.
    """
    program, pins = PROGRAMS[name], [MODULES / name / file for file in ("go.mod", "go.sum")]
    pins += sorted((MODULES / name).glob("*.go"))

    def make(folder: Path) -> None:
        if shutil.which("go") is None:
            raise NoGoError(f"Go is not installed, so {name} cannot be built: https://go.dev/dl")
        command = ["go", "build", "-mod=readonly", "-buildvcs=false", "-tags", program.tags, "-ldflags", "-s -w"]
        command += ["-o", str(folder / name), f"{program.module}{program.package}"]
        log = folder / "build.log"
        progress.run(f"building {name} from its Go modules, once", command, log=log, cwd=MODULES / name)
        log.unlink()
        if program.data:
            source = _module_folder(name, program.module)
            for data in program.data:
                # Go keeps modules read-only; the cache's folders are removed as usual ones.
                shutil.copytree(source / data, folder / data, copy_function=shutil.copyfile)
            for copied in folder.rglob("*"):
                copied.chmod(copied.stat().st_mode | 0o200)

    checksum = hashlib.sha256(b"".join(pin.read_bytes() for pin in pins) + repr(program).encode()).hexdigest()[:12]
    return cache.obtain(f"go-{name}-{checksum}", make, waiting=progress.say)


def _module_folder(name: str, module: str) -> Path:
    command = ["go", "list", "-mod=readonly", "-m", "-f", "{{.Dir}}", module]
    answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, cwd=MODULES / name)
    return Path(answer.stdout.strip())


def run(name: str, arguments: Sequence[str]) -> int:
    """Run the program; return its exit code, or 0 where Go is missing on a machine that is not CI's."""
    try:
        folder = find(name)
    except NoGoError as error:
        if os.environ.get("CI"):
            raise
        progress.say(f"{name}: skipped, {error}")
        return 0
    return subprocess.run([folder / name, *arguments], check=False, timeout=300).returncode


def main() -> int:
    """Find or run a program; return its exit code, 1 with the reason if that fails, 2 for wrong arguments."""
    try:
        match sys.argv[1:]:
            case [name] if name in PROGRAMS:
                print(find(name))
                return 0
            case [name, "--", *arguments] if name in PROGRAMS:
                return run(name, arguments)
    except progress.StepError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stderr.write(f"{__doc__}\n")
    return 2


if __name__ == "__main__":
    sys.exit(main())
