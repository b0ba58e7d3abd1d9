"""A virtual environment as an installation of wheels makes it, without a network.

The project's own distributions come from their wheels. What they need of others is linked from the environment of the
tests, distribution by distribution, so that nothing is there that no metadata asks for.
"""

import fcntl
import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email import message_from_bytes
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.support.run_folder import run_folder

ROOT = Path(__file__).parents[3]
SECONDS = 120
_IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    # A plugin of pytest is imported by pytest alone, which its user brings.
    if not module.name.endswith(("__main__", ".pytest_plugin")):
        importlib.import_module(module.name)
        print(module.name)
"""


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the wheel of each distribution of the workspace, built once for all workers of a run."""
    top = run_folder(tmp_path_factory)
    with (top / "wheels.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (top / "wheels").exists():
            tool = str(ROOT / "tools" / "release" / "wheel.py")
            command = [sys.executable, tool, str(top / "wheels.part")]
            subprocess.run(command, check=True, capture_output=True, timeout=SECONDS)
            (top / "wheels.part").rename(top / "wheels")
    return top / "wheels"


@dataclass(frozen=True)
class FreshEnvironment:
    """A virtual environment.

    Attributes:
        folder: The environment.
        installed: Names of its distributions, normalized.
    """

    folder: Path
    installed: frozenset[str]

    @classmethod
    def make(cls, folder: Path, wheels: Path, *requirements: str) -> "FreshEnvironment":
        """Install distributions of the workspace, and what they need, into a new environment."""
        wheel_files = {_normalize(path.name.partition("-")[0]): path for path in wheels.glob("*.whl")}
        names = frozenset(_closure(requirements, wheel_files))
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=SECONDS)
        made = cls(folder, names)
        made._install([wheel_files[name] for name in names if name in wheel_files])
        for name in names - wheel_files.keys():
            made._link(_present()[name])
        return made

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        """Its folder of packages."""
        return Path(sysconfig.get_path("purelib", vars={"base": str(self.folder), "platbase": str(self.folder)}))

    def imports(self, package: str) -> list[str]:
        """Import each module of a package in a process of its own; return their names.

        Raises:
            AssertionError: One cannot be imported.
        """
        command = [self.python, "-I", "-c", _IMPORT_ALL, package]
        ended = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=SECONDS, check=False)
        assert ended.returncode == 0, ended.stderr[-2000:]
        return ended.stdout.split()

    @property
    def plugins(self) -> Path:
        """Folder of the launchers of bezel-pulumi-offline."""
        return self.packages / "bezel_pulumi_offline" / "plugins"

    def add_pulumi(self) -> None:
        """Put the toolchain's Pulumi CLI into it, with the language host of its own bezel-pulumi-offline."""
        sys.path.insert(0, str(ROOT / "tools" / "toolchain"))
        import pulumi_cli
        from environment import write_script

        cli, host = pulumi_cli.find(), self.plugins / "pulumi-language-python"
        variables = f'PATH="{cli}:$PATH" BEZEL_LANGUAGE_HOST="{host}" BEZEL_PYTHON="{self.python}"'
        write_script(self.folder / "bin" / "pulumi", f'{variables} exec "{cli}/pulumi" "$@"\n')

    def _install(self, wheels: list[Path]) -> None:
        sys.path.insert(0, str(ROOT / "tools" / "toolchain"))
        from environment import find_uv

        command = [
            find_uv(),
            "pip",
            "install",
            "--quiet",
            "--offline",
            "--no-index",
            "--no-deps",
            "--python",
            self.python,
        ]
        ended = subprocess.run([*command, *wheels], capture_output=True, text=True, timeout=SECONDS, check=False)
        assert ended.returncode == 0, ended.stderr

    def _link(self, distribution: Distribution) -> None:
        for path in {_link_to(file.parts) for file in distribution.files or () if file.parts[0] != ".."}:
            place = self.packages / path
            place.parent.mkdir(parents=True, exist_ok=True)
            target = Path(str(distribution.locate_file(path)))
            if target.exists() and not place.exists():
                place.symlink_to(target)


def _link_to(parts: tuple[str, ...]) -> Path:
    """The uppermost path of a file that is of one distribution alone."""
    return Path(*parts[: 2 if parts[0] in _shared_packages() else 1])


@cache
def _shared_packages() -> frozenset[str]:
    """Folders of packages of more than one distribution: namespaces, as `google`."""
    tops = Counter(top for one in distributions() for top in {file.parts[0] for file in one.files or ()})
    return frozenset(name for name, count in tops.items() if count > 1)


@cache
def _present() -> Mapping[str, Distribution]:
    return {_normalize(one.metadata["Name"]): one for one in distributions()}


def _closure(requirements: tuple[str, ...], members: Mapping[str, Path]) -> Iterator[str]:
    """Names of the distributions that requirements need, their own included."""
    waiting, seen = [Requirement(text) for text in requirements], set[tuple[str, frozenset[str]]]()
    while waiting:
        wanted = waiting.pop()
        name, extras = _normalize(wanted.name), frozenset(wanted.extras)
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        yield name
        for requirement in map(Requirement, _requires(name, members)):
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": extra}) for extra in (extras or {""})):
                waiting.append(requirement)


def _requires(name: str, members: Mapping[str, Path]) -> list[str]:
    if name not in members:
        return _present()[name].requires or []
    with zipfile.ZipFile(members[name]) as archive:
        described = next(file for file in archive.namelist() if file.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(described)).get_all("Requires-Dist") or []


def _normalize(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def without_this_clone(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables of a process that finds no module of this clone."""
    return {name: value for name, value in environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
