"""Compile the modules of the load engine, as the installed bezel-bench of the same version holds them, with mypyc."""

import shutil
import tomllib
from importlib import metadata
from pathlib import Path

from mypyc.build import mypycify
from setuptools import setup

from bezel_bench.compiled_modules import MODULES, PACKAGE, source_checksum

NAME = "bezel_bench_compiled"
# Relative, as setuptools wants it: a build begins in this file's folder.
FOLDER = Path("build", "source")
MYPY = "[mypy]\nstrict = True\nignore_missing_imports = True\n"
INIT = '"""Compiled modules of bezel_bench; SOURCE is the checksum of their source."""\n\nSOURCE = "{}"\n'


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


copy_sources()
files = [str(FOLDER / "bezel_bench" / f"{name.replace('.', '/')}.py") for name in MODULES]
options = ["--config-file", str(FOLDER / "mypy.ini"), *files]
extensions = mypycify(options, opt_level="3", debug_level="0", group_name=NAME, target_dir=str(FOLDER))
for extension in extensions:
    # Beside the sources they would be imported without a check.
    extension.name = extension.name.replace("bezel_bench.", f"{NAME}.", 1)
setup(packages=[NAME], package_dir={NAME: str(FOLDER / NAME)}, ext_modules=extensions)
# Else a clone would hold a second copy of the sources.
shutil.rmtree(FOLDER.parent)
