"""Virtual environment of a Python project, and its installed distributions. Leaves out starting the program.

The engine starts two hosts in every run; modules that only some calls need are imported there (`importlib.metadata`:
16 ms).
"""

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

TOOLCHAINS = ("pip", "uv")


class ProjectError(Exception):
    """The project's runtime options cannot be followed; the text says which, and what to change."""


def virtual_environment(root: str, options: Mapping[str, object]) -> Path:
    """The folder of the virtual environment that `runtime.options` of Pulumi.yaml configure.

    Raises:
        ProjectError: The options name an unknown toolchain.
    """
    toolchain = options.get("toolchain", "pip")
    if toolchain not in TOOLCHAINS:
        raise ProjectError(f"runtime.options.toolchain is {toolchain!r}: this host knows {' and '.join(TOOLCHAINS)}.")
    named = options.get("virtualenv")
    if named:
        return Path(os.path.normpath(Path(root) / str(named)))
    if toolchain == "pip":
        return _usual_environment()
    return _uv_project(Path(root)) / (os.environ.get("UV_PROJECT_ENVIRONMENT") or ".venv")


def _usual_environment() -> Path:
    """The environment of a project that names none: that of `python3` on PATH, as with the published host.

    One without the SDK could run no program; then it is the host's own.
    """
    python = shutil.which("python3")
    if python is not None:
        usual = Path(python).parent.parent
        if (usual / "bin" / "python").exists() and installed_version(usual, "pulumi"):
            return usual
    return Path(sys.executable).parent.parent


def interpreter(venv: Path) -> str:
    """The environment's Python.

    Raises:
        ProjectError: There is none.
    """
    python = venv / "bin" / "python"
    if not python.exists():
        raise ProjectError(f"{venv} has no bin/python, so the program cannot start: run `uv sync`.")
    return str(python)


def version(python: str) -> str:
    """The version of an interpreter, which is run for it unless it is the host's own."""
    if Path(python).samefile(sys.executable):
        return platform.python_version()
    code = "import platform; print(platform.python_version())"
    return subprocess.run([python, "-IS", "-c", code], capture_output=True, encoding="utf-8", check=True).stdout.strip()


def installed_version(venv: Path, name: str) -> str:
    """The version of a distribution, by its folder of metadata (PEP 376); "" where it is missing."""
    folders = (venv / "lib").glob(f"python*/site-packages/{name}-*.dist-info")
    return next((folder.name.removesuffix(".dist-info").partition("-")[2] for folder in folders), "")


def environment(venv: Path) -> dict[str, str]:
    """The variables a process of that virtual environment gets, on top of the host's own."""
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONHOME"}
    path = os.pathsep.join([str(venv / "bin"), inherited.get("PATH", "")])
    return inherited | {"PATH": path, "VIRTUAL_ENV": str(venv), "PULUMI_RUNTIME_VIRTUALENV": str(venv)}


def dependencies(venv: Path, *, transitive: bool) -> list[tuple[str, str]]:
    """(name, version) of the installed distributions; without `transitive` only those that no other one needs."""
    from importlib import metadata

    folders = [str(folder) for folder in (venv / "lib").glob("python*/site-packages")]
    by_name = {_normal(dist.metadata["Name"]): dist for dist in metadata.distributions(path=folders)}
    needed = {_normal(need) for dist in by_name.values() for need in dist.requires or () if "extra ==" not in need}
    return [(name, dist.version) for name, dist in sorted(by_name.items()) if transitive or name not in needed]


def _normal(requirement: str) -> str:
    name = re.match(r"[\w.-]+", requirement)
    return re.sub(r"[-_.]+", "-", name[0]).lower() if name else requirement


def _uv_project(start: Path) -> Path:
    for folder in (start, *start.parents):
        if (folder / "uv.lock").exists() or (folder / "pyproject.toml").exists():
            return folder
    return start
