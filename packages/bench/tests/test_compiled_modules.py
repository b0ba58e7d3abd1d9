"""Compiled modules are imported only if they are of the source and the Python that run."""

import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from bezel_bench.compiled_modules import (
    MODULES,
    PACKAGE,
    CompiledFinder,
    compiled_files,
    prefer_compiled,
    source_checksum,
)

SUFFIX = ".this-python.so"


def make_build(folder: Path, source: str, names: tuple[str, ...] = MODULES) -> ModuleType:
    """A build in a folder, with empty files for its modules."""
    for name in names:
        file = folder.joinpath(*name.split("."))
        file.parent.mkdir(exist_ok=True)
        file.with_name(file.name + SUFFIX).touch()
    build = ModuleType("bezel_bench_compiled")
    build.__file__ = str(folder / "__init__.py")
    vars(build)["SOURCE"] = source
    return build


def test_build_of_this_source_and_python_is_found(tmp_path: Path) -> None:
    make_build(tmp_path, source_checksum())
    files = compiled_files(tmp_path, [SUFFIX])
    assert len(files) == len(MODULES)
    spec = CompiledFinder(files).find_spec("bezel_bench.client.loop")
    assert spec is not None
    assert spec.origin == str(tmp_path / "client" / f"loop{SUFFIX}")


def test_other_modules_are_left_to_python(tmp_path: Path) -> None:
    make_build(tmp_path, source_checksum())
    finder = CompiledFinder(compiled_files(tmp_path, [SUFFIX]))
    assert finder.find_spec("bezel_bench.client.workers") is finder.find_spec("loop") is None


@pytest.mark.parametrize(
    ("source", "why"), [("0" * 16, "another source"), (source_checksum(), "another Python")], ids=["source", "python"]
)
def test_build_of_another_source_or_python_is_refused(tmp_path: Path, source: str, why: str) -> None:
    finders = [*sys.meta_path]
    assert prefer_compiled(make_build(tmp_path, source)) == f"pure: bezel-bench-compiled is of {why}"
    assert sys.meta_path == finders


@pytest.mark.parametrize("file", ["client/loop.py", "load/plan.py", "result/sample.py"])
def test_a_changed_source_has_another_checksum(tmp_path: Path, file: str) -> None:
    shutil.copytree(PACKAGE, tmp_path / "bezel_bench", ignore=shutil.ignore_patterns("__pycache__"))
    assert source_checksum(tmp_path / "bezel_bench") == source_checksum()
    with (tmp_path / "bezel_bench" / file).open("a") as text:
        text.write("\n")
    assert source_checksum(tmp_path / "bezel_bench") != source_checksum()


def test_every_listed_module_has_a_source() -> None:
    assert [name for name in MODULES if not PACKAGE.joinpath(*name.split(".")).with_suffix(".py").exists()] == []


@pytest.mark.slow
def test_result_names_why_an_installed_build_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "bezel_bench_compiled").mkdir()
    (tmp_path / "bezel_bench_compiled" / "__init__.py").write_text('SOURCE = "0"\n')
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "from bezel_bench.server.manifest import this_client\n"
        "print(this_client(workers=1, tls=False).bezel)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.endswith(" (pure: bezel-bench-compiled is of another source)\n")
