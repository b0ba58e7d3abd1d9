"""A tool writes its own section of a document, and never what stands around it."""

from pathlib import Path

import pytest

from tools.docs.generated_sections import put

MARK = "<!-- made by: .venv/bin/python -m tools.it -->"


def test_a_section_is_replaced_and_the_rest_stays(tmp_path: Path) -> None:
    document = tmp_path / "it.md"
    document.write_text(f"before\n{MARK}\nold\n<!-- end -->\nafter\n")
    put(document, "tools.it", "new\n")
    assert document.read_text() == f"before\n{MARK}\nnew\n<!-- end -->\nafter\n"


@pytest.mark.parametrize("text", [f"before\n{MARK}\nold\nafter\n", "before\nold\n<!-- end -->\n"])
def test_a_document_without_both_marks_is_left_alone(tmp_path: Path, text: str) -> None:
    document = tmp_path / "it.md"
    document.write_text(text)
    with pytest.raises(SystemExit, match="has no section between"):
        put(document, "tools.it", "new\n")
    assert document.read_text() == text
