"""The fingerprint of a daemon's code covers every module that the daemon runs."""

import ast
from pathlib import Path

import pytest

import bezel

PACKAGE = Path(bezel.__file__).parent
ROOMS = ("localcloud", "catalog", "loopback", "simulated_vllm", "text")
FILES = ("atomic_write", "cron", "ending_signals", "errors", "json_documents")


def _imported(file: Path) -> set[str]:
    """The packages and modules right below `bezel` that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module == "bezel":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bezel."):
            names.add((node.module or "").split(".")[1])
        elif isinstance(node, ast.Import):
            names |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("bezel.")}
    return names


@pytest.mark.slow
def test_every_import_of_the_daemons_rooms_stays_within_what_is_fingerprinted():
    files = [file for room in ROOMS for file in (PACKAGE / room).rglob("*.py")]
    files += [PACKAGE / f"{name}.py" for name in FILES]
    imported = {name for file in files for name in _imported(file)}
    assert imported == {*ROOMS, *FILES}
