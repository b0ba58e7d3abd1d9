"""The tables of relations are the catalogue's."""

import subprocess
import sys

from tests.support.docs.markdown import ROOT, between

DOCUMENT = ROOT / "docs" / "start-relations.md"


def test_the_tables_of_relations_are_the_catalogues() -> None:
    command = [sys.executable, "-m", "tools.docs.planner.start_relations"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    assert between(DOCUMENT, "made by: .venv/bin/python -m tools.docs.planner.start_relations") == printed, (
        "run `python -m tools.docs.planner.start_relations --write`"
    )
