"""Files and programs of the product are read as UTF-8, whatever the locale: it writes them so."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OF_THE_LOCALE = re.compile(r"\.read_text\(\)|\btext=True\b|\buniversal_newlines=True\b")


def is_of_product(path: str) -> bool:
    return path.endswith(".py") and not {"tests", "tools", "examples", "site"} & {*path.split("/")}


def test_no_module_of_the_product_reads_as_the_locale_says() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, encoding="utf-8", check=True).stdout
    sources = {path: (ROOT / path).read_text(encoding="utf-8") for path in listed.splitlines() if is_of_product(path)}
    assert len(sources) > 1000
    assert [path for path, source in sources.items() if OF_THE_LOCALE.search(source)] == []


@pytest.mark.parametrize("line", ["file.read_text()", "run(command, text=True)"])
def test_a_call_without_an_encoding_is_found(line: str) -> None:
    assert OF_THE_LOCALE.search(line)
    assert not OF_THE_LOCALE.search(line.replace("()", '(encoding="utf-8")').replace("text=True", 'encoding="utf-8"'))
