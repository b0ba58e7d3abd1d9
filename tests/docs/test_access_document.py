"""What is said of localcloud's doors is held by tests that exist, and no port is left out."""

import ast
import re

from tests.support.docs.markdown import ROOT, between

DOCUMENT = ROOT / "docs" / "localcloud-access.md"
TRIED = ROOT / "tests" / "localcloud" / "test_bound_ports.py"
PLUGINS = {
    "a stand-in provider",
    "the language host",
    "the process of dynamic resources",
    "a policy pack",
    "the program's hooks",
}


def kinds() -> set[str]:
    """The listeners that the tests try as another user."""
    for node in ast.parse(TRIED.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "KINDS":
            return set(ast.literal_eval(node.value))
    raise AssertionError(TRIED)


def test_every_test_that_is_named_exists() -> None:
    named = re.findall(r"`((?:packages/[a-z-]+/)?tests/[a-z_/]+\.py)::([a-z_0-9]+)`", DOCUMENT.read_text())
    assert len(named) >= len(kinds())
    for path, name in named:
        tree = ast.parse((ROOT / path).read_text())
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{path}::{name}"


def test_the_ports_are_those_that_are_tried() -> None:
    rows = [row.split("|")[1].strip() for row in between(DOCUMENT, "ports").splitlines()[2:]]
    assert set(rows) == kinds() | PLUGINS
    assert len(rows) == len(set(rows))
