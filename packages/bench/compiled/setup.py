"""Compile the modules of the load engine, as the installed bezel-bench of the same version holds them, with mypyc.

The sdist and the metadata need no compiler.
"""

import os
import shlex
import shutil
import sys
import sysconfig
import tomllib
from importlib import metadata
from pathlib import Path

from mypyc.build import mypycify
from setuptools import Extension, setup

from bezel_bench.compiled_modules import MODULES, PACKAGE, source_checksum

NAME = "bezel_bench_compiled"
# Relative, as setuptools wants it: a build begins in this file's folder.
FOLDER = Path("build", "source")
MYPY = "[mypy]\nstrict = True\nignore_missing_imports = True\n"
INIT = '"""Compiled modules of bezel_bench; SOURCE is the checksum of their source."""\n\nSOURCE = "{}"\n'
NO_COMPILER = """\
bezel-bench-compiled has no wheel for this Python and platform, so it is compiled here, and {} is missing.
Install a C compiler and the headers of this Python (Debian: apt install build-essential python3-dev; macOS:
xcode-select --install), or install bezel-bench without [compiled]: it measures the same, with more CPU a request."""


def missing_for_compiling() -> str:
    """What a compilation would look for in vain; empty where nothing is missing."""
    compiler, *_ = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    if os.name == "posix" and shutil.which(compiler) is None:
        return f"the C compiler ({compiler})"
    header = Path(sysconfig.get_path("include"), "Python.h")
    return "" if header.exists() else f"the header {header}"


def copy_sources() -> None:
    """Copy the sources of the installed bezel-bench, and write the package that records their checksum."""
    version = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if (installed := metadata.version("bezel-bench")) != version:
        raise SystemExit(f"bezel-bench {installed} is installed; bezel-bench=={version} is to be compiled.")
    shutil.rmtree(FOLDER, ignore_errors=True)
    shutil.copytree(PACKAGE, FOLDER / "bezel_bench", ignore=shutil.ignore_patterns("__pycache__"))
    (FOLDER / "mypy.ini").write_text(MYPY, encoding="ascii")
    (FOLDER / NAME).mkdir()
    (FOLDER / NAME / "__init__.py").write_text(INIT.format(source_checksum()), encoding="ascii")


def extensions() -> list[Extension]:
    """The compiled modules, in C."""
    files = [str(FOLDER / "bezel_bench" / f"{name.replace('.', '/')}.py") for name in MODULES]
    options = ["--config-file", str(FOLDER / "mypy.ini"), *files]
    made = mypycify(options, opt_level="3", debug_level="0", group_name=NAME, target_dir=str(FOLDER))
    for extension in made:
        # Beside the sources they would be imported without a check.
        extension.name = extension.name.replace("bezel_bench.", f"{NAME}.", 1)
    return made


is_compiled = {"egg_info", "dist_info", "sdist"}.isdisjoint(sys.argv)
if is_compiled and (missing := missing_for_compiling()):
    raise SystemExit(NO_COMPILER.format(missing))
copy_sources()
setup(packages=[NAME], package_dir={NAME: str(FOLDER / NAME)}, ext_modules=extensions() if is_compiled else [])
# Else a clone would hold a second copy of the sources.
shutil.rmtree(FOLDER.parent)
