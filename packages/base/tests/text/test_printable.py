"""A text that no encoding takes breaks no output: half a surrogate pair becomes the replacement character."""

from pathlib import Path

import pytest

from bezel_base.atomic_write import write_whole
from bezel_base.console import note, say, write
from bezel_base.errors import Problem
from bezel_base.text.printable import encodable, encodable_values, printable

HALF = "a\ud800b\udfff"
WHOLE = "a\ufffdb\ufffd"


def test_half_a_pair_is_replaced_and_other_text_stays() -> None:
    assert encodable(HALF) == WHOLE
    assert printable(HALF) == WHOLE
    assert encodable("日本 \U0001f600 é") == "日本 \U0001f600 é"
    assert encodable_values({HALF: [HALF, 1, None, {"x": HALF}]}) == {WHOLE: [WHOLE, 1, None, {"x": WHOLE}]}


def test_files_and_terminals_take_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_whole(tmp_path / "file", HALF)
    assert (tmp_path / "file").read_text() == WHOLE
    say(HALF)
    write(HALF)
    note(HALF)
    assert capsys.readouterr() == (f"{WHOLE}\n{WHOLE}", f"{WHOLE}\n")
    str(Problem(HALF, HALF, "it is unknown.", "remove it.")).encode(errors="backslashreplace")
    assert Problem("key", HALF, "it is unknown.", "remove it.").value == f'"{WHOLE}"'
