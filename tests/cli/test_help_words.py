"""Words of the help are those of the program, whatever translations the system has."""

import gettext
import struct
from pathlib import Path

import pytest

from bezel_base.command_line.parser import Parser

WORD, TRANSLATED = "show this help message and exit", "zeigt diese Hilfe"


@pytest.fixture
def translations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A system with a translation of one of argparse's words."""
    file = tmp_path / "de" / "LC_MESSAGES" / "messages.mo"
    file.parent.mkdir(parents=True)
    begin = 28 + 16
    word, translated = WORD.encode(), TRANSLATED.encode()
    head = struct.pack("<7I", 0x950412DE, 0, 1, 28, 36, 0, 0)
    places = struct.pack("<4I", len(word), begin, len(translated), begin + len(word) + 1)
    file.write_bytes(head + places + word + b"\0" + translated + b"\0")
    monkeypatch.setitem(gettext._localedirs, "messages", str(tmp_path))
    monkeypatch.setenv("LANGUAGE", "de")


@pytest.mark.usefixtures("translations")
def test_help_is_not_translated() -> None:
    text = Parser(spec={"help": "Count."}, tables={}, prog="count").fill().format_help()
    assert WORD in text
    assert TRANSLATED not in text


@pytest.mark.usefixtures("translations")
def test_system_would_translate_a_word() -> None:
    assert gettext.gettext(WORD) == TRANSLATED
