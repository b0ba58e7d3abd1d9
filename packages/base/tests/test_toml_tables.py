"""Tables of a package: the content of the TOML file, whatever is kept beside it."""

import marshal
import sys
import tomllib
from pathlib import Path

import pytest

from bezel_base.toml_tables import read_table

TEXT = '[run]\nhelp = "sent \u00fc"\nnumbers = [1, 2.5, true]\n'


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    (path := tmp_path / "table.toml").write_text(TEXT, encoding="utf-8")
    return path


def parsed_files(file: Path) -> list[Path]:
    return [*(file.parent / "__pycache__").glob("*")]


def test_a_table_is_parsed_once_as_long_as_its_text_is_the_same(file: Path) -> None:
    assert read_table(file) == tomllib.loads(TEXT)
    (parsed,) = parsed_files(file)
    parsed.write_bytes(marshal.dumps((TEXT.encode(), {"of": "what is kept"})))
    assert read_table(file) == {"of": "what is kept"}
    file.write_text(other := TEXT.replace("1", "3"), encoding="utf-8")
    assert read_table(file) == read_table(file) == tomllib.loads(other)


@pytest.mark.parametrize("content", [b"", b"torn", marshal.dumps(4), marshal.dumps((TEXT.encode(), 4))])
def test_a_kept_content_of_something_else_is_replaced(file: Path, content: bytes) -> None:
    read_table(file)
    (parsed,) = parsed_files(file)
    whole = parsed.read_bytes()
    parsed.write_bytes(content)
    assert read_table(file) == tomllib.loads(TEXT)
    assert parsed_files(file) == [parsed]
    assert parsed.read_bytes() == whole


def test_a_table_is_read_where_nothing_can_be_kept(file: Path) -> None:
    (file.parent / "__pycache__").write_text("no folder")
    assert read_table(file) == tomllib.loads(TEXT)


def test_nothing_is_kept_where_no_bytecode_is(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    assert read_table(file) == tomllib.loads(TEXT)
    assert parsed_files(file) == []


def test_a_table_with_a_date_is_read_and_not_kept(file: Path) -> None:
    file.write_text("as_of = 2026-11-30\n")
    assert read_table(file) == read_table(file) == tomllib.loads("as_of = 2026-11-30")
    assert parsed_files(file) == []


def test_what_is_no_table_is_an_error(file: Path) -> None:
    file.write_text("[")
    with pytest.raises(tomllib.TOMLDecodeError):
        read_table(file)
