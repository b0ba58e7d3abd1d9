"""The archive of the door: the same bytes each time, the whole door, and the standard library alone."""

import ast
import io
import sys
import zipfile
from pathlib import Path

import bezel_door
from bezel_door.archive import door_archive

PACKAGE = Path(bezel_door.__file__).parent


def test_the_archive_depends_on_the_sources_alone():
    content = door_archive()
    assert content == door_archive()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = set(archive.namelist())
    assert {"__main__.py", "bezel_door/main.py", "bezel_door/http1/server.py"} <= names
    assert not [name for name in names if "archive" in name or "__pycache__" in name]


def test_no_module_imports_anything_but_the_standard_library_and_its_own():
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            packages = {name.partition(".")[0] for name in names}
            assert packages <= sys.stdlib_module_names | {"bezel_door"}, path
