"""The tables that the generated documents are made of: written by the tests that fill them, compared ever after.

`BEZEL_RECORD=1 pytest FILE` writes; without it a table that no longer says what was just found fails the test.
What a table holds is said in `tools/docs/reports.py`, which makes the documents of them.
"""

import json
import os
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent.parent / "results"


def check_results(section: str, table: dict[str, Any]) -> None:
    """Compare `tests/results/SECTION.json` with the table found now, or write it when asked to.

    Args:
        section: The file's name without its ending.
        table: The section as `tools/docs/reports.py` reads it.

    Raises:
        AssertionError: The committed table says something else; the message names the command that writes it anew.
    """
    file = RESULTS / f"{section}.json"
    text = json.dumps(table, indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("BEZEL_RECORD") == "1":
        file.write_text(text)
    assert file.exists(), f"{file.name} is missing: BEZEL_RECORD=1 {table['command']}"
    assert json.loads(file.read_text()) == json.loads(text), (
        f"{file.name} is not what was found now; look at why, then: BEZEL_RECORD=1 {table['command']}"
    )
