"""The fingerprint of a daemon's code covers every package that the daemon runs."""

import ast
from pathlib import Path

import pytest

from bezel_localcloud.core.paths import package_folders


def imported_packages(file: Path) -> set[str]:
    """The packages of this project that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom):
            names.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
    return {name for name in names if name == "bezel" or name.startswith("bezel_")}


@pytest.mark.slow
def test_every_import_of_the_daemons_packages_is_fingerprinted():
    folders = package_folders()
    packages = {name for folder in folders for file in folder.rglob("*.py") for name in imported_packages(file)}
    assert packages == {folder.name for folder in folders}


def test_an_import_of_another_package_is_found(tmp_path):
    file = tmp_path / "module.py"
    file.write_text("import bezel.planner\nfrom bezel_bench.load import plan\nimport os\n")
    assert imported_packages(file) == {"bezel", "bezel_bench"}
